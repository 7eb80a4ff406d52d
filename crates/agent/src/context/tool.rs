use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use sessile_session::ToolConfirmation;
use sessile_state::SharedValue;

use super::callback::CallbackContext;
use super::readonly::ReadonlyContext;

/// What a tool sees and may change. Its changes are committed with the event of its response, all
/// of them or, if the tool fails, none.
#[derive(Clone)]
pub struct ToolContext {
    callback: CallbackContext,
    call_id: Arc<str>,
    confirmation: Option<Arc<ToolConfirmation>>,
}

impl ToolContext {
    pub(crate) fn new(
        context: &ReadonlyContext,
        call_id: &str,
        confirmation: Option<ToolConfirmation>,
    ) -> Self {
        Self {
            callback: CallbackContext::new(context),
            call_id: call_id.into(),
            confirmation: confirmation.map(Arc::new),
        }
    }

    /// The id of the call that is answered.
    pub fn function_call_id(&self) -> &str {
        &self.call_id
    }

    /// The user's answer to the tool's request for confirmation; `None` if it has not asked yet.
    pub fn confirmation(&self) -> Option<&ToolConfirmation> {
        self.confirmation.as_deref()
    }

    /// Asks the user to confirm the call. The tool is called again when the answer has arrived,
    /// and finds it in [`confirmation`](Self::confirmation); what it returns now is a placeholder.
    pub fn request_confirmation(&self, hint: impl Into<String>, payload: Option<SharedValue>) {
        let request = ToolConfirmation {
            hint: Some(hint.into()),
            confirmed: Some(false),
            payload,
            ..Default::default()
        };
        self.with_actions(|actions| {
            actions.requested_tool_confirmations.insert(self.call_id.to_string(), request);
            actions.skip_summarization = Some(true);
        });
    }
}

impl Deref for ToolContext {
    type Target = CallbackContext;

    fn deref(&self) -> &CallbackContext {
        &self.callback
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("session", self.session_key())
            .field("agent", &self.agent_name())
            .field("call_id", &self.call_id)
            .finish_non_exhaustive()
    }
}
