//! Making a database ours, without disturbing google-adk.

use deadpool_postgres::Pool;
use sessile_session::{SessionError, doing};
use tokio_postgres::Transaction;

use crate::connection::unusable;
use crate::patience::client;

/// The last migration that this version knows.
pub(crate) const LATEST: i32 = 4;

/// Held while migrating, so that many may start at once: any number that others do not use.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305809920471)";

const META: &str = "
    CREATE TABLE IF NOT EXISTS sessile_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)
";

const NOTE: &str = "
    INSERT INTO sessile_meta (key, value) VALUES ('migration', $1)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
";

/// Creates or extends the tables.
pub(crate) async fn migrate(pool: &Pool) -> Result<(), SessionError> {
    let mut client = client(pool).await?;
    let transaction = client.transaction().await.map_err(doing("begin the migration"))?;
    transaction.batch_execute(LOCK).await.map_err(doing("wait for other migrations"))?;
    let is_new = check_layout(&transaction).await?;
    let version = version_of(&transaction).await?;
    if version > LATEST {
        return Err(unusable(format!(
            "the database was written by a newer Sessile (migration {version}, this one knows {LATEST}); upgrade this one"
        )));
    }
    if version < 1 {
        transaction.batch_execute(META).await.map_err(doing("create the table of migrations"))?;
        if is_new {
            let tables = include_str!("../migrations/0001_adk.sql");
            transaction.batch_execute(tables).await.map_err(doing("create the tables"))?;
        }
        for extension in [
            include_str!("../migrations/0001_versions.sql"),
            include_str!("../migrations/0001_functions.sql"),
        ] {
            transaction.batch_execute(extension).await.map_err(doing("extend the tables"))?;
        }
    }
    if version < 3 {
        // Replaces what the second migration added.
        let append = include_str!("../migrations/0003_append.sql");
        transaction.batch_execute(append).await.map_err(doing("add the function that appends"))?;
    }
    if version < 4 {
        let list = include_str!("../migrations/0004_list.sql");
        transaction.batch_execute(list).await.map_err(doing("add the function that lists"))?;
    }
    if version < LATEST {
        transaction.execute(NOTE, &[&LATEST.to_string()]).await.map_err(doing("note the migration"))?;
    }
    transaction.commit().await.map_err(doing("commit the migration"))
}

/// Tells whether the tables are missing; refuses tables that are not google-adk's version 1.
pub(crate) async fn check_layout(transaction: &Transaction<'_>) -> Result<bool, SessionError> {
    let events = columns(transaction, "events").await?;
    let sessions = columns(transaction, "sessions").await?;
    let has = |columns: &[String], name: &str| columns.iter().any(|column| column == name);
    if has(&events, "actions") && !has(&events, "event_data") {
        return Err(unusable(
            "the database is in google-adk's old format (pickled events); run `adk migrate session` and use the new one"
                .to_owned(),
        ));
    }
    if sessions.is_empty() {
        return Ok(true);
    }
    if !has(&sessions, "create_time") || !has(&events, "event_data") {
        return Err(unusable(
            "the table `sessions` is not google-adk's; use another database or schema".to_owned(),
        ));
    }
    if !columns(transaction, "adk_internal_metadata").await?.is_empty() {
        let query = "SELECT value FROM adk_internal_metadata WHERE key = 'schema_version' AND value <> '1'";
        if transaction.query_opt(query, &[]).await.map_err(doing("read the schema version"))?.is_some() {
            return Err(unusable(
                "google-adk's schema version is not 1; run `adk migrate session`, or upgrade Sessile"
                    .to_owned(),
            ));
        }
    }
    Ok(false)
}

/// The number of the last migration that was made.
pub(crate) async fn version_of(transaction: &Transaction<'_>) -> Result<i32, SessionError> {
    if columns(transaction, "sessile_meta").await?.is_empty() {
        return Ok(0);
    }
    let query = "SELECT value FROM sessile_meta WHERE key = 'migration'";
    match transaction.query_opt(query, &[]).await.map_err(doing("read the migration's number"))? {
        None => Ok(0),
        Some(row) => {
            let text: String = row.get(0);
            text.parse().map_err(|_| unusable(format!("the migration {text:?} is no number")))
        }
    }
}

/// The columns of a table in the schema where new tables go; none if there is no such table.
async fn columns(transaction: &Transaction<'_>, table: &str) -> Result<Vec<String>, SessionError> {
    let query = "
        SELECT column_name::text FROM information_schema.columns
         WHERE table_schema = current_schema() AND table_name = $1
    ";
    let rows = transaction.query(query, &[&table]).await.map_err(doing("look at the tables"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
