//! Tools that the model may call during a live session.

mod answers;
mod function;

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use sessile_agent::FunctionDeclaration;
use sessile_session::BoxError;
use sessile_state::State;

use crate::changes::Changes;
use crate::tool_call::{LiveToolCall, Scheduling, ToolOutcome, ToolResponse};
pub(crate) use answers::{completed, overridden};
use function::BoxedFunction;
pub(crate) use function::schema;

/// A tool of a live session.
///
/// ```
/// use sessile_live::{LiveTool, LiveToolContext, Scheduling};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order {
///     /// The order's number.
///     number: u32,
/// }
///
/// let find = LiveTool::function("find_order", "Finds an order", async |order: Order, ctx: LiveToolContext| {
///     ctx.state().try_set("order", order.number)?;
///     Ok(serde_json::json!({"found": true}))
/// });
/// let refund = LiveTool::function("refund", "Pays an order back", async |_: Order, _| Ok("done"))
///     .background(Scheduling::WhenIdle);
/// ```
#[derive(Clone)]
pub struct LiveTool {
    pub(crate) declaration: FunctionDeclaration,
    function: BoxedFunction,
    pub(crate) timeout: Duration,
    /// Set for a tool that the conversation does not wait for.
    pub(crate) background: Option<Scheduling>,
}

impl LiveTool {
    /// The default timeout of a tool.
    pub const TIMEOUT: Duration = Duration::from_secs(30);

    /// Continues the conversation while the tool runs. Its progress is in the keys
    /// `bg:<tool>_task_id`, `bg:<tool>_running`, `bg:<tool>_failed`, `bg:<tool>_result` and
    /// `bg:<tool>_error`. Vertex AI does not support background tools: there the model waits for
    /// the answer.
    #[must_use]
    pub fn background(mut self, scheduling: Scheduling) -> Self {
        self.background = Some(scheduling);
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.declaration.name
    }

    /// Runs the tool, and commits its changes of state only if it succeeds in time.
    pub(crate) async fn run(
        self,
        call: Arc<LiveToolCall>,
        state: State,
        changes: Option<Weak<Changes>>,
    ) -> (ToolResponse, ToolOutcome) {
        let view = match changes.as_ref().and_then(Weak::upgrade) {
            Some(changes) => changes.view(&state),
            None => state.with_delta_tracking(),
        };
        let context = LiveToolContext { state: view.clone(), call: call.clone() };
        let result = tokio::time::timeout(self.timeout, (self.function)(context)).await;
        let (mut response, outcome) = match result {
            Ok(Ok(value)) => match commit(&view, changes) {
                Ok(()) => (ToolResponse::new(&call, value), ToolOutcome::Completed),
                Err(error) => (ToolResponse::error(&call, error), ToolOutcome::Failed),
            },
            Ok(Err(error)) => (ToolResponse::error(&call, error), ToolOutcome::Failed),
            Err(_) => {
                let reason = format!("the tool did not answer within {:?}", self.timeout);
                (ToolResponse::error(&call, reason), ToolOutcome::TimedOut)
            }
        };
        response.scheduling = self.background;
        (response, outcome)
    }
}

/// Commits the changes of a tool; in a stored session, guarded by the values that it read.
fn commit(view: &State, changes: Option<Weak<Changes>>) -> Result<(), String> {
    match changes.map(|changes| changes.upgrade()) {
        None => view.try_commit().map_err(|error| error.to_string()),
        Some(Some(changes)) => changes.commit(view),
        Some(None) => Err("the session ended before the tool answered".to_owned()),
    }
}

impl std::fmt::Debug for LiveTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveTool").field("name", &self.declaration.name).finish_non_exhaustive()
    }
}

/// The context of a tool call.
#[derive(Debug, Clone)]
pub struct LiveToolContext {
    state: State,
    call: Arc<LiveToolCall>,
}

impl LiveToolContext {
    /// The session's state. The tool's changes are committed when it succeeds, and discarded when
    /// it fails, times out or is cancelled.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The call.
    pub fn call(&self) -> &LiveToolCall {
        &self.call
    }
}

/// What a tool returns.
pub(crate) type ToolResult = Result<Value, BoxError>;
