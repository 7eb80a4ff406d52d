//! Migrations: creating or extending the tables, in a way that google-adk can go on using them.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use sessile_session::SessionError;

use crate::connection::{begin_writing, unusable};
use crate::failure::failed_to;
use crate::foreign_triggers;
use crate::layout::Layout;

/// The last migration that this version knows.
pub(crate) const LATEST: i64 = 3;

const META: &str = "
    CREATE TABLE IF NOT EXISTS sessile_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)
";

const NOTE_MIGRATION: &str = "INSERT OR REPLACE INTO sessile_meta (key, value) VALUES ('migration', ?1)";

/// Applies the migrations that are missing, and returns the layout of the file. This needs the
/// file's write lock, for which it waits at most `timeout`; a file that is up to date is only read.
pub(crate) fn migrate(connection: &Connection, timeout: Duration) -> Result<Layout, SessionError> {
    if version_of(connection)? == LATEST
        && let Some(layout) = layout_of(connection)?
    {
        return Ok(layout);
    }
    let transaction =
        begin_writing(connection, timeout).map_err(failed_to("lock the database for its migration"))?;
    let layout = layout_of(&transaction)?;
    let version = version_of(&transaction)?;
    if version > LATEST {
        return Err(unusable(format!(
            "it was written by a newer Sessile (migration {version}, this one knows {LATEST}); upgrade this one"
        )));
    }
    if version < 1 {
        let tables = if layout.is_none() { include_str!("../migrations/0001_adk.sql") } else { "" };
        let tie = layout.unwrap_or(Layout::Adk).tie();
        let versions = include_str!("../migrations/0001_versions.sql").replace("{tie}", tie);
        transaction.execute_batch(META).map_err(failed_to("create the table of migrations"))?;
        transaction.execute_batch(tables).map_err(failed_to("create the tables"))?;
        transaction.execute_batch(&versions).map_err(failed_to("extend the tables"))?;
    }
    if version < 2 {
        let history = include_str!("../migrations/0002_history.sql");
        transaction.execute_batch(history).map_err(failed_to("add the history of shared state"))?;
    }
    if version < 3 {
        let triggers = foreign_triggers::migration();
        transaction.execute_batch(&triggers).map_err(failed_to("record what other programs write"))?;
    }
    if version < LATEST {
        transaction.execute(NOTE_MIGRATION, [LATEST.to_string()]).map_err(failed_to("note the migration"))?;
    }
    transaction.commit().map_err(failed_to("commit the migration"))?;
    Ok(layout.unwrap_or(Layout::Adk))
}

/// The layout of a file that has google-adk's tables; `None` for a new file.
pub(crate) fn layout_of(connection: &Connection) -> Result<Option<Layout>, SessionError> {
    let sessions = columns(connection, "sessions")?;
    let events = columns(connection, "events")?;
    let has = |columns: &[(String, String)], name: &str| columns.iter().any(|(column, _)| column == name);
    if has(&events, "actions") && !has(&events, "event_data") {
        return Err(unusable(
            "it is in google-adk's old format (pickled events); run `adk migrate session` and open the new database"
                .to_owned(),
        ));
    }
    let Some((_, time)) = sessions.iter().find(|(column, _)| column == "create_time") else {
        return match sessions.is_empty() {
            true => Ok(None),
            false => Err(unusable("its table `sessions` is not google-adk's; use another file".to_owned())),
        };
    };
    if schema_version(connection)?.is_some_and(|version| version != "1") {
        return Err(unusable(
            "its google-adk schema version is not 1; run `adk migrate session`, or upgrade Sessile"
                .to_owned(),
        ));
    }
    Ok(Some(if time.eq_ignore_ascii_case("REAL") { Layout::Adk } else { Layout::V1 }))
}

fn schema_version(connection: &Connection) -> Result<Option<String>, SessionError> {
    if columns(connection, "adk_internal_metadata")?.is_empty() {
        return Ok(None);
    }
    let query = "SELECT value FROM adk_internal_metadata WHERE key = 'schema_version'";
    connection.query_row(query, [], |row| row.get(0)).optional().map_err(failed_to("read the schema version"))
}

/// The number of the last migration that was applied.
pub(crate) fn version_of(connection: &Connection) -> Result<i64, SessionError> {
    if columns(connection, "sessile_meta")?.is_empty() {
        return Ok(0);
    }
    let query = "SELECT value FROM sessile_meta WHERE key = 'migration'";
    let version: Option<String> = connection
        .query_row(query, [], |row| row.get(0))
        .optional()
        .map_err(failed_to("read the migration's number"))?;
    match version {
        None => Ok(0),
        Some(text) => text.parse().map_err(|_| unusable(format!("its migration {text:?} is not a number"))),
    }
}

/// Names and types of a table's columns; none if there is no such table.
fn columns(connection: &Connection, table: &str) -> Result<Vec<(String, String)>, SessionError> {
    let mut statement = connection
        .prepare("SELECT name, type FROM pragma_table_info(?1)")
        .map_err(failed_to("look at the tables"))?;
    let rows = statement
        .query_map([table], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(failed_to("look at the tables"))?;
    rows.collect::<Result<_, _>>().map_err(failed_to("look at the tables"))
}
