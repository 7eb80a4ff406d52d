//! One database shared with google-adk, which runs for real, in Python.
//!
//! Every test of sessions runs on a SQLite file in both of google-adk's layouts, and on PostgreSQL.
//! To add one, write `async fn name(both: Both) -> Outcome` in the file of its subject and list it
//! there in `in_every_database!`. Artifacts share a folder, and memory a file: their tests are in
//! `artifacts.rs` and `memory.rs`.

mod exact;
mod postgres;
mod python;

mod artifacts;
mod events;
mod history;
mod memory;
mod old;
mod operations;
mod stale;
mod together;
mod turns;

use serde_json::{Value, json};
use sessile_postgres::PostgresStore;
use sessile_session::{Event, EventActions, EventWindow, Session, SessionKey, SessionService};
use sessile_sqlite::{SqliteOptions, SqliteStore};
use sessile_state::SharedValue;
use tempfile::TempDir;

use python::Python;

/// Makes of each function three tests, one for each kind of database.
macro_rules! in_every_database {
    ($($name:ident),* $(,)?) => {
        mod sqlite_session_service {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> $crate::Outcome {
                super::$name($crate::Both::new($crate::Kind::Sqlite).await).await
            })*
        }

        mod database_session_service_on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> $crate::Outcome {
                super::$name($crate::Both::new($crate::Kind::SqliteV1).await).await
            })*
        }

        mod database_session_service_on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> $crate::Outcome {
                super::$name($crate::Both::new($crate::Kind::Postgres).await).await
            })*
        }
    };
}

pub(crate) use in_every_database;

/// What a test's body answers: every error fails the test.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// google-adk's service, and the database that it is used on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// `SqliteSessionService`.
    Sqlite,
    /// `DatabaseSessionService` on a SQLite file, which has another layout.
    SqliteV1,
    /// `DatabaseSessionService` on PostgreSQL.
    Postgres,
}

/// A database that is there as long as the test.
pub(crate) struct Database {
    pub(crate) kind: Kind,
    /// The path of the file, or the URL of the database.
    pub(crate) location: String,
    /// Removed with all that is in it when the test ends.
    _folder: TempDir,
}

impl Database {
    pub(crate) async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let location = match kind {
            Kind::Sqlite | Kind::SqliteV1 => {
                folder.path().join("shared.db").to_str().expect("a temporary path is text").to_owned()
            }
            Kind::Postgres => postgres::new_database().await,
        };
        Self { kind, location, _folder: folder }
    }

    pub(crate) fn python(&self) -> Python {
        Python::start(self)
    }

    pub(crate) async fn rust(&self) -> SessionService {
        match self.kind {
            Kind::Sqlite | Kind::SqliteV1 => {
                let options = SqliteOptions::new(&self.location);
                SessionService::new(SqliteStore::open(options).await.expect("the file opens"))
            }
            Kind::Postgres => {
                let url = format!("{}?pool_size=4", self.location);
                SessionService::new(PostgresStore::connect_url(&url).await.expect("the database can be used"))
            }
        }
    }
}

/// A new database, used by both.
pub(crate) struct Both {
    pub(crate) python: Python,
    pub(crate) rust: SessionService,
    database: Database,
}

impl Both {
    pub(crate) async fn new(kind: Kind) -> Self {
        let database = Database::new(kind).await;
        let mut python = database.python();
        if kind == Kind::SqliteV1 {
            // Python makes the tables of its layout at the first question; alone, Rust would make
            // the others.
            python.ask("list", json!({"app": "shop"}));
        }
        let rust = database.rust().await;
        Self { python, rust, database }
    }

    /// Another process of Python on the same database.
    pub(crate) fn another_python(&self) -> Python {
        self.database.python()
    }

    /// Another service of Rust on the same database, as another process would have it.
    pub(crate) async fn another_rust(&self) -> SessionService {
        self.database.rust().await
    }

    pub(crate) fn kind(&self) -> Kind {
        self.database.kind
    }

    /// The session `s` as Rust reads it.
    pub(crate) async fn session(&self) -> Session {
        let found = self.rust.get(&key("s"), EventWindow::ALL).await.expect("the session is read");
        found.expect("the session exists")
    }
}

pub(crate) fn key(id: &str) -> SessionKey {
    SessionKey::new("shop", "ada", id).expect("a valid key")
}

/// An event of Rust's that sets these keys.
pub(crate) fn setting(id: &str, delta: Value) -> Event {
    Event { id: id.to_owned(), actions: EventActions::from_delta(delta), ..Event::new("rust") }
}

/// An event of Python's that sets these keys.
pub(crate) fn python_setting(id: &str, delta: Value) -> SharedValue {
    json!({"id": id, "author": "python", "invocationId": "i", "actions": {"stateDelta": delta}}).into()
}

/// The ids of the events in an answer of Python's.
pub(crate) fn ids(session: &Value) -> Vec<&str> {
    let events = session["events"].as_array().expect("a session has events");
    events.iter().map(|event| event["id"].as_str().expect("an event has an id")).collect()
}
