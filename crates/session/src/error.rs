use std::collections::BTreeMap;

use sessile_state::{OperationError, SharedValue};

use crate::key::{InvalidId, ScopeKey, SessionKey};
use crate::version::Version;

/// The cause of an error, whatever it is.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why an operation on sessions was refused or failed. Nothing is half done then.
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

    /// The session in hand was deleted, and another one has its address now.
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

    /// Keys no longer hold what the caller had read, and it asked for a refusal then. Nothing was
    /// stored.
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
        /// What is stored; `None` if the key is absent. It may be secret, so the message does not
        /// tell it. Boxed, because every result would be as large as the largest error.
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

    /// What shared state was at a version cannot be told: the version is yet to come, or its
    /// history is not kept.
    #[error("the state of {scope} at version {version} is not known: {}", known_versions(*oldest, *newest))]
    NotInScopeHistory {
        /// Whose state it is.
        scope: ScopeKey,
        /// The version that was asked for.
        version: Version,
        /// The oldest version whose state can be computed; `None` if the version is yet to come.
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
    #[error("the page token is not one of this list; start again without it")]
    InvalidCursor,

    /// The closure of a transaction gave up.
    #[error("the transaction on session {key} was given up: {source}")]
    GivenUp {
        /// The session.
        key: SessionKey,
        /// What the closure returned.
        source: BoxError,
    },

    /// A stored row cannot be understood. Other sessions stay readable.
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

    /// The store cannot do it now: it is busy, full, or out of reach. Nothing was done, and the
    /// same call may succeed later.
    #[error("cannot {action} now: {reason}")]
    Unavailable {
        /// What was being done.
        action: &'static str,
        /// Why, and what to do.
        reason: String,
        /// What the store says.
        source: BoxError,
    },

    /// The connection was lost before the store answered: the change was made whole, or not at all.
    #[error(
        "the connection was lost while trying to {action}, which is done or not done; {advice} ({source})"
    )]
    InDoubt {
        /// What was being done.
        action: &'static str,
        /// How to find out, or how to make sure.
        advice: &'static str,
        /// What the store says.
        source: BoxError,
    },

    /// The store failed.
    #[error("cannot {action}: {source}")]
    Backend {
        /// What was being done.
        action: &'static str,
        /// What the store says.
        source: BoxError,
    },
}

impl SessionError {
    /// Whether it says that what was read is no longer what is stored, so that reading and
    /// computing again may succeed.
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

/// Makes a store's own error one of ours, saying what was being done.
pub fn doing<E: Into<BoxError>>(action: &'static str) -> impl FnOnce(E) -> SessionError {
    move |source| SessionError::Backend { action, source: source.into() }
}
