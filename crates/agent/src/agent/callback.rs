//! Callbacks: code of the application that runs before and after agents, models and tools.
//!
//! A callback is an async closure over owned arguments. A list of them runs in order, until one
//! gives an answer.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use sessile_session::{BoxError, Content};

use crate::catch_panic::catch_panic;
use crate::context::{CallbackContext, InvocationContext, ToolContext};
use crate::error::{AgentError, ToolError};
use crate::model::{ModelError, ModelRequest, ModelResponse};
use crate::tool::Tool;

/// What a callback before a model call decides.
#[derive(Debug, Clone)]
pub enum BeforeModel {
    /// The model is asked with the request that the callback was given.
    Continue,
    /// The model is asked with this request.
    Ask(ModelRequest),
    /// This is the response. The model is not asked, and callbacks after the model do not run.
    Answer(ModelResponse),
}

impl From<ModelRequest> for BeforeModel {
    fn from(request: ModelRequest) -> Self {
        Self::Ask(request)
    }
}

impl From<ModelResponse> for BeforeModel {
    fn from(response: ModelResponse) -> Self {
        Self::Answer(response)
    }
}

/// What a callback before a tool call decides.
#[derive(Debug, Clone)]
pub enum BeforeTool {
    /// The tool is called with the arguments that the callback was given.
    Continue,
    /// The tool is called with these arguments.
    Call(Map<String, Value>),
    /// This is the result. The tool is not called, but callbacks after the tool do run.
    Answer(Value),
}

/// A call of a tool.
#[derive(Clone)]
pub struct ToolCall {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Its arguments.
    pub args: Map<String, Value>,
}

/// A stored callback.
type Kept<Arguments, Output> =
    Arc<dyn Fn(Arguments) -> BoxFuture<'static, Result<Output, BoxError>> + Send + Sync>;

pub(crate) type AgentCallback = Kept<CallbackContext, Option<Content>>;
pub(crate) type BeforeModelCallback = Kept<(CallbackContext, ModelRequest), BeforeModel>;
pub(crate) type AfterModelCallback = Kept<(CallbackContext, Arc<ModelResponse>), Option<ModelResponse>>;
pub(crate) type ModelErrorCallback =
    Kept<(CallbackContext, Arc<ModelRequest>, Arc<ModelError>), Option<ModelResponse>>;
pub(crate) type BeforeToolCallback = Kept<(ToolContext, ToolCall), BeforeTool>;
pub(crate) type AfterToolCallback = Kept<(ToolContext, Arc<ToolCall>, Arc<Value>), Option<Value>>;
pub(crate) type ToolErrorCallback = Kept<(ToolContext, Arc<ToolCall>, Arc<ToolError>), Option<Value>>;

/// The callbacks before and after an agent of any kind.
#[derive(Clone, Default)]
pub struct AgentCallbacks {
    pub(crate) before: Vec<AgentCallback>,
    pub(crate) after: Vec<AgentCallback>,
}

impl AgentCallbacks {
    /// No callbacks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs this before the agent. If it returns a content, that is the agent's answer: neither the
    /// agent nor its callbacks afterwards run.
    #[must_use]
    pub fn before<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(CallbackContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Content>, BoxError>> + Send + 'static,
    {
        self.before.push(Arc::new(move |ctx| Box::pin(callback(ctx))));
        self
    }

    /// Runs this after the agent. If it returns a content, that is emitted as one more event.
    #[must_use]
    pub fn after<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(CallbackContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Content>, BoxError>> + Send + 'static,
    {
        self.after.push(Arc::new(move |ctx| Box::pin(callback(ctx))));
        self
    }
}

/// The callbacks around the model and the tools of an agent.
#[derive(Clone, Default)]
pub(crate) struct LlmCallbacks {
    pub(crate) before_model: Vec<BeforeModelCallback>,
    pub(crate) after_model: Vec<AfterModelCallback>,
    pub(crate) on_model_error: Vec<ModelErrorCallback>,
    pub(crate) before_tool: Vec<BeforeToolCallback>,
    pub(crate) after_tool: Vec<AfterToolCallback>,
    pub(crate) on_tool_error: Vec<ToolErrorCallback>,
}

/// Runs a callback; a panic is an error like any other.
pub(crate) async fn call_guarded<T>(
    ctx: &InvocationContext,
    hook: &'static str,
    callback: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, AgentError> {
    let result = match catch_panic(callback).await {
        Ok(result) => result,
        Err(panic) => Err(format!("it panicked: {panic}").into()),
    };
    result.map_err(|source| AgentError::Callback { agent: ctx.agent_name().to_owned(), hook, source })
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall").field("tool", &self.tool.name()).finish_non_exhaustive()
    }
}

impl fmt::Debug for AgentCallbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentCallbacks")
            .field("before", &self.before.len())
            .field("after", &self.after.len())
            .finish_non_exhaustive()
    }
}
