//! What travels to a store when an event is appended, and back.

use std::sync::Arc;

use sessile_state::{Scope, ScopedDelta};

use crate::error::SessionError;
use crate::event::Event;
use crate::guard::ScopedGuards;
use crate::key::SessionKey;
use crate::state_map::StateMap;
use crate::stored_session::{SessionEvent, StoredSession};
use crate::version::{Incarnation, Version};

/// An event to be appended, and what it changes.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The session.
    pub key: SessionKey,
    /// The event; its `stateDelta` keeps its prefixes and may hold operations.
    pub event: Arc<Event>,
    /// What it changes, by scope.
    pub delta: ScopedDelta,
    /// What must be stored for it to be committed.
    pub expect: Expect,
    /// The values that its changes were computed from, by scope.
    pub guards: ScopedGuards,
    /// How large a scope's state may become by it: the bytes of its names, and of its values as
    /// JSON without spaces. A commit that does not increase a scope's size is accepted even if the
    /// scope exceeds the limit.
    pub max_scope_bytes: Option<usize>,
    /// What the response contains besides the event itself.
    pub answer: Answer,
}

/// What the response to a commit contains besides the event itself. It is read in the commit's own
/// transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// The events that other writers appended after this point.
    pub since: Option<Since>,
    /// The state of all three scopes.
    pub state: bool,
}

/// A point in the history of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The session; if another one has its address now, all events of that one are meant.
    pub incarnation: Incarnation,
    /// The version of the last event that is known.
    pub version: Version,
}

/// What must be stored for a commit to go through; `None` means any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Expect {
    /// Which session it is, if others had its address before.
    pub incarnation: Option<Incarnation>,
    /// The version of the session.
    pub session: Option<Version>,
    /// The version of the user's state.
    pub user: Option<Version>,
    /// The version of the application's state.
    pub app: Option<Version>,
}

impl Expect {
    /// A session's incarnation and version.
    pub fn session(incarnation: Incarnation, version: Version) -> Self {
        Self { incarnation: Some(incarnation), session: Some(version), ..Self::default() }
    }

    /// Compares the session with what is stored.
    ///
    /// # Errors
    ///
    /// [`SessionError::Replaced`] or [`SessionError::Conflict`] if it differs.
    pub fn check_session(
        &self,
        key: &SessionKey,
        incarnation: Incarnation,
        version: Version,
    ) -> Result<(), SessionError> {
        if self.incarnation.is_some_and(|expected| expected != incarnation) {
            return Err(SessionError::Replaced { key: key.clone() });
        }
        check(key, Scope::Session, self.session, version)
    }

    /// Compares the versions of shared state with what is stored.
    ///
    /// # Errors
    ///
    /// [`SessionError::Conflict`] for the first scope that differs.
    pub fn check_shared(&self, key: &SessionKey, user: Version, app: Version) -> Result<(), SessionError> {
        check(key, Scope::User, self.user, user)?;
        check(key, Scope::App, self.app, app)
    }
}

fn check(
    key: &SessionKey,
    scope: Scope,
    expected: Option<Version>,
    actual: Version,
) -> Result<(), SessionError> {
    match expected.filter(|expected| *expected != actual) {
        Some(expected) => Err(SessionError::Conflict { key: key.clone(), scope, expected, actual }),
        None => Ok(()),
    }
}

/// What an append did, all of it as of its commit.
#[derive(Debug, Clone)]
pub struct Appended {
    /// Whether the session had an event with this id already. Then nothing was changed, and the
    /// other fields describe that event; the [`SessionService`](crate::SessionService) decides
    /// whether it is the same event.
    pub is_known: bool,
    /// The event that was sent, if the session had one with its id already. It comes back to be
    /// compared with that one: a store owns the event that it is given, so that it can store it
    /// without copying it.
    pub sent: Option<Arc<Event>>,
    /// The session's version since the event.
    pub version: Version,
    /// When the session was last changed, by this event's time or a moment later.
    pub update_time: f64,
    /// Which session it is.
    pub incarnation: Incarnation,
    /// The event as it is stored: with the results of its operations, and what it overwrote.
    pub event: Arc<Event>,
    /// What other writers appended between [`Answer::since`] and the event.
    pub between: Vec<SessionEvent>,
    /// The state of the three scopes, if it was asked for.
    pub state: Option<Scopes>,
}

/// The state of three scopes at one moment.
#[derive(Debug, Clone)]
pub struct Scopes {
    /// The session's own.
    pub session: Arc<StateMap>,
    /// The user's.
    pub user: Arc<StateMap>,
    /// How often the user's state was written.
    pub user_version: Version,
    /// The application's.
    pub app: Arc<StateMap>,
    /// How often the application's state was written.
    pub app_version: Version,
}

impl From<&StoredSession> for Scopes {
    fn from(stored: &StoredSession) -> Self {
        Self {
            session: stored.session.clone(),
            user: stored.user.clone(),
            user_version: stored.user_version,
            app: stored.app.clone(),
            app_version: stored.app_version,
        }
    }
}
