//! Opening the file and creating its tables.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, TransactionBehavior};

use crate::error::{MemoryError, doing};

/// How long a write waits for the lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The schema version that this code knows.
const LAYOUT: &str = "1";

/// A connection that can write, to a file that has all tables.
pub(super) fn writer(path: &Path) -> Result<Connection, MemoryError> {
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    to_wal_mode(&connection).map_err(|error| explained(path, error))?;
    let layout = make_tables(&mut connection).map_err(|error| explained(path, error))?;
    if layout != LAYOUT {
        return Err(MemoryError::Unusable {
            reason: format!(
                "{}: its layout is {layout:?}, and this version knows {LAYOUT:?}; use another file, or upgrade Sessile",
                path.display()
            ),
        });
    }
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection, MemoryError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, MemoryError> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|error| explained(path, error))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(doing("set the busy timeout"))?;
    connection.execute_batch("PRAGMA synchronous = FULL").map_err(|error| explained(path, error))?;
    Ok(connection)
}

/// Retries: SQLite's busy timeout does not cover two connections that do this at the same time.
fn to_wal_mode(connection: &Connection) -> rusqlite::Result<()> {
    let start = Instant::now();
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        let code = mode.as_ref().err().and_then(rusqlite::Error::sqlite_error_code);
        if code != Some(ErrorCode::DatabaseBusy) || start.elapsed() >= BUSY_TIMEOUT {
            return mode;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Creates the missing tables, and returns the schema version of the file. A file with another
/// schema version is not changed.
fn make_tables(connection: &mut Connection) -> rusqlite::Result<String> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(include_str!("../../migrations/0001_metadata.sql"))?;
    let layout: Option<String> = transaction
        .query_row("SELECT value FROM adk_memory_metadata WHERE key = 'schema_version'", [], |row| row.get(0))
        .optional()?;
    match layout {
        Some(layout) if layout != LAYOUT => return Ok(layout),
        Some(_) => {}
        None => {
            let insert = "INSERT INTO adk_memory_metadata (key, value) VALUES ('schema_version', ?1)";
            transaction.execute(insert, [LAYOUT])?;
        }
    }
    let indexed = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'memory_events_fts'";
    let indexed = transaction.query_row(indexed, [], |_| Ok(())).optional()?.is_some();
    transaction.execute_batch(include_str!("../../migrations/0001_events.sql"))?;
    if !indexed {
        // Older rows of google-adk may be missing in the index of words.
        transaction.execute("INSERT INTO memory_events_fts (memory_events_fts) VALUES ('rebuild')", [])?;
    }
    transaction.commit()?;
    Ok(LAYOUT.to_owned())
}

/// The error of a file that cannot be opened or prepared, with what to do about it.
fn explained(path: &Path, error: rusqlite::Error) -> MemoryError {
    let path = path.display();
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => format!("{path} is not a SQLite database"),
        Some(ErrorCode::ReadOnly) => format!("{path} is read-only; make the file and its folder writable"),
        Some(ErrorCode::CannotOpen) => {
            format!("{path} cannot be opened ({error}); does its folder exist, and may it be written?")
        }
        _ => return doing("open the memory file")(error),
    };
    MemoryError::Unusable { reason }
}
