//! A live session as a stored one: at the end of each turn what was said, called and changed
//! becomes events.

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
use crate::transcript::Turn;

/// The keys in which a session keeps what it needs to go on later.
pub(crate) mod keys {
    /// The phase of the conversation.
    pub(crate) const PHASE: &str = "live:phase";
    /// How many turns were complete.
    pub(crate) const TURN_COUNT: &str = "live:turn_count";
    /// The handle with which the server goes on with the conversation.
    pub(crate) const RESUME_HANDLE: &str = "live:resume_handle";
}

/// The stored session that a live one is attached to.
pub(crate) struct StoreLink {
    service: SessionService,
    key: SessionKey,
    /// Who the model is, as the author of events.
    author: String,
    /// Which session it is, if another one has its address later.
    incarnation: Incarnation,
    /// What the store holds, as far as this session knows.
    stored: StateMap,
    /// What the session changes.
    changes: Arc<Changes>,
    /// Events that are not stored yet, oldest first. Each stays as it is until it is: should it
    /// have been stored without our hearing of it, the same event again changes nothing.
    waiting: Vec<Waiting>,
    /// Keys whose stored values have yet to be brought into the session's state.
    moved: BTreeSet<String>,
}

/// An event that is not stored yet.
struct Waiting {
    event: Event,
    /// The values that its changes were computed from.
    guards: Guards,
}

/// What a session goes on from.
#[derive(Default)]
pub(crate) struct Restored {
    /// Whether there was a session.
    pub(crate) existed: bool,
    pub(crate) phase: Option<String>,
    pub(crate) turns: u32,
    pub(crate) resume_handle: Option<String>,
}

impl StoreLink {
    /// Reads the session, or makes it, and fills `state` from it.
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
                    // Somebody made it just now.
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
        // What only the application has put there is stored with the first turn.
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

    /// What the session changes, for its tools.
    pub(crate) fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// Stores a turn and what changed, and takes in what others changed meanwhile. Returns what
    /// went wrong; that is tried again with the next turn.
    pub(crate) async fn commit(&mut self, shared: &Shared, turn: &Turn, complete: bool) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(handle) = shared.wire.resume_handle()
            && let Err(error) = shared.state.try_set(keys::RESUME_HANDLE, handle)
        {
            problems.push(format!("the handle of the conversation cannot be noted: {error}"));
        }
        let (earlier, last) = self.changes.take();
        self.waiting.extend(self.events(shared, turn, complete, earlier, last));
        if let Err(error) = self.store_waiting(shared, &mut problems).await {
            problems.push(format!("the turn is not stored yet, and is tried again: {error}"));
        } else if let Err(error) = self.take_in().await {
            problems.push(format!("what others changed in the session cannot be read: {error}"));
        }
        self.show_moved();
        problems
    }
}

/// Whether a key outlives the live session.
fn is_stored(key: &str) -> bool {
    !["session:", "turn:", "derived:", "temp:"].iter().any(|prefix| key.starts_with(prefix))
}
