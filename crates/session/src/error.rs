use crate::key::{InvalidId, SessionKey};
use crate::store::Version;

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

    /// The store cannot do it now: it is busy, full, or out of reach. Nothing was done, and the same call may
    /// succeed later.
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

/// Makes a store's own error one of ours, saying what was being done.
pub fn doing<E: Into<BoxError>>(action: &'static str) -> impl FnOnce(E) -> SessionError {
    move |source| SessionError::Backend { action, source: source.into() }
}
