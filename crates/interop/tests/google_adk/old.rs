//! google-adk's old format is refused, and what the refusal advises works.

use std::process::Command;

use serde_json::json;
use sessile_postgres::PostgresStore;
use sessile_session::{EventWindow, SessionError};
use sessile_sqlite::{SqliteOptions, SqliteStore};

use crate::python::{interpreter, place};
use crate::{Database, Kind, Outcome, key, python_setting};

#[tokio::test(flavor = "multi_thread")]
async fn the_old_format_on_sqlite_is_refused_until_it_is_migrated() -> Outcome {
    let old = refused(Kind::SqliteV1).await?;
    let new = Database::new(Kind::SqliteV1).await;
    let url = |database: &Database| format!("sqlite:///{}", database.location);
    let migrated = Command::new(interpreter().with_file_name("adk"))
        .args(["migrate", "session", "--source_db_url", &url(&old), "--dest_db_url", &url(&new)])
        .output()?;
    assert!(migrated.status.success(), "{migrated:?}");
    let rust = new.rust().await;
    let read = rust.get(&key("s"), EventWindow::ALL).await?.expect("it exists");
    let ids: Vec<_> = read.events().iter().map(|event| event.id.as_str()).collect();
    assert_eq!(ids, ["p1", "p2"]);
    assert_eq!(json!(read.state().to_map()), json!({"a": 3, "user:b": [2]}));
    Ok(())
}

/// To migrate it, google-adk would need a driver that it does not install.
#[tokio::test(flavor = "multi_thread")]
async fn the_old_format_on_postgres_is_refused() -> Outcome {
    refused(Kind::Postgres).await.map(drop)
}

/// A database of the old format, which Rust refuses and leaves as it is.
async fn refused(kind: Kind) -> Result<Database, Box<dyn std::error::Error>> {
    let old = Database::new(kind).await;
    let mut python = old.python();
    python.ask("make_old_tables", json!({}));
    python.ask("create", place("s"));
    python.append("s", python_setting("p1", json!({"a": 1, "user:b": [2]})));
    let opened = match kind {
        Kind::Postgres => PostgresStore::connect_url(&old.location).await.map(drop),
        _ => SqliteStore::open(SqliteOptions::new(&old.location)).await.map(drop),
    };
    let Err(SessionError::Unusable { reason }) = opened else { panic!("the old format is used: {opened:?}") };
    assert!(reason.contains("adk migrate session"), "{reason}");
    python.append("s", python_setting("p2", json!({"a": 3})));
    Ok(old)
}
