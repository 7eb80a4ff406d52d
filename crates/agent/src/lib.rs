//! Agents on top of sessions.
//!
//! A [`Runner`] takes a message and runs the [`Agent`] whose turn it is to answer, until it is
//! done. Every event on the way is committed with what it changes, or not at all, and leaves
//! through the run's stream. An [`LlmAgent`] asks a [`Model`] and calls [`Tool`]s;
//! [`SequentialAgent`], [`ParallelAgent`] and [`LoopAgent`] run other agents; your own implement
//! [`Agent`].
//!
//! State is changed in the contexts that callbacks and tools get: what they write lands in the
//! event that they make.

mod actions;
mod agent;
mod agent_tool;
mod catch_panic;
mod composite;
mod context;
mod error;
mod event_queue;
mod history;
mod json_schema;
mod merge;
mod model;
mod run_request;
mod runner;
mod tool;
mod turn;

pub use agent::Agent;
pub use agent::callback::{AgentCallbacks, BeforeModel, BeforeTool, ToolCall};
pub use agent::llm::{IncludeContents, LlmAgent, LlmAgentBuilder, inject_session_state};
pub use agent_tool::AgentTool;
pub use composite::{LoopAgent, ParallelAgent, SequentialAgent};
pub use context::{CallbackContext, InvocationContext, ReadonlyContext, ToolContext};
pub use error::{AgentError, BuildError, RunError, ToolError};
pub use model::{
    FunctionDeclaration, GenerationConfig, Model, ModelError, ModelRequest, ModelResponse, ModelStream,
    Streaming,
};
pub use run_request::{RunConfig, RunRequest, WhenBusy};
pub use runner::{Run, Runner, RunnerBuilder};
pub use sessile_state::Reducer;
pub use tool::{FunctionTool, Sharing, Tool, ToolFunction, WithContext, WithoutContext};
