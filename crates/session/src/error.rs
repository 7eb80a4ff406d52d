use std::collections::BTreeMap;

use sessile_state::{OperationError, SharedValue};

use crate::key::{InvalidId, ScopeKey, SessionKey};
use crate::version::Version;

/// The cause of an error, of any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why an operation on sessions was refused or failed. Operations are atomic: a failed one has
/// changed nothing, except for [`InDoubt`](Self::InDoubt), where the outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such session.
    #[error("session {key} not found")]
    NotFound {
        /// The session.
        key: SessionKey,
    },

    /// A session with this key exists.
    #[error("session {key} already exists; choose another id, or leave it out to get one")]
    AlreadyExists {
        /// The session.
        key: SessionKey,
    },

    /// What was read is no longer what is stored.
    #[error(
        "session {key} has changed: version {expected} was expected in the {scope} scope, {actual} is stored; \
         load the session again, or append with `OnConflict::Merge`"
    )]
    Conflict {
        /// The session.
        key: SessionKey,
        /// The scope whose version differs.
        scope: sessile_state::Scope,
        /// The version that the caller had.
        expected: Version,
        /// The version that is stored.
        actual: Version,
    },

    /// The session that the caller holds was deleted, and another one was created under its
    /// address.
    #[error("session {key} was deleted and created again since it was read; load it again")]
    Replaced {
        /// The session.
        key: SessionKey,
    },

    /// Shared state is not at the version that was expected.
    #[error(
        "the state of {scope} has changed: version {expected} was expected, {actual} is stored; read it again"
    )]
    ScopeConflict {
        /// Whose state it is.
        scope: ScopeKey,
        /// The version that the caller had.
        expected: Version,
        /// The version that is stored.
        actual: Version,
    },

    /// Keys no longer hold the values that the caller had read, and the caller asked to refuse the
    /// write in that case. Nothing was stored.
    #[error(
        "the state {} {} changed since it was read; read the current value, compute again, and retry",
        keys(current), if current.len() == 1 { "was" } else { "were" }
    )]
    Overwritten {
        /// The keys, prefixes included, and what they hold now; `None` if they are absent.
        current: BTreeMap<String, Option<SharedValue>>,
    },

    /// An operation cannot be applied to what is stored. Nothing was stored.
    #[error("cannot change the state key {key:?} of {owner}: {source}")]
    Operation {
        /// The key, prefix included.
        key: String,
        /// Whose state it is: a session, a user or an application.
        owner: String,
        /// What is stored; `None` if the key is absent. It may be secret, so it is not part of the
        /// message. Boxed, to keep every `Result` small.
        found: Option<Box<SharedValue>>,
        /// Why, and what to do.
        source: OperationError,
    },

    /// The state of a scope would be larger than its limit. Nothing was stored.
    #[error(
        "the {scope} state would be {size} bytes, and at most {limit} are kept; \
         remove keys, or store large values as artifacts"
    )]
    TooLarge {
        /// The scope.
        scope: sessile_state::Scope,
        /// How large it would be, in bytes of JSON.
        size: usize,
        /// How large it may be.
        limit: usize,
    },

    /// Another write of this scope's state has this request id.
    #[error(
        "another write of the state of {scope} has the request id {request:?}; give each request its own id"
    )]
    RequestConflict {
        /// Whose state it is.
        scope: ScopeKey,
        /// The id.
        request: String,
    },

    /// The session has another event with this id.
    #[error("session {key} already has another event with the id {id:?}; give the new event its own id")]
    EventConflict {
        /// The session.
        key: SessionKey,
        /// The event's id.
        id: String,
    },

    /// There is no such invocation or version in the session's history.
    #[error("session {key} has no {what}")]
    NotInHistory {
        /// The session.
        key: SessionKey,
        /// What was looked for.
        what: String,
    },

    /// The state at this version is not known: the version does not exist yet, or its history is no
    /// longer kept.
    #[error("the state of {scope} at version {version} is not known: {}", known_versions(*oldest, *newest))]
    NotInScopeHistory {
        /// Whose state it is.
        scope: ScopeKey,
        /// The version that was asked for.
        version: Version,
        /// The oldest version whose state can be computed; `None` if the version does not exist
        /// yet.
        oldest: Option<Version>,
        /// The current version.
        newest: Version,
    },

    /// An id cannot be used.
    #[error(transparent)]
    InvalidId(#[from] InvalidId),

    /// A key or a value cannot be stored.
    #[error("cannot store state key {key:?}: {reason}")]
    InvalidState {
        /// The key, prefix included.
        key: String,
        /// Why, and what to do.
        reason: String,
    },

    /// An event cannot be stored.
    #[error("cannot store the event {id:?}: {reason}")]
    InvalidEvent {
        /// The event's id.
        id: String,
        /// Why, and what to do.
        reason: String,
    },

    /// A page token does not come from a list like this one.
    #[error("the page token does not belong to this list; start again without it")]
    InvalidCursor,

    /// The closure of a transaction returned an error.
    #[error("the transaction on session {key} was aborted: {source}")]
    GivenUp {
        /// The session.
        key: SessionKey,
        /// What the closure returned.
        source: BoxError,
    },

    /// A stored row cannot be decoded. Other sessions stay readable.
    #[error("stored data is corrupt: column {column} of table {table}, row {row}: {source}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
        /// What is wrong with it.
        source: BoxError,
    },

    /// The database cannot be used as it is.
    #[error("cannot use the database: {reason}")]
    Unusable {
        /// Why, and what to do.
        reason: String,
    },

    /// The store is busy, full or unreachable. Nothing was done, and a retry may succeed.
    #[error("cannot {action} now: {reason}")]
    Unavailable {
        /// What was being done.
        action: &'static str,
        /// Why, and what to do.
        reason: String,
        /// The store's own error.
        source: BoxError,
    },

    /// The connection was lost before the store responded, so the change may or may not have been
    /// committed. It was not committed in part.
    #[error(
        "the connection was lost while trying to {action}, and the outcome is unknown; {advice} ({source})"
    )]
    InDoubt {
        /// What was being done.
        action: &'static str,
        /// How to find out the outcome, or how to retry safely.
        advice: &'static str,
        /// The store's own error.
        source: BoxError,
    },

    /// The store failed.
    #[error("cannot {action}: {source}")]
    Backend {
        /// What was being done.
        action: &'static str,
        /// The store's own error.
        source: BoxError,
    },
}

impl SessionError {
    /// Whether it reports a conflict with a concurrent write, so that reading and computing again
    /// may succeed.
    pub fn is_outdated(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Overwritten { .. } | Self::Replaced { .. })
    }
}

fn known_versions(oldest: Option<Version>, newest: Version) -> String {
    match oldest {
        Some(oldest) => format!("its history is kept from version {oldest} on; ask for {oldest} to {newest}"),
        None => format!("its current version is {newest}; ask for that, or for an earlier one"),
    }
}

/// Keys for a message: `key "a"`, `keys "a" and "b"`.
fn keys(current: &BTreeMap<String, Option<SharedValue>>) -> String {
    let names: Vec<String> = current.keys().map(|key| format!("{key:?}")).collect();
    match &*names {
        [only] => format!("key {only}"),
        _ => format!("keys {}", names.join(" and ")),
    }
}

/// Converts a store's own error into [`SessionError::Backend`], with what was being done.
pub fn doing<E: Into<BoxError>>(action: &'static str) -> impl FnOnce(E) -> SessionError {
    move |source| SessionError::Backend { action, source: source.into() }
}
