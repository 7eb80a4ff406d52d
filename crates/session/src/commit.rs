//! What travels to a store when an event is appended, and back.

use std::fmt;
use std::sync::Arc;

use sessile_state::{Scope, ScopedDelta, SharedValue};

use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::store::{SessionEvent, StateMap, StoredSession, Version};

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
    /// JSON without spaces. A commit that does not let a scope grow is committed however large the
    /// scope is.
    pub max_scope_bytes: Option<usize>,
    /// What the answer tells beside the event itself.
    pub answer: Answer,
}

/// What the answer to a commit tells beside the event itself. It is read in the commit's own
/// transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// The events that others appended after this one.
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

/// Tells a session from one that has the same address after it was deleted.
///
/// Sessions that were stored before Sessile knew incarnations all have the same one, 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The incarnation of a new session: a random number that a column of signed 64-bit integers
    /// can hold, not 0.
    pub fn random() -> Self {
        let random = uuid::Uuid::new_v4().as_u64_pair().1;
        Self((random & (u64::MAX >> 2)) | 1)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// What a commit is based on; what is `None` may be anything.
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

/// What happens when a key no longer holds what its writer had read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnOverwrite {
    /// The commit goes through, and its event tells what was overwritten, see [`Event::overwrote`].
    #[default]
    Report,
    /// Nothing is stored, and the refusal carries the current values.
    Refuse,
}

/// Reads the names that files, options and requests use: `report` and `refuse`.
impl std::str::FromStr for OnOverwrite {
    type Err = UnknownOnOverwrite;

    fn from_str(name: &str) -> Result<Self, UnknownOnOverwrite> {
        match name {
            "report" => Ok(Self::Report),
            "refuse" => Ok(Self::Refuse),
            other => Err(UnknownOnOverwrite(other.to_owned())),
        }
    }
}

/// A text that is neither `report` nor `refuse`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is `report` or `refuse`, not {0:?}")]
pub struct UnknownOnOverwrite(String);

/// The value that a change was computed from, compared when it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// What was read; `None` if the key was absent.
    pub read: Option<SharedValue>,
    /// What happens if the key holds something else.
    pub on_overwrite: OnOverwrite,
}

/// Guards of keys with their prefixes.
///
/// ```
/// use serde_json::json;
/// use sessile_session::{Guards, OnOverwrite};
///
/// let guards = Guards::new(OnOverwrite::Refuse).with_read("user:points", json!(5)).with_absent("user:name");
/// assert_eq!(guards.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guards {
    on_overwrite: OnOverwrite,
    /// In the order of their keys. A list, because most commits have none.
    guards: Vec<(String, Guard)>,
}

impl Guards {
    /// No guards yet; those that are added do this when a value differs.
    pub fn new(on_overwrite: OnOverwrite) -> Self {
        Self { on_overwrite, guards: Vec::new() }
    }

    /// Expects a key to hold this value.
    #[must_use]
    pub fn with_read(mut self, key: impl Into<String>, value: impl Into<SharedValue>) -> Self {
        self.insert(key.into(), Some(value.into()));
        self
    }

    /// Expects a key to be absent.
    #[must_use]
    pub fn with_absent(mut self, key: impl Into<String>) -> Self {
        self.insert(key.into(), None);
        self
    }

    /// Expects a key to hold this value, or to be absent.
    pub fn insert(&mut self, key: String, read: Option<SharedValue>) {
        self.insert_guard(key, Guard { read, on_overwrite: self.on_overwrite });
    }

    /// Guards a key as another guard does.
    pub fn insert_guard(&mut self, key: String, guard: Guard) {
        match self.place(&key) {
            Ok(place) => self.guards[place].1 = guard,
            Err(place) => self.guards.insert(place, (key, guard)),
        }
    }

    /// Adds the guards of others, in place of those of the same keys.
    pub fn extend(&mut self, others: Self) {
        if self.guards.is_empty() {
            self.guards = others.guards;
            return;
        }
        others.guards.into_iter().for_each(|(key, guard)| self.insert_guard(key, guard));
    }

    /// Keeps the guards of the keys that `keep` wants.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.guards.retain(|(key, _)| keep(key));
    }

    /// The guard of a key.
    pub fn get(&self, key: &str) -> Option<&Guard> {
        self.place(key).ok().map(|place| &self.guards[place].1)
    }

    /// Where the guard of a key is, or would be.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.guards.binary_search_by(|(held, _)| held.as_str().cmp(key))
    }

    /// How many keys are guarded.
    pub fn len(&self) -> usize {
        self.guards.len()
    }

    /// Whether no key is guarded.
    pub fn is_empty(&self) -> bool {
        self.guards.is_empty()
    }

    /// The keys with their guards, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Guard)> {
        self.guards.iter().map(|(key, guard)| (key.as_str(), guard))
    }

    /// The guards by scope, prefixes taken off; `temp:` keys are never stored and have none.
    pub fn split(self) -> ScopedGuards {
        let mut scoped = ScopedGuards::default();
        for (key, guard) in self.guards {
            let (scope, name) = Scope::of(&key);
            let guards = match scope {
                Scope::App => &mut scoped.app,
                Scope::User => &mut scoped.user,
                Scope::Session => &mut scoped.session,
                Scope::Temp => continue,
            };
            guards.push((name.to_owned(), guard));
        }
        scoped
    }
}

/// The guards of one scope, in the order of their names, which are without their prefix. A list,
/// because most commits have none.
pub type ScopeGuards = Vec<(String, Guard)>;

/// Guards separated by scope; names are without their prefix.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopedGuards {
    /// Guards of `app:` keys.
    pub app: ScopeGuards,
    /// Guards of `user:` keys.
    pub user: ScopeGuards,
    /// Guards of all keys without those prefixes.
    pub session: ScopeGuards,
}

impl ScopedGuards {
    /// Whether no key is guarded.
    pub fn is_empty(&self) -> bool {
        self.app.is_empty() && self.user.is_empty() && self.session.is_empty()
    }
}

/// What an append did, all of it as of its commit.
#[derive(Debug, Clone)]
pub struct Appended {
    /// Whether the session had an event with this id already. Then nothing was changed, and the
    /// rest tells of that event; whether it is the same is for the
    /// [`SessionService`](crate::SessionService) to decide.
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
    /// The event as it is stored: what its operations came to, and what it overwrote.
    pub event: Arc<Event>,
    /// What others appended between [`Answer::since`] and the event.
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
