//! Where sessions are kept.
//!
//! To write a store, implement [`Store`] and run `sessile-conformance` on it; the memory store
//! is the shortest example. `docs/adding-a-store.md` walks through it.

use std::sync::Arc;

use async_trait::async_trait;

use crate::commit::{Appended, Commit, Expect};
use crate::error::SessionError;
use crate::key::{Address, ScopeKey, SessionKey};
use crate::page::{ListQuery, StoredPage};
use crate::scope_change::ScopeChange;
use crate::scope_write::{ScopeState, ScopeWrite, ScopeWritten};
use crate::stored_session::{NewSession, StoredSession};
use crate::window::{ChangeWindow, EventWindow};

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

/// What one step of trimming did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrimmedChanges {
    /// How many rows of the history were removed.
    pub removed: usize,
    /// The next step begins after this scope; `None` if all scopes were looked at.
    pub next: Option<ScopeKey>,
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
