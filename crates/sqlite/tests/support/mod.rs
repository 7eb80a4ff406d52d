//! Files for tests.

use std::path::{Path, PathBuf};

use sessile_sqlite::{SqliteOptions, SqliteStore};

/// The tables as google-adk 2.13's `DatabaseSessionService` makes them.
const V1: &str = include_str!("v1.sql");

/// A path in a new folder, which the operating system's cleaning removes.
pub(crate) fn new_file() -> PathBuf {
    tempfile::tempdir().expect("a temporary folder is made").keep().join("sessile.db")
}

pub(crate) fn new_v1_file() -> PathBuf {
    let path = new_file();
    sql(&path, V1);
    path
}

pub(crate) async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(SqliteOptions::new(path)).await.expect("the file opens")
}

/// Runs statements on the file, as another program would.
pub(crate) fn sql(path: &Path, statements: &str) {
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    connection.execute_batch(statements).expect("the statements run");
}
