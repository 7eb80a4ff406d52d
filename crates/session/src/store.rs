//! The contract of a store.
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

/// A storage backend for sessions.
///
/// It never sees a prefix: the service separates the scopes and drops `temp:` keys before it calls
/// the store. The contract is executable: `sessile-conformance` has a test for each sentence of
/// this documentation, and every store runs all of them.
#[async_trait]
pub trait Store: Send + Sync {
    /// Writes a new session, its events and its changes of application and user state atomically.
    /// Returns the session as [`get`](Self::get) would.
    ///
    /// # Errors
    ///
    /// [`SessionError::AlreadyExists`] if there is a session with this key; it stays untouched.
    /// [`SessionError::Operation`] if an operation on shared state cannot be applied;
    /// [`SessionError::TooLarge`].
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError>;

    /// Reads a consistent view of a session, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`SessionError::Corrupt`] if a row cannot be decoded.
    async fn get(&self, key: &SessionKey, window: EventWindow)
    -> Result<Option<StoredSession>, SessionError>;

    /// Reads a page of sessions, without their events. The cost is proportional to the page: state
    /// that sessions share is read once. A session that cannot be decoded is reported, and the
    /// others are still listed. [`PageWriter`](crate::PageWriter) implements these rules.
    ///
    /// # Errors
    ///
    /// Those of the store.
    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError>;

    /// Removes a session and its events; application and user state stay. Returns whether there was
    /// one.
    ///
    /// # Errors
    ///
    /// [`SessionError::Replaced`] or [`SessionError::Conflict`] if the session is not the expected
    /// one.
    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError>;

    /// Writes an event and the changes of the three scopes atomically. Its cost depends neither on
    /// the length of the history nor on other sessions.
    ///
    /// In one transaction: looks for an event with this id, and if there is one changes nothing and
    /// returns it, without checking expectations; checks the expectations and the guards; computes
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
    /// [`SessionError::Corrupt`] if the row cannot be decoded.
    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError>;

    /// Changes the state of an application or a user, without a session, and records the change in
    /// its history. The write is idempotent: a second one with the same request id changes nothing,
    /// without checking expectations, and returns the result of the first.
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
    /// [`SessionError::Corrupt`] if a row cannot be decoded.
    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError>;

    /// Removes changes of shared state that were committed before a time in Unix seconds, oldest
    /// first; the newest of each scope is kept. It is one small step, so that it does not block
    /// writers for long: it visits at most `limit` scopes after `after`, in the store's own order,
    /// and removes at most about `limit` changes. The result says where the next step continues.
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

    /// Enumerates everything that is stored: at most `limit` addresses after `after`. Those of
    /// applications and users that have state (or had, or may have) come first, then those of
    /// sessions; each comes once, in the store's own order. No state is read, so a row that cannot
    /// be decoded does not stop the walk.
    ///
    /// # Errors
    ///
    /// Those of the store.
    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError>;

    /// Finishes pending commits and closes the store. Calls after that may fail; closing twice is
    /// harmless. Nothing that was acknowledged is lost without it either, but a store in a file may
    /// leave auxiliary files behind.
    ///
    /// # Errors
    ///
    /// Those of the store.
    async fn close(&self) -> Result<(), SessionError>;
}

/// A shared store is a store.
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
    /// The next step begins after this scope; `None` if all scopes were visited.
    pub next: Option<ScopeKey>,
}

/// The time of a session's last change after an event: the event's own time, or slightly later than
/// the previous one if the event's is not later. A changed session thus always has a changed time,
/// which is what google-adk looks at to find that its copy is stale.
///
/// The step is a microsecond, the resolution of databases. Far from 1970 the resolution of an `f64`
/// is coarser than a microsecond, and a larger step is used, which is sufficient up to the year
/// 9999.
pub fn next_update_time(before: f64, event: f64) -> f64 {
    let step = if before.abs() < EXACT_TO_MICROSECONDS { 1e-6 } else { 64e-6 };
    if event > before { event } else { before + step }
}

/// The Unix second, in the year 2242, from which on an `f64` has steps of more than a microsecond.
const EXACT_TO_MICROSECONDS: f64 = 8_589_934_592.0;
