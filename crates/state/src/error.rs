use crate::not_json::NotJson;
use crate::operation::OperationError;
use crate::schema_error::SchemaError;

/// Why a read or a write of [`State`](crate::State) was refused.
///
/// In every case the state is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The value has no JSON form, so it cannot be stored.
    #[error("cannot store state key `{key}`: {source}")]
    NotJson {
        /// The key that was to be written.
        key: String,
        /// Which part of the value has no JSON form, and why.
        source: NotJson,
    },

    /// The key holds a value that is not of the type that was asked for.
    #[error("state key `{key}` holds {found}, which does not read as `{expected}`: {reason}")]
    WrongType {
        /// The key that was read.
        key: String,
        /// The Rust type that was asked for.
        expected: String,
        /// The JSON type that is stored.
        found: &'static str,
        /// The deserializer's reason. It does not contain the value, which may be secret.
        reason: String,
    },

    /// The key is being modified further up this call stack, so waiting for it would deadlock.
    #[error(
        "state key `{key}` is being modified by the closure that makes this call; \
         return the new value from the closure instead of writing the key inside it"
    )]
    Reentrant {
        /// The key whose `modify` closure made the call.
        key: String,
    },

    /// Another thread's `modify` closure holds the key, and waiting for it would deadlock or timed
    /// out.
    #[error(
        "state key `{key}` is held by a `modify` closure on another thread ({reason}); \
         keep such closures short, and do not let one wait for another"
    )]
    Busy {
        /// The key that could not be written.
        key: String,
        /// Whether the threads would deadlock, or the wait timed out.
        reason: &'static str,
    },

    /// An operation cannot be applied to what the key holds.
    #[error("cannot change state key `{key}`: {source}")]
    Operation {
        /// The key that was to be changed.
        key: String,
        /// Why, and what to do.
        source: OperationError,
    },

    /// The reducer that is declared for the key cannot express this change as an operation.
    #[error(
        "state key `{key}` has the reducer `{reducer}`, which cannot express {change}; \
         call `replace` to overwrite the key, ignoring concurrent writes"
    )]
    Reducer {
        /// The key that was to be changed.
        key: String,
        /// The reducer that is declared for it.
        reducer: &'static str,
        /// The change that it cannot express.
        change: &'static str,
    },

    /// The state's schema does not allow this write.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

impl StateError {
    pub(crate) fn operation(key: &str, source: OperationError) -> Self {
        Self::Operation { key: key.to_owned(), source }
    }

    pub(crate) fn reducer(key: &str, reducer: &'static str, change: &'static str) -> Self {
        Self::Reducer { key: key.to_owned(), reducer, change }
    }
}

/// The value, or a panic with the error's text at the caller's line.
#[track_caller]
pub(crate) fn or_panic<T>(result: Result<T, StateError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
