use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use sessile_artifact::ArtifactService;
use sessile_memory::MemoryService;
use sessile_session::{
    Append, Content, Event, EventWindow, Session, SessionError, SessionKey, SessionService, SessionState,
    Version,
};
use sessile_state::{Delta, Scope, SharedValue, State};
use tokio::sync::RwLock;

use super::frame::Frame;
use super::outer::Outer;
use crate::agent::tree::Tree;
use crate::error::AgentError;
use crate::event_queue::EventQueue;
use crate::run_request::RunConfig;
use crate::turn::Turn;

/// One run: what all its agents, callbacks and tools share.
pub(crate) struct Invocation {
    pub(crate) key: SessionKey,
    pub(crate) id: String,
    pub(crate) user_content: Option<Content>,
    pub(crate) config: RunConfig,
    pub(crate) services: Arc<Services>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) turn: Arc<Turn>,
    pub(crate) queue: Arc<EventQueue>,
    /// The session as this run knows it; written by commits only.
    pub(crate) session: Arc<RwLock<Session>>,
    /// Whether the session holds all events of the window; otherwise only the last few were read.
    pub(crate) whole: AtomicBool,
    /// The committed state, and `temp:` keys.
    pub(crate) state: State,
    /// The number of model calls, including those of agents that are tools.
    pub(crate) model_calls: Arc<AtomicU32>,
}

/// The services of a runner.
pub(crate) struct Services {
    pub(crate) sessions: SessionService,
    pub(crate) artifacts: Option<Arc<dyn ArtifactService>>,
    pub(crate) memory: Option<Arc<dyn MemoryService>>,
    /// The tool call that the runs are part of, if their agent is a tool.
    pub(crate) outer: Option<Arc<Outer>>,
}

impl Invocation {
    /// Commits an event, applies its changes to the state that its agent sees, and passes it on.
    pub(crate) async fn emit(
        &self,
        frame: &Arc<Frame>,
        mut append: Append,
    ) -> Result<Arc<Event>, AgentError> {
        append.event = self.complete(frame, append.event);
        let event = if append.event.is_partial() {
            if self.turn.is_over() {
                return Err(AgentError::Cancelled);
            }
            Arc::new(self.piece(append.event))
        } else {
            self.commit(frame, append).await?
        };
        self.queue.put(event.clone()).await;
        Ok(event)
    }

    /// Commits an event and applies its changes, without passing it on. The commit is finished and
    /// applied even if the caller stops waiting for it.
    ///
    /// The state that the agent sees gets what was *stored*: for an operation that is its result,
    /// which counts what other sessions wrote. The service stores no `temp:` keys, so those changes
    /// are applied from the event as it was given. If a guard refuses the event, the run learns the
    /// values that are stored: the next tool that reads them computes from those.
    pub(crate) async fn commit(&self, frame: &Arc<Frame>, append: Append) -> Result<Arc<Event>, AgentError> {
        let intended = append.event.actions.state_delta.clone();
        let temporary = temporary(&intended);
        let mut session = self.session.clone().write_owned().await;
        // Tried before the commit: once the event is stored, all of it must be applied.
        temporary.resolved(|key| frame.state.get_raw(key)).map_err(AgentError::other)?;
        let (services, state, frame) = (self.services.clone(), self.state.clone(), frame.clone());
        let committed = self.turn.commit(Box::pin(async move {
            let (sessions, version) = (&services.sessions, session.version());
            if let Some(outer) = &services.outer {
                outer.note_reads(append.guards.iter().map(|(key, _)| key));
            }
            let stored = match sessions.append_as(&mut session, append).await {
                Ok(stored) => stored,
                Err(error) => {
                    if let SessionError::Overwritten { current } = &error {
                        take_in_current(&state, &frame, current)?;
                    }
                    return Err(error.into());
                }
            };
            let others_wrote = session.version() > version + 1;
            if others_wrote {
                take_in(&state, &session, version, &stored.id)?;
            }
            // An event that the session had already is in the state, too.
            if session.version() > version && !intended.is_empty() {
                frame.state.try_apply(&stored.actions.state_delta).map_err(AgentError::other)?;
                frame.note_operations(&intended);
            }
            if !temporary.is_empty() {
                frame.state.try_apply(&temporary).map_err(AgentError::other)?;
            }
            if others_wrote {
                refresh_shared(&state, sessions, &session).await?;
            }
            if stored.actions.escalate == Some(true) {
                frame.escalate();
            }
            if let Some(target) = &stored.actions.transfer_to_agent {
                *frame.transfer() = Some(target.clone());
            }
            Ok(stored)
        }));
        committed.await
    }

    /// Counts a model call.
    pub(crate) fn count_model_call(&self) -> Result<(), AgentError> {
        let limit = self.config.max_llm_calls;
        let calls = self.model_calls.fetch_add(1, Ordering::Relaxed);
        if limit > 0 && calls >= limit { Err(AgentError::LimitExceeded { limit }) } else { Ok(()) }
    }

