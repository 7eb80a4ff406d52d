use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sessile_session::{Append, Content, Event, EventActions, Guards, OnOverwrite};
use sessile_state::{Change, Scope};

use super::callback::CallbackContext;
use super::frame::Frame;
use super::pending::Taken;
use super::readonly::ReadonlyContext;
use crate::actions::join_actions;
use crate::agent::Agent;
use crate::error::AgentError;

/// The context of an agent: what it sees of a run, and where it emits its events.
#[derive(Clone)]
pub struct InvocationContext {
    pub(crate) context: ReadonlyContext,
}

impl InvocationContext {
    /// Commits an event and passes it to the reader of the run's stream; a partial event is only
    /// passed on, not stored. Author, invocation, branch and id are filled in where they are empty.
    /// Returns the event as it was stored, after the commit and after the reader took it.
    ///
    /// `user:` and `app:` keys that the event sets are compared with what this agent sees of them:
    /// if another session changed them since, the event reports it. Changes that are made in a
    /// context, see [`changes`](Self::changes), are compared with what was read there. Keys with a
    /// reducer are changed by the difference.
    ///
    /// # Errors
    ///
    /// [`AgentError::Cancelled`] if the run is over; [`AgentError::Session`] if the event cannot be
    /// stored. Nothing is changed then.
    pub async fn emit(&self, mut event: Event) -> Result<Arc<Event>, AgentError> {
        if event.actions.state_delta.is_empty() {
            return self.emit_as(event).await;
        }
        self.reduce(&mut event)?;
        let guards = self.seen(&event);
        self.emit_as(Append::new(event).guarded(guards)).await
    }

    /// Commits an event under conditions, and passes it on.
    pub(crate) async fn emit_as(&self, append: impl Into<Append>) -> Result<Arc<Event>, AgentError> {
        self.invocation.emit(&self.frame, append.into()).await
    }

    /// Turns what an event sets of keys that have a reducer into operations.
    fn reduce(&self, event: &mut Event) -> Result<(), AgentError> {
        let reducers = &self.frame.rules.reducers;
        let delta = &mut event.actions.state_delta;
        let mut plain = delta.clone();
        plain.retain(|key| reducers.contains_key(key) && !matches!(delta.get(key), Some(Change::Operate(_))));
        if plain.is_empty() {
            return Ok(());
        }
        let view = self.frame.state.with_reducers(reducers.clone()).with_delta_tracking();
        view.try_apply(&plain).map_err(AgentError::other)?;
        delta.retain(|key| plain.get(key).is_none());
        delta.merge(&view.delta()).map_err(AgentError::other)
    }

    /// Guards of the shared keys that an event sets or removes, with the values that this agent
    /// sees.
    fn seen(&self, event: &Event) -> Guards {
        let mut guards = Guards::new(OnOverwrite::Report);
        for (key, change) in event.actions.state_delta.iter() {
            let is_shared = matches!(Scope::of(key).0, Scope::User | Scope::App);
            if is_shared && !matches!(change, Change::Operate(_)) {
                guards.insert(key.to_owned(), self.frame.state.get_raw(key));
            }
        }
        guards
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
        let taken = changes.changes.take();
        self.reduce(&mut event)?;
        let mut guards = self.seen(&event);
        guards.extend(add_changes(&mut event, taken)?);
        self.emit_as(Append::new(event).guarded(guards)).await
    }

    /// A context to make changes in, for [`emit_with`](Self::emit_with).
    pub fn changes(&self) -> CallbackContext {
        CallbackContext::own(&self.context)
    }

    /// Whether this agent or one below asked the agents above to stop.
    pub fn has_escalated(&self) -> bool {
        self.frame.escalated.load(Ordering::Relaxed)
    }

    /// Whether a loop or another agent above stops now, because one below it escalated.
    pub fn is_stopped(&self) -> bool {
        self.frame.is_stopped()
    }

    /// The context of another frame of the same run.
    pub(crate) fn at(&self, frame: Arc<Frame>) -> Self {
        Self { context: ReadonlyContext { invocation: self.invocation.clone(), frame } }
    }

    pub(crate) fn below(&self, agent: &dyn Agent) -> Self {
        self.at(self.frame.below(agent))
    }

    /// Emits the content and the changes of callbacks, if there are any. If `add` fails, the event
    /// is emitted nevertheless.
    pub(crate) async fn emit_changes(
        &self,
        content: Option<Content>,
        changes: &CallbackContext,
        add: impl FnOnce(&mut Event) -> Result<(), AgentError>,
    ) -> Result<(), AgentError> {
        let taken = changes.changes.take();
        if content.is_none() && taken.delta.is_empty() && taken.actions == EventActions::default() {
            return Ok(());
        }
        let mut event = Event { content, ..Event::default() };
        let guards = add_changes(&mut event, taken)?;
        let added = add(&mut event);
        self.emit_as(Append::new(event).guarded(guards)).await?;
        added
    }
}

/// Puts changes into an event, each after what the event does to its key already. Returns the
/// guards of the event.
///
/// # Errors
///
/// [`AgentError::Other`] if the event sets a key to a value that one of the operations cannot be
/// applied to.
pub(crate) fn add_changes(event: &mut Event, taken: Taken) -> Result<Guards, AgentError> {
    join_actions(&mut event.actions, taken.actions).map_err(AgentError::other)?;
    event.actions.state_delta.merge(&taken.delta).map_err(AgentError::other)?;
    Ok(taken.guards)
}

impl Deref for InvocationContext {
    type Target = ReadonlyContext;

    fn deref(&self) -> &ReadonlyContext {
        &self.context
    }
}

impl fmt::Debug for InvocationContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvocationContext")
            .field("session", self.session_key())
            .field("agent", &self.agent_name())
            .finish_non_exhaustive()
    }
}
