use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Whether the runtime made it for a callback or tool, and not an agent for itself.
    is_managed: bool,
    /// Whether the event that it is for was made.
    is_closed: AtomicBool,
}

impl Changes {
    /// Of a callback or tool: the runtime puts them into an event when it returns.
    pub(crate) fn managed(context: &ReadonlyContext) -> Arc<Self> {
        Self::new(context, true)
    }

    /// Of an agent, which emits them itself.
    pub(crate) fn own(context: &ReadonlyContext) -> Arc<Self> {
        Self::new(context, false)
    }

    fn new(context: &ReadonlyContext, is_managed: bool) -> Arc<Self> {
        Arc::new(Self {
            context: context.clone(),
            state: context.frame.state.with_delta_tracking(),
            actions: Mutex::default(),
            is_managed,
            is_closed: AtomicBool::new(false),
        })
    }

    /// What the event does beside carrying changes of state.
    pub(crate) fn actions(&self) -> MutexGuard<'_, EventActions> {
        self.actions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the changes out, for the event that carries them.
    pub(crate) fn take(&self) -> (Delta, EventActions) {
        self.is_closed.store(true, Ordering::Relaxed);
        let delta = self.state.delta();
        if !delta.is_empty() {
            self.state.rollback();
        }
        (delta, std::mem::take(&mut *self.actions()))
    }

    /// Forgets the changes of something that failed. Artifacts that were saved stay saved.
    pub(crate) fn forget(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.state.rollback();
        let mut actions = self.actions();
        if *actions != EventActions::default() {
            let artifacts = std::mem::take(&mut actions.artifact_delta);
            *actions = EventActions::default();
            if !artifacts.is_empty() {
                actions.artifact_delta = artifacts;
            }
        }
    }
}

/// Changes that no event carries are lost. That is a mistake in the program, and said loudly, unless the
/// callback, tool or agent was cut off before its event.
impl Drop for Changes {
    fn drop(&mut self) {
        let delta = self.state.delta();
        let was_cut_off = !*self.is_closed.get_mut() && (self.is_managed || self.context.is_cancelled());
        if delta.is_empty() || was_cut_off {
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
