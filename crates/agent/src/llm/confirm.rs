//! Tools that ask the user first.

use sessile_session::Event;

use super::LlmAgent;
use super::step::Next;
use crate::context::InvocationContext;
use crate::error::AgentError;

impl LlmAgent {
    /// The question to the user that goes with responses of tools that asked for it.
    pub(super) fn confirmation_event(&self, _ctx: &InvocationContext, _responses: &Event) -> Option<Event> {
        None
    }

    pub(super) async fn resume(&self, _ctx: &InvocationContext) -> Result<Next, AgentError> {
        Ok(Next::AskAgain)
    }
}
