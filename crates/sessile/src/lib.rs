//! Keeps the state of AI agents.
//!
//! This crate is the front door: everything an application needs, by name, from the crates that
//! implement it. The feature `agents` brings agents, models, artifacts and memory; `live` live
//! sessions; `server` the REST API of ADK; `yaml` agents that are declared in YAML files; `sqlite`
//! and `postgres` the stores. `agents` and `sqlite` are on unless turned off.

#[cfg(feature = "agents")]
pub use sessile_agent as agent;
#[cfg(feature = "agents")]
pub use sessile_artifact as artifact;
#[cfg(feature = "yaml")]
pub use sessile_config as config;
#[cfg(feature = "live")]
pub use sessile_live as live;
#[cfg(feature = "agents")]
pub use sessile_memory as memory;
#[cfg(feature = "agents")]
pub use sessile_model as model;
#[cfg(feature = "postgres")]
pub use sessile_postgres as postgres;
#[cfg(feature = "server")]
pub use sessile_server as server;
pub use sessile_session as session;
#[cfg(feature = "sqlite")]
pub use sessile_sqlite as sqlite;
pub use sessile_state as state;

#[cfg(feature = "agents")]
pub use sessile_agent::{
    Agent, AgentError, AgentTool, CallbackContext, FunctionTool, InvocationContext, LlmAgent, LoopAgent,
    Model, ParallelAgent, ReadonlyContext, RunConfig, RunError, RunRequest, Runner, SequentialAgent, Tool,
    ToolContext, inject_session_state,
};
#[cfg(feature = "postgres")]
pub use sessile_postgres::PostgresStore;
pub use sessile_session::{
    Append, BoxError, Content, CreateSession, Event, EventActions, EventWindow, Expect, Guards, MemoryStore,
    OnConflict, OnOverwrite, Part, ScopeKey, Session, SessionError, SessionKey, SessionService, StateWrite,
};
#[cfg(feature = "sqlite")]
pub use sessile_sqlite::SqliteStore;
pub use sessile_state::{
    Delta, Operation, Reducer, Scope, State, StateError, StateKey, StateSchema, Template, TemplateError,
    ValueType,
};

/// The code of README.md runs as a test.
#[cfg(all(doctest, feature = "agents", feature = "sqlite"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The code of docs/state.md runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/state.md")]
struct StateGuide;

/// The code of docs/history.md runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/history.md")]
struct History;

/// The code of docs/agents.md runs as a test.
#[cfg(all(doctest, feature = "agents"))]
#[doc = include_str!("../../../docs/agents.md")]
struct Agents;
