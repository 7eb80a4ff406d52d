use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use sessile_session::EventActions;
use sessile_state::State;

use super::pending::Changes;
use super::readonly::ReadonlyContext;

/// What a callback sees and may change. Its changes are committed with the event that the callback
/// is part of, all of them or none.
///
/// ```
/// use sessile_agent::{CallbackContext, AgentCallbacks};
///
/// let callbacks = AgentCallbacks::new().before(async |ctx: CallbackContext| {
///     ctx.state().add("user:visits", 1);
///     Ok(None)
/// });
/// ```
#[derive(Clone)]
pub struct CallbackContext {
    pub(crate) changes: Arc<Changes>,
}

impl CallbackContext {
    pub(crate) fn new(context: &ReadonlyContext) -> Self {
        Self { changes: Changes::managed(context) }
    }

    /// For an agent that emits its changes itself.
    pub(crate) fn own(context: &ReadonlyContext) -> Self {
        Self { changes: Changes::own(context) }
    }

    /// The state, to read and to change. Changes are pending until the event is committed.
    pub fn state(&self) -> &State {
        &self.changes.state
    }

    /// Asks the agents above, usually a loop, to stop after this.
    pub fn escalate(&self) {
        self.changes.actions().escalate = Some(true);
    }

    /// Transfers to another agent after this.
    pub fn transfer_to(&self, agent: impl Into<String>) {
        self.changes.actions().transfer_to_agent = Some(agent.into());
    }

    /// Makes a tool's result the final answer: the model is not asked again.
    pub fn skip_summarization(&self) {
        self.changes.actions().skip_summarization = Some(true);
    }

    /// Changes the other actions of the event.
    pub fn with_actions<T>(&self, change: impl FnOnce(&mut EventActions) -> T) -> T {
        change(&mut self.changes.actions())
    }
}

impl Deref for CallbackContext {
    type Target = ReadonlyContext;

    fn deref(&self) -> &ReadonlyContext {
        &self.changes.context
    }
}

impl fmt::Debug for CallbackContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackContext")
            .field("session", self.session_key())
            .field("agent", &self.agent_name())
            .finish_non_exhaustive()
    }
}