    /// Reads the events before those that were read at the beginning, if it has not been done yet.
    pub(crate) async fn load_all(&self) -> Result<(), AgentError> {
        if self.whole.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut session = self.session.write().await;
        if !self.whole.load(Ordering::Acquire) {
            let version = session.version();
            if let Some(all) = self.services.sessions.get(&self.key, self.config.window).await? {
                if all.incarnation() != session.incarnation() {
                    return Err(SessionError::Replaced { key: self.key.clone() }.into());
                }
                *session = all;
                if session.version() > version {
                    take_in(&self.state, &session, version, "")?;
                    take_in_shared(&self.state, session.state())?;
                }
            }
            self.whole.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Fills in the empty fields of an event.
    pub(crate) fn complete(&self, frame: &Frame, mut event: Event) -> Event {
        if event.invocation_id.is_empty() {
            event.invocation_id.clone_from(&self.id);
        }
        if event.author.is_empty() {
            event.author.clone_from(&frame.agent);
        }
        if event.branch.is_none() {
            event.branch.clone_from(&frame.branch);
        }
        if event.author == frame.agent && event.node_info.path.is_empty() {
            self.tree.node_path(&frame.agent).clone_into(&mut event.node_info.path);
        }
        for (name, value) in self.config.custom_metadata.iter().filter(|(name, _)| !is_reserved(name)) {
            let metadata = event.custom_metadata.get_or_insert_default();
            metadata.entry(name.clone()).or_insert_with(|| value.clone());
        }
        event
    }

    /// A partial event: it changes no state, and has an id and a time although it is not stored.
    fn piece(&self, mut event: Event) -> Event {
        event.actions.state_delta = Delta::new();
        if event.id.is_empty() {
            event.id = self.services.sessions.new_id();
        }
        if event.timestamp.is_none() {
            event.timestamp = Some(self.services.sessions.now());
        }
        event
    }
}

/// Whether metadata of this name has a meaning for the runtime, such as which keys an event
/// removes. The caller of a run must not set it.
fn is_reserved(name: &str) -> bool {
    name.starts_with("__adk_internal_") || name.starts_with("sessile:")
}

/// The changes of `temp:` keys.
fn temporary(delta: &Delta) -> Delta {
    let is_temporary = |key: &str| Scope::of(key).0 == Scope::Temp;
    if !delta.iter().any(|(key, _)| is_temporary(key)) {
        return Delta::new();
    }
    let mut temporary = delta.clone();
    temporary.retain(is_temporary);
    temporary
}

/// Takes over the values that a guard found instead of those that were read.
fn take_in_current(
    state: &State,
    frame: &Frame,
    current: &BTreeMap<String, Option<SharedValue>>,
) -> Result<(), AgentError> {
    let mut delta = Delta::new();
    for (key, value) in current {
        match value {
            Some(value) => delta.set(key, value.clone()),
            None => delta.remove(key),
        }
    }
    state.try_apply(&delta).map_err(AgentError::other)?;
    // A parallel branch that changed a key itself before shows its own value.
    delta.retain(|key| frame.state.get_raw(key).as_ref() != current.get(key).and_then(Option::as_ref));
    frame.state.try_apply(&delta).map_err(AgentError::other)
}

/// Takes over what others committed to the session while this run did, except this run's own event.
/// Their events hold results only, so applying them in order gives what is stored.
fn take_in(state: &State, session: &Session, known: Version, own: &str) -> Result<(), AgentError> {
    let news = session.events().iter().rev().take_while(|event| event.version > known);
    let foreign: Vec<_> = news.filter(|event| event.id != own).collect();
    let mut delta = Delta::new();
    for event in foreign.iter().rev() {
        delta.merge(&event.actions.state_delta).map_err(AgentError::other)?;
    }
    state.try_apply(&delta).map_err(AgentError::other)
}

/// Reads what other sessions made of the application's and the user's state. If that fails, the run
/// goes on with what it knows, which is stale but consistent: the event is committed, and no read
/// may turn that into a failure.
async fn refresh_shared(
    state: &State,
    sessions: &SessionService,
    session: &Session,
) -> Result<(), AgentError> {
    match sessions.get(session.key(), EventWindow::NONE).await {
        Ok(Some(now)) if now.incarnation() == session.incarnation() => take_in_shared(state, now.state()),
        // It was deleted: the next commit finds out.
        Ok(_) => Ok(()),
        Err(error) => {
            tracing::warn!(%error, session = %session.key(), "cannot read what other sessions changed");
            Ok(())
        }
    }
}

/// Makes the application's and the user's keys what is stored.
fn take_in_shared(state: &State, stored: &SessionState) -> Result<(), AgentError> {
    let is_shared = |key: &str| matches!(Scope::of(key).0, Scope::App | Scope::User);
    let mut delta: Delta = stored
        .iter()
        .filter(|(key, value)| is_shared(key) && state.get_raw(key).as_ref() != Some(value))
        .map(|(key, value)| (key, value.clone()))
        .collect();
    for key in state.keys().iter().filter(|key| is_shared(key) && !stored.contains(key)) {
        delta.remove(key);
    }
    state.try_apply(&delta).map_err(AgentError::other)
}
