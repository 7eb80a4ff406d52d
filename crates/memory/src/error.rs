use sessile_session::BoxError;

/// Why a memory could not be added or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Stored data is invalid.
    #[error("stored memory is corrupt: column {column} of table {table}, row {row}: {source}")]
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
    #[error("cannot use the memory database: {reason}")]
    Unusable {
        /// Why, and what to do.
        reason: String,
    },

    /// The storage failed.
    #[error("cannot {action}: {source}")]
    Backend {
        /// What was being done.
        action: &'static str,
        /// Its error.
        source: BoxError,
    },
}

/// Converts an error of the storage, with the action that failed.
pub(crate) fn doing<E: Into<BoxError>>(action: &'static str) -> impl FnOnce(E) -> MemoryError {
    move |source| MemoryError::Backend { action, source: source.into() }
}
