//! A live session as a stored one: at the end of each turn what was said, called and changed becomes events.

mod events;
mod sync;

use std::collections::BTreeMap;

use sessile_session::{
    CreateSession, Event, EventWindow, Expect, SessionError, SessionKey, SessionService, StateMap, apply,
};
use sessile_state::{Delta, SharedValue, State};

use crate::shared::{Shared, lock};
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
    /// What the store holds, as far as this session knows.
    stored: StateMap,
    /// The incarnation of the session, and the versions of the three scopes that `stored` belongs to.
    versions: Expect,
    /// Events that are not stored yet, oldest first. Each stays as it is until it is: should it have been stored without our
    /// hearing of it, the same event again changes nothing.
    waiting: Vec<Event>,
    /// Keys that cannot be stored, and the values that they have: told once, not with every turn.
    refused: BTreeMap<String, SharedValue>,
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
        state.try_apply(&delta).map_err(|error| SessionError::Backend {
            action: "fill the live session's state",
            source: Box::new(error),
        })?;
        let link = Self {
            service,
            key,
            author,
            stored,
            versions: session.versions(),
            waiting: Vec::new(),
            refused: BTreeMap::new(),
        };
        Ok((link, restored))
    }

    /// Stores a turn and what changed, and takes in what others changed meanwhile. Returns what went wrong; that is tried
    /// again with the next turn.
    pub(crate) async fn commit(&mut self, shared: &Shared, turn: &Turn, complete: bool) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(handle) = lock(&shared.resume).clone()
            && let Err(error) = shared.state.try_set(keys::RESUME_HANDLE, handle)
        {
            problems.push(format!("the handle of the conversation cannot be noted: {error}"));
        }
        self.waiting.extend(self.events(shared, turn, complete));
        if let Err(error) = self.store_waiting(shared, &mut problems).await {
            problems.push(format!("the turn is not stored yet, and is tried again: {error}"));
            return problems;
        }
        if let Err(error) = self.take_in(shared, &mut problems).await {
            problems.push(format!("what others changed in the session cannot be read: {error}"));
        }
        problems
    }

    /// What is in state and not in the store, and the other way round.
    fn delta(&self, state: &State) -> Delta {
        let mut stored = self.stored.clone();
        for event in &self.waiting {
            apply(&mut stored, &event.actions.state_delta);
        }
        let now = state.snapshot();
        let mut delta = Delta::new();
        for (key, value) in now.iter().filter(|(key, _)| is_stored(key)) {
            let before = stored.remove(key);
            if before.as_ref() != Some(&value) && self.refused.get(key) != Some(&value) {
                delta.set(key, value);
            }
        }
        stored.into_keys().for_each(|key| delta.remove(key));
        delta
    }
}

/// Whether a key outlives the live session.
fn is_stored(key: &str) -> bool {
    !["session:", "turn:", "derived:", "temp:"].iter().any(|prefix| key.starts_with(prefix))
}
