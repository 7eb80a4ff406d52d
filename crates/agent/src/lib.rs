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

mod agent;
mod callback;
mod composite;
mod context;
mod error;
mod guard;
mod history;
mod llm;
mod merge;
mod model;
mod runner;
mod tool;
mod tree;

pub use agent::Agent;
pub use callback::{AgentCallbacks, BeforeModel, BeforeTool, ToolCall};
pub use composite::{LoopAgent, ParallelAgent, SequentialAgent};
pub use context::{CallbackContext, InvocationContext, ReadonlyContext, ToolContext};
pub use error::{AgentError, BuildError, RunError, ToolError};
pub use llm::{IncludeContents, LlmAgent, LlmAgentBuilder, inject_session_state};
pub use model::{
    FunctionDeclaration, GenerationConfig, Model, ModelError, ModelRequest, ModelResponse, ModelStream,
    Streaming,
};
pub use runner::{Run, RunConfig, RunRequest, Runner, RunnerBuilder, WhenBusy};
pub use sessile_state::Reducer;
pub use tool::{AgentTool, FunctionTool, Tool, ToolFunction, WithContext, WithoutContext};
