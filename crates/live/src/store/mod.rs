//! The stored session of a live one: at the end of each turn its messages, tool calls and changes
//! of state are committed as events.

mod events;
mod sync;

use std::collections::BTreeSet;
use std::sync::Arc;

use sessile_session::{
    CreateSession, Event, EventWindow, Guards, Incarnation, OnOverwrite, SessionError, SessionKey,
    SessionService, StateMap,
};
use sessile_state::{Delta, State};

use crate::changes::Changes;
use crate::shared::Shared;
use crate::transcript::LiveTurn;

/// The keys with which a session is restored.
pub(crate) mod keys {
    /// The phase of the conversation.
    pub(crate) const PHASE: &str = "live:phase";
    /// How many turns were complete.
    pub(crate) const TURN_COUNT: &str = "live:turn_count";
    /// The handle with which the server resumes the conversation.
    pub(crate) const RESUME_HANDLE: &str = "live:resume_handle";
}

/// The stored session that a live one is attached to.
pub(crate) struct StoreLink {
    service: SessionService,
    key: SessionKey,
    /// The author of the model's events.
    author: String,
    /// Identifies the session: another one with the same key could be created after a delete.
    incarnation: Incarnation,
    /// The stored state, as it was last seen.
    stored: StateMap,
    /// The changes that are not committed yet.
    changes: Arc<Changes>,
    /// Events that are not stored yet, oldest first. A retry sends the same event with the same id,
    /// so it is idempotent if an earlier attempt succeeded without an answer.
    waiting: Vec<Waiting>,
    /// Keys whose stored values changed, and must be copied to the session's state.
    moved: BTreeSet<String>,
}

/// An event that is not stored yet.
struct Waiting {
    event: Event,
    /// The values that the session read before it made the changes.
    guards: Guards,
}

/// What is restored from a stored session.
#[derive(Default)]
pub(crate) struct Restored {
    /// Whether the session existed.
    pub(crate) existed: bool,
    pub(crate) phase: Option<String>,
    pub(crate) turns: u32,
    pub(crate) resume_handle: Option<String>,
}

impl StoreLink {
    /// Reads or creates the session, and fills `state` from it.
    pub(crate) async fn attach(
        service: SessionService,
        key: SessionKey,
        author: String,
        state: &State,
        on_overwrite: Option<OnOverwrite>,
    ) -> Result<(Self, Restored), SessionError> {
        let (session, existed) = match service.get(&key, EventWindow::NONE).await? {
            Some(session) => (session, true),
            None => {
                let new = CreateSession::new(key.app(), key.user()).with_id(key.id());
                match service.create(new).await {
                    Ok(session) => (session, false),
                    // Created concurrently by another process.
                    Err(SessionError::AlreadyExists { key }) => {
                        let session = service.get(&key, EventWindow::NONE).await?;
                        (session.ok_or(SessionError::NotFound { key })?, true)
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let stored: StateMap = session
            .state()
            .iter()
            .filter(|(key, _)| is_stored(key))
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        let restored = Restored {
            existed,
            phase: session.state().get(keys::PHASE),
            turns: session.state().get(keys::TURN_COUNT).unwrap_or(0),
            resume_handle: session.state().get(keys::RESUME_HANDLE),
        };
        let delta: Delta = stored.iter().map(|(key, value)| (key, value.clone())).collect();
        let filling = |error| SessionError::Backend {
            action: "fill the live session's state",
            source: Box::new(error),
        };
        // Keys that only the application has set are stored with the first turn.
        let before = state.snapshot();
        let own = before.iter().filter(|(key, _)| is_stored(key) && !stored.contains_key(*key));
        let own: Delta = own.collect();
        state.try_apply(&delta).map_err(filling)?;
        let recorder = state.record(is_stored).ok_or_else(|| SessionError::Unusable {
            reason:
                "the live session's state is a delta view, or that of another live session which is stored; \
                     give each live session a state of its own"
                    .to_owned(),
        })?;
        state.try_apply(&own).map_err(filling)?;
        let schema = service.schema(key.app()).cloned();
        let on_overwrite = on_overwrite.unwrap_or_else(|| service.on_overwrite());
        let link = Self {
            service,
            key,
            author,
            incarnation: session.incarnation(),
            stored,
            changes: Arc::new(Changes::new(recorder, on_overwrite, schema)),
            waiting: Vec::new(),
            moved: BTreeSet::new(),
        };
        Ok((link, restored))
    }

    /// The changes of the session; tools commit theirs to it.
    pub(crate) fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// Stores a turn and its changes, and reads the changes of other writers. Returns the problems;
    /// what is not stored is retried with the next turn.
    pub(crate) async fn commit(&mut self, shared: &Shared, turn: &LiveTurn, complete: bool) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(handle) = shared.wire.resume_handle()
            && let Err(error) = shared.state.try_set(keys::RESUME_HANDLE, handle)
        {
            problems.push(format!("the resume handle cannot be written to state: {error}"));
        }
        let (earlier, last) = self.changes.take();
        self.waiting.extend(self.events(shared, turn, complete, earlier, last));
        if let Err(error) = self.store_waiting(shared, &mut problems).await {
            problems.push(format!(
                "the turn is not stored yet; it is tried again at the end of the next turn: {error}"
            ));
        } else if let Err(error) = self.read_changes().await {
            problems.push(format!("the changes of other writers cannot be read: {error}"));
        }
        self.show_moved();
        problems
    }
}

/// Whether a key is stored, and not only in the live session.
fn is_stored(key: &str) -> bool {
    !["session:", "turn:", "derived:", "temp:"].iter().any(|prefix| key.starts_with(prefix))
}
