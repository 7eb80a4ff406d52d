//! Where sessions are kept.
//!
//! To write a store, implement [`Store`] and run `sessile-conformance` on it; the memory store
//! is the shortest example. `docs/adding-a-store.md` walks through it.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use sessile_state::{Change, Delta, SharedValue};

use crate::commit::{Appended, Commit, Expect, Incarnation};
use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::page::StoredPage;
use crate::scope_change::ScopeChange;
use crate::scope_write::{ScopeKey, ScopeState, ScopeWrite, ScopeWritten};

/// A revision: 0 at creation, one more with every event. Order and conflicts come from it, never
/// from a clock.
pub type Version = u64;

/// Keys without prefix, and their values.
pub type StateMap = BTreeMap<String, SharedValue>;

/// A place where sessions are kept.
///
/// It never sees a prefix: the service separates the scopes and drops `temp:` keys before. The
/// contract is executable: `sessile-conformance` has a test for each sentence of this
/// documentation, and every store runs all of them.
#[async_trait]
pub trait Store: Send + Sync {
    /// Writes a new session, its events and its changes of application and user state together,
    /// or nothing. Returns the session as [`get`](Self::get) would.
    ///
    /// # Errors
    ///
    /// [`SessionError::AlreadyExists`] if there is a session with this key; it stays untouched.
    /// [`SessionError::Operation`] if an operation on shared state cannot be applied;
    /// [`SessionError::TooLarge`].
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError>;

    /// Reads a session as it is at one moment, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`SessionError::Corrupt`] if a row cannot be understood.
    async fn get(&self, key: &SessionKey, window: EventWindow)
    -> Result<Option<StoredSession>, SessionError>;

    /// Reads a page of sessions, without their events. Costs what the page costs: state that they
    /// share is read once. A session that cannot be understood is told of, and hides no other.
    /// [`PageWriter`](crate::PageWriter) keeps these rules.
    ///
    /// # Errors
    ///
    /// Those of the store.
    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError>;

    /// Removes a session and its events; application and user state stay. Tells whether there
    /// was one.
    ///
    /// # Errors
    ///
    /// [`SessionError::Replaced`] or [`SessionError::Conflict`] if the session is not the expected
    /// one.
    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError>;

    /// Writes an event and the changes of the three scopes together, or nothing. Its cost depends
    /// neither on the length of the history nor on other sessions.
    ///
    /// In one transaction: looks for an event with this id, and if there is one changes nothing and
    /// returns it, whatever is expected; compares what is expected, and the guards; computes
    /// operations and sizes in all scopes; only then writes the event, the scopes, and the change
    /// of each shared scope to its history. [`evaluate`] does the computing for stores that keep
    /// state in this process.
    ///
    /// [`evaluate`]: crate::evaluate
    ///
    /// # Errors
    ///
    /// - [`SessionError::NotFound`] if there is no session with this key;
    /// - [`SessionError::Replaced`] or [`SessionError::Conflict`] if something is not as expected;
    /// - [`SessionError::Overwritten`] if a guard refuses the commit;
    /// - [`SessionError::Operation`] if an operation cannot be applied to what is stored;
    /// - [`SessionError::TooLarge`] if a scope would be larger than its limit.
    async fn append(&self, commit: Commit) -> Result<Appended, SessionError>;

    /// Reads the state of an application or a user; empty if nothing was ever written.
    ///
    /// # Errors
    ///
    /// [`SessionError::Corrupt`] if the row cannot be understood.
    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError>;

    /// Changes the state of an application or a user, without a session, and notes the change in
    /// its history. A second write with the same request id changes nothing, whatever is expected,
    /// and returns what the first did.
    ///
    /// # Errors
    ///
    /// [`SessionError::ScopeConflict`] if another version is stored; [`SessionError::Overwritten`],
    /// [`SessionError::Operation`] and [`SessionError::TooLarge`] as [`append`](Self::append).
    async fn write_scope(&self, write: ScopeWrite) -> Result<ScopeWritten, SessionError>;

    /// Reads a window of the changes of shared state, in the order that it asks for.
    ///
    /// # Errors
    ///
    /// [`SessionError::Corrupt`] if a row cannot be understood.
    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError>;

