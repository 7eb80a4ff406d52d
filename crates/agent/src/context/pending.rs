use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessile_session::{EventActions, Guards};
use sessile_state::{Change, Delta, Scope, State};

use super::readonly::ReadonlyContext;

/// What a callback or tool changed, until an event carries it.
pub(crate) struct Changes {
    pub(crate) context: ReadonlyContext,
    /// A view of the state that the agent sees.
    pub(crate) state: State,
    actions: Mutex<EventActions>,
    /// Whether the runtime created it for a callback or tool; otherwise an agent created it for
    /// itself.
    is_managed: bool,
    /// Whether the changes were taken for their event, or dropped.
    is_closed: AtomicBool,
}

/// What was done in a context, for the event that carries it.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) delta: Delta,
    /// What the event does beside carrying changes of state.
    pub(crate) actions: EventActions,
    /// The values that were read of the keys that were then set or removed.
    pub(crate) guards: Guards,
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
        let (state, reducers) = (&context.frame.state, &context.frame.rules.reducers);
        let state = match reducers.is_empty() {
            true => state.with_read_tracking(),
            false => state.with_reducers(reducers.clone()).with_read_tracking(),
        };
        Arc::new(Self {
            context: context.clone(),
            state: checked(context, state),
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
    pub(crate) fn take(&self) -> Taken {
        self.is_closed.store(true, Ordering::Relaxed);
        let delta = self.state.delta();
        let mut guards = Guards::new(self.context.frame.rules.on_overwrite);
        if !delta.is_empty() {
            // A key with a reducer is only set by `replace`, which is not compared with what was
            // read.
            let reducers = &self.context.frame.rules.reducers;
            let is_compared = |key: &str| {
                let is_reduced = reducers.get(key).is_some_and(|reducer| reducer.is_operation());
                Scope::of(key).0 != Scope::Temp && !is_reduced
            };
            for (key, read) in self.state.reads().iter().filter(|(key, _)| is_compared(key)) {
                if matches!(delta.get(key), Some(Change::Set(_) | Change::Remove)) {
                    guards.insert(key.to_owned(), read.cloned());
                }
            }
            self.state.rollback();
        }
        Taken { delta, actions: std::mem::take(&mut *self.actions()), guards }
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

/// A view whose writes are checked immediately if the application has a schema. So the error is
/// that of the callback or tool that wrote an invalid value, and does not refuse the others of its
/// step.
fn checked(context: &ReadonlyContext, view: State) -> State {
    let run = &context.invocation;
    match run.services.sessions.schema(run.key.app()) {
        Some(schema) => view.with_schema(schema.clone()),
        None => view,
    }
}

/// Changes that no event carries are lost. That is a bug in the application, so it is logged as an
/// error, and panics in debug builds. It is not a bug if the callback, tool or agent was cancelled
/// before its event.
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
