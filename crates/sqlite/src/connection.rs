//! Opening the file.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use sessile_session::SessionError;

use crate::failure::{failed_to, is_busy};

/// A checkpoint moves the write-ahead log into the file after so many pages. An append changes
/// three to four pages, and appends to the same sessions change the same pages of the indexes
/// again: with SQLite's default of 1000, the same pages are moved every few hundred events.
const CHECKPOINT_PAGES: i64 = 4000;

/// How the file is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The file, which is created if it is missing.
    pub path: PathBuf,
    /// The number of connections that read at the same time.
    pub readers: usize,
    /// How long a write waits for the locks of other processes.
    pub busy_timeout: Duration,
}

impl SqliteOptions {
    /// Four readers, and a busy timeout of ten seconds.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), readers: 4, busy_timeout: Duration::from_secs(10) }
    }

    /// Options from a URL in google-adk's format: `sqlite:///relative.db`,
    /// `sqlite:////absolute.db`, `sqlite+aiosqlite:///…`, or a plain path.
    /// `?readers=8&busy_timeout=30` sets the options; the time is in seconds.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] if the URL names no file or an unknown option.
    pub fn from_url(url: &str) -> Result<Self, SessionError> {
        let rest = ["sqlite+aiosqlite://", "sqlite://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let (path, query) = match rest {
            // The first slash separates the path from a host that is not there.
            Some(rest) => {
                let rest = rest.strip_prefix('/').unwrap_or(rest);
                rest.split_once('?').unwrap_or((rest, ""))
            }
            None => (url, ""),
        };
        if path.is_empty() || path == ":memory:" {
            return Err(unusable(format!(
                "{url:?} names no file; write sqlite:///name.db, or use memory://"
            )));
        }
        let mut options = Self::new(path);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let number = value
                .parse::<u32>()
                .map_err(|_| unusable(format!("{name}={value} is not a whole number")))?;
            match name {
                "readers" if number > 0 => options.readers = number as usize,
                "busy_timeout" => options.busy_timeout = Duration::from_secs(number.into()),
                _ => {
                    return Err(unusable(format!(
                        "unknown option {name}={value}; the options are readers and busy_timeout"
                    )));
                }
            }
        }
        Ok(options)
    }

    /// A connection that can write.
    pub(crate) fn open_writer(&self) -> Result<Connection, SessionError> {
        let connection = self.open(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        let mode = self.to_wal_mode(&connection).map_err(|error| explained(&self.path, error))?;
        if mode != "wal" {
            return Err(unusable(format!("{} cannot be put in WAL mode ({mode})", self.path.display())));
        }
        connection
            .pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
            .map_err(|error| explained(&self.path, error))?;
        Ok(connection)
    }

    /// Puts the file in WAL mode, if it is not, and returns its mode.
    ///
    /// SQLite upgrades a read lock to a write lock for this, and fails at once, without the busy
    /// timeout, if another connection is about to write too. So the retries are ours.
    fn to_wal_mode(&self, connection: &Connection) -> rusqlite::Result<String> {
        let start = Instant::now();
        loop {
            let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
            let is_busy = mode.as_ref().err().is_some_and(is_busy);
            if !is_busy || start.elapsed() >= self.busy_timeout {
                return mode;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// A connection that only reads.
    pub(crate) fn open_reader(&self) -> Result<Connection, SessionError> {
        self.open(OpenFlags::SQLITE_OPEN_READ_ONLY)
    }

    fn open(&self, flags: OpenFlags) -> Result<Connection, SessionError> {
        let connection = Connection::open_with_flags(&self.path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|error| explained(&self.path, error))?;
        // Without write permission SQLite opens the file read-only. Going on would create `-wal`
        // and `-shm` files that cannot be written either.
        let wanted = flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE);
        if wanted && connection.is_readonly(rusqlite::MAIN_DB).map_err(failed_to("open the SQLite file"))? {
            return Err(read_only(&self.path));
        }
        connection.busy_timeout(self.busy_timeout).map_err(failed_to("set the busy timeout"))?;
        connection.set_prepared_statement_cache_capacity(64);
        // The bundled SQLite has STAT4, with which it prepares a statement again whenever a bound
        // value could change the plan. Our plans never depend on values; the query planner
        // stability guarantee keeps the prepared ones.
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
            .map_err(failed_to("keep the plans of prepared statements"))?;
        connection
            .execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;")
            .map_err(|error| explained(&self.path, error))?;
        Ok(connection)
    }
}

/// Begins a transaction that writes, and waits at most `timeout` for other connections.
///
/// SQLite's own busy handler polls ten times a second, which starves beside a program that writes
/// all the time, so this polls every millisecond.
pub(crate) fn begin_writing(connection: &Connection, timeout: Duration) -> rusqlite::Result<Transaction<'_>> {
    let start = Instant::now();
    connection.busy_timeout(Duration::ZERO)?;
    loop {
        match Transaction::new_unchecked(connection, TransactionBehavior::Immediate) {
            Err(error) if is_busy(&error) && start.elapsed() < timeout => {
                thread::sleep(Duration::from_millis(1));
            }
            begun => {
                connection.busy_timeout(timeout)?;
                return begun;
            }
        }
    }
}

pub(crate) fn unusable(reason: String) -> SessionError {
    SessionError::Unusable { reason }
}

/// What to do about a file that cannot be opened or prepared.
pub(crate) fn explained(path: &Path, error: rusqlite::Error) -> SessionError {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => unusable(format!("{} is not a SQLite database", path.display())),
        Some(ErrorCode::ReadOnly) => read_only(path),
        Some(ErrorCode::CannotOpen) => unusable(format!(
            "{} cannot be opened ({error}); does its folder exist, and may file and folder be written?",
            path.display()
        )),
        _ => failed_to("open the SQLite file")(error),
    }
}

/// The error of a migration, with the file's name.
pub(crate) fn not_migrated(path: &Path, error: SessionError) -> SessionError {
    match error {
        SessionError::Unusable { reason } => unusable(format!("{}: {reason}", path.display())),
        // The folder is read-only, so that SQLite cannot create the `-wal` file in it.
        SessionError::Unavailable { source, .. }
            if source.downcast_ref().and_then(rusqlite::Error::sqlite_error_code)
                == Some(ErrorCode::ReadOnly) =>
        {
            read_only(path)
        }
        other => other,
    }
}

fn read_only(path: &Path) -> SessionError {
    unusable(format!("{} is read-only; make the file and its folder writable", path.display()))
}
