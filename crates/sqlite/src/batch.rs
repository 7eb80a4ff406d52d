//! A transaction of the writer. What it can do is in a file for each operation.
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

/// Whether an error is an answer: it was found before anything was written, so the transaction goes
/// on, and the neighbours are committed. Every operation must keep to that.
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
