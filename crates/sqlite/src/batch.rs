//! A transaction of the writing thread. Each operation extends [`Batch`] in a file of its own.
//!
//! A row of a session or of shared state is written once in a transaction, however many events
//! change it.

use rusqlite::Connection;
use sessile_session::SessionError;

use crate::cache::Cache;
use crate::event_row::INSERT_EVENT;
use crate::layout::Layout;
use crate::statement::Statement;

pub(crate) struct Batch<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) layout: Layout,
    pub(crate) cache: &'a mut Cache,
    pub(crate) insert_event: Statement<'a>,
}

impl<'a> Batch<'a> {
    /// The transaction must be open.
    pub(crate) fn begin(
        connection: &'a Connection,
        layout: Layout,
        cache: &'a mut Cache,
    ) -> Result<Self, SessionError> {
        cache.begin(connection)?;
        Ok(Self { connection, layout, cache, insert_event: Statement::new(connection, INSERT_EVENT) })
    }

    /// Writes the rows that changed. Must be called before the commit.
    pub(crate) fn flush(&mut self) -> Result<(), SessionError> {
        self.cache.flush(self.connection, self.layout)
    }
}

/// Whether an error refuses one operation without failing the transaction. Every operation must
/// return such an error before it writes anything, so that the rest of the batch can be committed.
pub(crate) fn is_refusal(error: &SessionError) -> bool {
    matches!(
        error,
        SessionError::NotFound { .. }
            | SessionError::AlreadyExists { .. }
            | SessionError::Conflict { .. }
            | SessionError::Replaced { .. }
            | SessionError::ScopeConflict { .. }
            | SessionError::Overwritten { .. }
            | SessionError::Operation { .. }
            | SessionError::TooLarge { .. }
            | SessionError::InvalidEvent { .. }
            | SessionError::Corrupt { .. }
    )
}
