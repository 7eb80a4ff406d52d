//! Calls of tools and their answers, as plain data.

use serde_json::{Map, Value};

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveToolCall {
    /// Matches the answer to the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Map<String, Value>,
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolResponse {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its result; after a failure, an object with a string `error`.
    pub response: Value,
    /// When the model handles the answer of a background tool.
    pub scheduling: Option<Scheduling>,
}

impl ToolResponse {
    /// The answer to a call.
    pub fn new(call: &LiveToolCall, response: impl Into<Value>) -> Self {
        Self { id: call.id.clone(), name: call.name.clone(), response: response.into(), scheduling: None }
    }

    /// The answer to a call that failed.
    pub fn error(call: &LiveToolCall, reason: impl std::fmt::Display) -> Self {
        Self::new(call, serde_json::json!({"error": reason.to_string()}))
    }
}

/// When the model handles the answer of a background tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// At once, interrupting its speech.
    Interrupt,
    /// When neither side is speaking.
    WhenIdle,
    /// Without reacting to it: it only becomes part of the context.
    Silent,
}

impl Scheduling {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "INTERRUPT",
            Self::WhenIdle => "WHEN_IDLE",
            Self::Silent => "SILENT",
        }
    }
}

/// How a call was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolOutcome {
    /// The tool ran and answered.
    Completed,
    /// The tool ran and failed.
    Failed,
    /// `on_tool_call` answered instead of the tool.
    Overridden,
    /// The phase does not allow the tool, or there is none of this name.
    Rejected,
    /// The tool exceeded its timeout.
    TimedOut,
    /// The server cancelled the call, or the session ended.
    Cancelled,
}
