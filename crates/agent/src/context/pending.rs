use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessile_session::EventActions;
use sessile_state::{Delta, State};

use super::readonly::ReadonlyContext;

/// What a callback or tool changed, until an event carries it.
pub(crate) struct Changes {
    pub(crate) context: ReadonlyContext,
    /// A view of the state that the agent sees.
    pub(crate) state: State,
    actions: Mutex<EventActions>,
}

impl Changes {
    pub(crate) fn new(context: &ReadonlyContext) -> Arc<Self> {
        let state = context.frame.state.with_delta_tracking();
        Arc::new(Self { context: context.clone(), state, actions: Mutex::default() })
    }

    /// What the event does beside carrying changes of state.
    pub(crate) fn actions(&self) -> MutexGuard<'_, EventActions> {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the changes out, for the event that carries them.
    pub(crate) fn take(&self) -> (Delta, EventActions) {
        let delta = self.state.delta();
        if !delta.is_empty() {
            self.state.rollback();
        }
        (delta, std::mem::take(&mut *self.actions()))
    }

    /// Forgets the changes of something that failed. Artifacts that were saved stay saved.
    pub(crate) fn forget(&self) {
        self.state.rollback();
        let mut actions = self.actions();
        if *actions != EventActions::default() {
            let artifacts = std::mem::take(&mut actions.artifact_delta);
            *actions = EventActions::default();
            actions.artifact_delta = artifacts;
        }
    }
}

/// Changes that no event carried are lost, which is a mistake in the program, unless the run was
/// cancelled.
impl Drop for Changes {
    fn drop(&mut self) {
        let delta = self.state.delta();
        if delta.is_empty() || self.context.is_cancelled() {
            return;
        }
        let keys: Vec<&str> = delta.iter().map(|(key, _)| key).collect();
        let (agent, session) = (self.context.agent_name(), self.context.session_key());
        tracing::error!(
            agent, %session, ?keys,
            "state changes were lost: agent `{agent}` made them in a context that no event carried any more"
        );
        if cfg!(debug_assertions) && !std::thread::panicking() {
            panic!(
                "agent `{agent}` changed {keys:?} of session {session} in a context that no event carried any \
                 more, so the changes are lost; write before the callback or tool returns, or emit the context"
            );
        }
    }
}
