//! Files as version 1 of Sessile left them.

use std::path::Path;

use rusqlite::Connection;

/// Makes a file what version 1 of Sessile made of it; `is_new` if it has no tables yet.
pub(crate) fn make_version_1(path: &Path, is_new: bool) {
    let (tables, tie) = match is_new {
        true => (include_str!("../../migrations/0001_adk.sql"), "rowid"),
        false => ("", "id"),
    };
    let versions = include_str!("../../migrations/0001_versions.sql").replace("{tie}", tie);
    let meta = "CREATE TABLE IF NOT EXISTS sessile_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
                INSERT INTO sessile_meta VALUES ('migration', '1');";
    let connection = Connection::open(path).expect("the file opens");
    let made = connection.execute_batch(&format!("PRAGMA journal_mode = WAL; {meta} {tables} {versions}"));
    made.expect("the statements run");
}
