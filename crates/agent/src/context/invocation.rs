use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sessile_session::{Content, Event, EventActions};
use sessile_state::Delta;

use super::callback::CallbackContext;
use super::readonly::{Frame, ReadonlyContext};
use crate::agent::Agent;
use crate::error::AgentError;
use crate::runner;

/// What an agent sees of a run, and where its events go.
#[derive(Clone)]
pub struct InvocationContext {
    pub(crate) context: ReadonlyContext,
}

impl InvocationContext {
    /// Commits an event and hands it to whoever reads the run's stream; a partial event is handed on
    /// and not stored. Author, invocation, branch and id are filled in where they are empty. Returns the event
    /// as it was stored, after the commit and after the reader took it.
    ///
    /// # Errors
    ///
    /// [`AgentError::Cancelled`] if the run is over; [`AgentError::Session`] if the event cannot be stored.
    /// Nothing is changed then.
    pub async fn emit(&self, event: Event) -> Result<Arc<Event>, AgentError> {
        self.invocation.emit(&self.frame, event).await
    }

    /// [`emit`](Self::emit), with the changes that were made in a context.
    ///
    /// # Errors
    ///
    /// As [`emit`](Self::emit).
    pub async fn emit_with(
        &self,
        mut event: Event,
        changes: CallbackContext,
    ) -> Result<Arc<Event>, AgentError> {
        let (delta, actions) = changes.changes.take();
        add_changes(&mut event, delta, actions)?;
        self.emit(event).await
    }

    /// A context to make changes in, for [`emit_with`](Self::emit_with).
    pub fn changes(&self) -> CallbackContext {
        CallbackContext::own(&self.context)
    }

    /// Runs an agent, its callbacks, and the agents that it hands over to.
    ///
    /// # Errors
    ///
    /// [`AgentError::Failed`] if it fails; an event says so already.
    pub async fn run(&self, agent: &Arc<dyn Agent>) -> Result<(), AgentError> {
        runner::run_agents(self, agent.clone()).await
    }

    /// Whether this agent or one below asked the agents above to stop.
    pub fn has_escalated(&self) -> bool {
        self.frame.escalated.load(Ordering::Relaxed)
    }

    /// Whether a loop or another agent above stops now, because one below it escalated.
    pub fn is_stopped(&self) -> bool {
        self.frame.is_stopped()
    }

    /// The same run at another place in the tree.
    pub(crate) fn at(&self, frame: Arc<Frame>) -> Self {
        Self { context: ReadonlyContext { invocation: self.invocation.clone(), frame } }
    }

    pub(crate) fn below(&self, agent: &str) -> Self {
        self.at(self.frame.below(agent))
    }

    /// Emits what a callback said and changed, if it did either, also if `add` fails.
    pub(crate) async fn emit_changes(
        &self,
        content: Option<Content>,
        changes: &CallbackContext,
        add: impl FnOnce(&mut Event) -> Result<(), AgentError>,
    ) -> Result<(), AgentError> {
        let (delta, actions) = changes.changes.take();
        if content.is_none() && delta.is_empty() && actions == EventActions::default() {
            return Ok(());
        }
        let mut event = Event { content, ..Event::default() };
        add_changes(&mut event, delta, actions)?;
        let added = add(&mut event);
        self.emit(event).await?;
        added
    }
}

/// Puts changes into an event, each after what the event does to its key already.
///
/// # Errors
///
/// [`AgentError::Other`] if the event sets a key to a value that one of the operations cannot be applied to.
pub(crate) fn add_changes(event: &mut Event, delta: Delta, actions: EventActions) -> Result<(), AgentError> {
    runner::join_actions(&mut event.actions, actions).map_err(AgentError::other)?;
    event.actions.state_delta.merge(&delta).map_err(AgentError::other)
}

impl Deref for InvocationContext {
    type Target = ReadonlyContext;

    fn deref(&self) -> &ReadonlyContext {
        &self.context
    }
}