    /// Forgets changes of shared state that were committed before a time in Unix seconds, oldest
    /// first; the newest of a scope stays. It is one small step: at most `limit` scopes after
    /// `after` are looked at, in an order of the store's own, and at most about `limit` changes are
    /// removed. The answer says where the next step goes on.
    ///
    /// # Errors
    ///
    /// Those of the store.
    async fn trim_changes(
        &self,
        before: f64,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<TrimmedChanges, SessionError>;

    /// Walks over everything: the addresses of what is stored after a place, at most `limit`. Those
    /// of applications and users that have state (or had, or may have) come first, then those of
    /// sessions; each comes once, in an order of the store's own. No state is read, so a row that
    /// cannot be understood hides no other.
    ///
    /// # Errors
    ///
    /// Those of the store.
    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError>;

    /// Commits what was handed over, and ends. Calls after that may fail; closing twice is
    /// harmless. Without it nothing that was acknowledged is lost either; a store in a file may
    /// leave companions of the file.
    ///
    /// # Errors
    ///
    /// Those of the store.
    async fn close(&self) -> Result<(), SessionError>;
}

/// A store that others use too is a store.
#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        (**self).create(new).await
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        (**self).get(key, window).await
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        (**self).list(query).await
    }

    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        (**self).delete(key, expect).await
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        (**self).append(commit).await
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
        (**self).scope_state(scope).await
    }

    async fn write_scope(&self, write: ScopeWrite) -> Result<ScopeWritten, SessionError> {
        (**self).write_scope(write).await
    }

    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError> {
        (**self).scope_changes(scope, window).await
    }

    async fn trim_changes(
        &self,
        before: f64,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<TrimmedChanges, SessionError> {
        (**self).trim_changes(before, after, limit).await
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        (**self).addresses(after, limit).await
    }

    async fn close(&self) -> Result<(), SessionError> {
        (**self).close().await
    }
}

/// A session to be.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Where it will be.
    pub key: SessionKey,
    /// Tells it from sessions that had its address before. A store that sends a request again after
    /// it lost the connection finds by it whether its first attempt created the session.
    pub incarnation: Incarnation,
    /// When it is made, in Unix seconds.
    pub time: f64,
    /// Its initial state (version 0).
    pub session: StateMap,
    /// Changes of application state; they may be operations.
    pub app: Delta,
    /// Changes of user state; they may be operations.
    pub user: Delta,
    /// Events that it starts with, in order, and what each changes of the session's state. They
    /// hold no operations.
    pub events: Vec<(Arc<Event>, Delta)>,
    /// How large the state of a scope may become, in bytes of JSON.
    pub max_scope_bytes: Option<usize>,
}

/// A session as a store has it.
#[derive(Debug, Clone)]
pub struct StoredSession {
    /// Where it is.
    pub key: SessionKey,
    /// Tells it from sessions that had its address before.
    pub incarnation: Incarnation,
    /// How many events were ever appended.
    pub version: Version,
    /// How often the application's state was written.
    pub app_version: Version,
    /// How often the user's state was written.
    pub user_version: Version,
    /// When it was last changed, in Unix seconds.
    pub update_time: f64,
    /// Its own state.
    pub session: Arc<StateMap>,
    /// The application's state.
    pub app: Arc<StateMap>,
    /// The user's state.
    pub user: Arc<StateMap>,
    /// The session's own state at version 0, if it was kept.
    pub initial: Option<Arc<StateMap>>,
    /// The events of the window, in the order of their versions; stores may share them among
    /// readers.
    pub events: Arc<Vec<SessionEvent>>,
}

/// An event in its session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEvent {
    /// The session's version since this event.
    pub version: Version,
    /// The event, shared by all who read it.
    pub event: Arc<Event>,
}

impl Deref for SessionEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

/// Which events are read. Filters combine; the last `last` of those that pass are read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EventWindow {
    /// At most this many, the last ones.
    pub last: Option<usize>,
    /// Not older than this, in Unix seconds.
    pub after_time: Option<f64>,
    /// Later than this version.
    pub after_version: Option<Version>,
    /// Not later than this version.
    pub until_version: Option<Version>,
}

impl EventWindow {
    /// All events.
    pub const ALL: Self = Self { last: None, after_time: None, after_version: None, until_version: None };

    /// No events.
    pub const NONE: Self = Self { last: Some(0), ..Self::ALL };

