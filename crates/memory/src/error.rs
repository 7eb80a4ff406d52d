use sessile_session::BoxError;

/// Why something could not be remembered or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// What is kept cannot be understood.
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

    /// The place where memories are kept failed.
    #[error("cannot {action}: {source}")]
    Backend {
        /// What was being done.
        action: &'static str,
        /// What it says.
        source: BoxError,
    },
}

/// Makes an error of the place one of ours, saying what was being done.
pub(crate) fn doing<E: Into<BoxError>>(action: &'static str) -> impl FnOnce(E) -> MemoryError {
    move |source| MemoryError::Backend { action, source: source.into() }
}
