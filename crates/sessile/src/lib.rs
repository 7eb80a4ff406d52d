//! Keeps the state of AI agents.
//!
//! This crate is the front door: everything an application needs, by name, from the crates that
//! implement it. The features `sqlite` (on unless turned off) and `postgres` bring the stores.

#[cfg(feature = "postgres")]
pub use sessile_postgres as postgres;
pub use sessile_session as session;
#[cfg(feature = "sqlite")]
pub use sessile_sqlite as sqlite;
pub use sessile_state as state;

pub use sessile_session::{
    Content, CreateSession, Event, EventActions, EventWindow, MemoryStore, Part, Session, SessionError,
    SessionKey, SessionService,
};
pub use sessile_state::{Delta, Scope, State, StateError, StateKey, StateSchema, Template, TemplateError};

/// The code of README.md runs as a test.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
