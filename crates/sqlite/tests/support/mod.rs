//! Files for tests.

use std::path::{Path, PathBuf};

use sessile_sqlite::{SqliteOptions, SqliteStore};

/// The tables as google-adk 2.13's `DatabaseSessionService` makes them.
const V1: &str = "
    CREATE TABLE adk_internal_metadata (key VARCHAR(128) NOT NULL, value VARCHAR(256) NOT NULL, PRIMARY KEY (key));
    CREATE TABLE app_states (
        app_name VARCHAR(128) NOT NULL, state TEXT NOT NULL, update_time DATETIME NOT NULL, PRIMARY KEY (app_name)
    );
    CREATE TABLE user_states (
        app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, state TEXT NOT NULL, update_time DATETIME NOT NULL,
        PRIMARY KEY (app_name, user_id)
    );
    CREATE TABLE sessions (
        app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL, id VARCHAR(128) NOT NULL, state TEXT NOT NULL,
        create_time DATETIME NOT NULL, update_time DATETIME NOT NULL, PRIMARY KEY (app_name, user_id, id)
    );
    CREATE TABLE events (
        id VARCHAR(128) NOT NULL, app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL,
        session_id VARCHAR(128) NOT NULL, invocation_id VARCHAR(256) NOT NULL, timestamp DATETIME NOT NULL, event_data TEXT,
        PRIMARY KEY (id, app_name, user_id, session_id),
        FOREIGN KEY (app_name, user_id, session_id) REFERENCES sessions (app_name, user_id, id) ON DELETE CASCADE
    );
    CREATE INDEX idx_events_app_user_session_ts_id
        ON events (app_name, user_id, session_id, timestamp DESC, id DESC);
    INSERT INTO adk_internal_metadata VALUES ('schema_version', '1');
";

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
