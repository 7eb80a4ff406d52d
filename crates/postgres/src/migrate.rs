//! Migrations: creating or extending the tables, in a way that google-adk can go on using them.

use std::time::Duration;

use deadpool_postgres::Pool;
use sessile_session::{SessionError, doing};
use tokio_postgres::Transaction;

use crate::failure::unusable;
use crate::failure::{is_locked, is_victim};
use crate::retry::{client, lost_is_unavailable};

/// The last migration that this version knows.
pub(crate) const LATEST: i32 = 8;

/// An advisory lock, so that only one process migrates at a time. The number is arbitrary.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305809920471)";

const META: &str = "
    CREATE TABLE IF NOT EXISTS sessile_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)
";

const NOTE: &str = "
    INSERT INTO sessile_meta (key, value) VALUES ('migration', $1)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value
";

/// The migrations after the first, in order. There is no second: the third replaced it.
const MIGRATIONS: &[(i32, &str)] = &[
    (3, include_str!("../migrations/0003_append.sql")),
    (4, include_str!("../migrations/0004_list.sql")),
    (5, include_str!("../migrations/0005_history.sql")),
    (5, include_str!("../migrations/0005_evaluate.sql")),
    (5, include_str!("../migrations/0005_write.sql")),
    (5, include_str!("../migrations/0005_commit.sql")),
    (6, include_str!("../migrations/0006_foreign.sql")),
    (6, include_str!("../migrations/0006_write.sql")),
    (7, include_str!("../migrations/0007_size.sql")),
    (8, include_str!("../migrations/0008_list.sql")),
    (8, include_str!("../migrations/0008_commit.sql")),
];

/// How long a migration waits for the locks of the tables, before it lets writers go on and
/// retries. Writers queue behind a lock request, so the timeout must be short.
const LOCK_TIMEOUT: &str = "SET LOCAL lock_timeout = '2s'";

/// Blocks writers while the tables are extended. The tables are locked in the order in which
/// writers lock them, so that the migration and a writer cannot deadlock.
const TABLES: &str = "LOCK TABLE sessions, app_states, user_states, events IN ACCESS EXCLUSIVE MODE";

/// The largest number of attempts to lock the tables.
const ATTEMPTS: u32 = 30;

/// Creates or extends the tables.
pub(crate) async fn migrate(pool: &Pool) -> Result<(), SessionError> {
    let mut attempt = 1;
    loop {
        match try_migrate(pool).await {
            Err(error) if attempt < ATTEMPTS && is_blocked(&error) => {
                tokio::time::sleep(Duration::from_millis(200)).await;
                attempt += 1;
            }
            done => return done.map_err(lost_is_unavailable),
        }
    }
}

/// Whether other transactions kept the migration from locking the tables; it was rolled back.
fn is_blocked(error: &SessionError) -> bool {
    let SessionError::Backend { source, .. } = error else { return false };
    source.downcast_ref().is_some_and(|error| is_locked(error) || is_victim(error))
}

async fn try_migrate(pool: &Pool) -> Result<(), SessionError> {
    let mut client = client(pool).await?;
    let transaction = client.transaction().await.map_err(doing("begin the migration"))?;
    transaction.batch_execute(LOCK).await.map_err(doing("wait for other migrations"))?;
    let tables = Tables::read(&transaction).await?;
    let is_new = check_layout(&transaction, &tables).await?;
    let version = version_of(&transaction, &tables).await?;
    if version > LATEST {
        return Err(unusable(format!(
            "the database was written by a newer Sessile (migration {version}, this one knows {LATEST}); upgrade this one"
        )));
    }
    if version < LATEST {
        transaction.batch_execute(LOCK_TIMEOUT).await.map_err(doing("limit the wait for locks"))?;
        if !is_new {
            transaction.batch_execute(TABLES).await.map_err(doing("lock the tables"))?;
        }
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
    for &(number, migration) in MIGRATIONS {
        if version < number {
            transaction.batch_execute(migration).await.map_err(doing("extend the tables"))?;
        }
    }
    if version < LATEST {
        transaction.execute(NOTE, &[&LATEST.to_string()]).await.map_err(doing("note the migration"))?;
    }
    transaction.commit().await.map_err(doing("commit the migration"))
}

/// The tables that decide about a migration, in the current schema: their names and columns.
pub(crate) struct Tables(Vec<(String, String)>);

const COLUMNS: &str = "
    SELECT t.relname::text, c.attname::text
      FROM pg_class t JOIN pg_attribute c ON c.attrelid = t.oid
     WHERE t.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
       AND t.relname IN ('sessions', 'events', 'adk_internal_metadata', 'sessile_meta')
       AND t.relkind IN ('r', 'p', 'v', 'f') AND c.attnum > 0 AND NOT c.attisdropped
";

impl Tables {
    pub(crate) async fn read(transaction: &Transaction<'_>) -> Result<Self, SessionError> {
        let rows = transaction.query_typed(COLUMNS, &[]).await.map_err(doing("look at the tables"))?;
        Ok(Self(rows.iter().map(|row| (row.get(0), row.get(1))).collect()))
    }

    fn has(&self, table: &str) -> bool {
        self.0.iter().any(|(name, _)| name == table)
    }

    fn has_column(&self, table: &str, column: &str) -> bool {
        self.0.iter().any(|(name, other)| name == table && other == column)
    }
}

/// Returns whether the tables are missing; refuses tables that are not google-adk's version 1.
pub(crate) async fn check_layout(
    transaction: &Transaction<'_>,
    tables: &Tables,
) -> Result<bool, SessionError> {
    if tables.has_column("events", "actions") && !tables.has_column("events", "event_data") {
        return Err(unusable(
            "the database is in google-adk's old format (pickled events); run `adk migrate session` and use the new one"
                .to_owned(),
        ));
    }
    if !tables.has("sessions") {
        return Ok(true);
    }
    if !tables.has_column("sessions", "create_time") || !tables.has_column("events", "event_data") {
        return Err(unusable(
            "the table `sessions` is not google-adk's; use another database or schema".to_owned(),
        ));
    }
    if tables.has("adk_internal_metadata") {
        let query =
            "SELECT 1 FROM adk_internal_metadata WHERE key = 'schema_version' AND value <> '1' LIMIT 1";
        let others = transaction.query_typed(query, &[]).await.map_err(doing("read the schema version"))?;
        if !others.is_empty() {
            return Err(unusable(
                "google-adk's schema version is not 1; run `adk migrate session`, or upgrade Sessile"
                    .to_owned(),
            ));
        }
    }
    Ok(false)
}

/// The number of the last migration that was applied.
pub(crate) async fn version_of(transaction: &Transaction<'_>, tables: &Tables) -> Result<i32, SessionError> {
    if !tables.has("sessile_meta") {
        return Ok(0);
    }
    let query = "SELECT value FROM sessile_meta WHERE key = 'migration'";
    let rows = transaction.query_typed(query, &[]).await.map_err(doing("read the migration's number"))?;
    let Some(row) = rows.first() else { return Ok(0) };
    let text: String = row.get(0);
    text.parse().map_err(|_| unusable(format!("the migration {text:?} is not a number")))
}
