//! A statement that is used many times in a transaction.

use rusqlite::{CachedStatement, Connection};

/// Prepared on first use, and then kept: a lookup in the connection's statement cache takes about
/// as long as a small write.
pub(crate) struct Statement<'c> {
    connection: &'c Connection,
    sql: &'static str,
    prepared: Option<CachedStatement<'c>>,
}

impl<'c> Statement<'c> {
    pub(crate) fn new(connection: &'c Connection, sql: &'static str) -> Self {
        Self { connection, sql, prepared: None }
    }

    /// The prepared statement.
    pub(crate) fn get(&mut self) -> rusqlite::Result<&mut CachedStatement<'c>> {
        let prepared = match self.prepared.take() {
            Some(prepared) => prepared,
            None => self.connection.prepare_cached(self.sql)?,
        };
        Ok(self.prepared.insert(prepared))
    }
}