    /// The last few events.
    pub const fn last(count: usize) -> Self {
        Self { last: Some(count), ..Self::ALL }
    }

    /// Events that are not older than a time in Unix seconds.
    pub const fn after_time(time: f64) -> Self {
        Self { after_time: Some(time), ..Self::ALL }
    }

    /// Events later than a version.
    pub const fn after_version(version: Version) -> Self {
        Self { after_version: Some(version), ..Self::ALL }
    }

    /// Whether an event passes all filters but `last`.
    pub fn admits(&self, event: &SessionEvent) -> bool {
        self.after_time.is_none_or(|time| event.time() >= time)
            && self.after_version.is_none_or(|version| event.version > version)
            && self.until_version.is_none_or(|version| event.version <= version)
    }
}

/// Which changes of shared state are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeWindow {
    /// Later than this version.
    pub after: Version,
    /// Not later than this version.
    pub until: Option<Version>,
    /// At most this many: the first in the order that is asked for.
    pub limit: usize,
    /// The oldest first; otherwise the newest.
    pub oldest_first: bool,
}

impl ChangeWindow {
    /// All changes, newest first.
    pub const ALL: Self = Self::newest(usize::MAX);

    /// The newest changes, newest first.
    pub const fn newest(limit: usize) -> Self {
        Self { after: 0, until: None, limit, oldest_first: false }
    }

    /// Whether a change passes both filters.
    pub fn admits(&self, version: Version) -> bool {
        version > self.after && self.until.is_none_or(|until| version <= until)
    }
}

/// What one step of trimming did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrimmedChanges {
    /// How many rows of the history were removed.
    pub removed: usize,
    /// The next step begins after this scope; `None` if all scopes were looked at.
    pub next: Option<ScopeKey>,
}

/// Which sessions are listed, in the order of their last change.
#[derive(Debug, Clone)]
pub struct ListQuery {
    /// Of this application.
    pub app: String,
    /// Of this user only.
    pub user: Option<String>,
    /// At most this many, and one at the least.
    pub limit: usize,
    /// The page ends before the session with which the states on it would take more bytes as JSON,
    /// roughly; one session is always on it.
    pub max_bytes: usize,
    /// After this place.
    pub after: Option<ListPlace>,
    /// The most recently changed first; otherwise last.
    pub newest_first: bool,
}

/// A place in a list of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct ListPlace {
    /// When the session there was last changed.
    pub update_time: f64,
    /// Its user.
    pub user: String,
    /// Its id.
    pub id: String,
}

/// Where something is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// State that sessions share.
    Scope(ScopeKey),
    /// A session.
    Session(SessionKey),
}

impl Address {
    /// The application that it belongs to.
    pub fn app(&self) -> &str {
        match self {
            Self::Scope(ScopeKey::App(app) | ScopeKey::User(app, _)) => app,
            Self::Session(key) => key.app(),
        }
    }
}

/// Applies the results of a commit to a scope's state: keys that are set, and keys that are
/// removed.
///
/// # Panics
///
/// If the delta holds an operation, which committed events never do.
pub fn apply(state: &mut StateMap, results: &Delta) {
    for (key, change) in results.iter() {
        match (change, state.get_mut(key)) {
            (Change::Set(value), Some(held)) => *held = value.clone(),
            (Change::Set(value), None) => drop(state.insert(key.to_owned(), value.clone())),
            (Change::Remove, _) => drop(state.remove(key)),
            (Change::Operate(_), _) => {
                panic!("the operation on {key:?} was not computed before it was applied")
            }
        }
    }
}

/// The time of a session's last change after an event: the event's own, or a moment later than
/// before if that is not later. A changed session thus always has a changed time, which is what
/// google-adk looks at to find that its copy is stale.
///
/// The moment is a microsecond, which is what databases can hold. Far from 1970 an `f64` cannot
/// tell microseconds apart, and the moment is long enough for it up to the year 9999.
pub fn next_update_time(before: f64, event: f64) -> f64 {
    let moment = if before.abs() < EXACT_TO_MICROSECONDS { 1e-6 } else { 64e-6 };
    if event > before { event } else { before + moment }
}

/// The Unix second, in the year 2242, from which on an `f64` has steps of more than a microsecond.
const EXACT_TO_MICROSECONDS: f64 = 8_589_934_592.0;
