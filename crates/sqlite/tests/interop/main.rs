//! One file shared with google-adk, which runs for real, in Python.
//!
//! Every test runs in both of google-adk's layouts. To add one, write
//! `async fn name(both: Both) -> Outcome` in the file of its subject and list it there in `in_both_layouts!`.

mod exact;
mod python;

mod events;
mod stale;
mod together;
mod turns;

use std::path::PathBuf;

use serde_json::{Value, json};
use sessile_session::{Event, EventActions, EventWindow, Session, SessionKey, SessionService};
use sessile_sqlite::{SqliteOptions, SqliteStore};
use sessile_state::SharedValue;
use tempfile::TempDir;

use python::Python;

/// Makes of each function two tests, one for each layout.
macro_rules! in_both_layouts {
    ($($name:ident),* $(,)?) => {
        mod sqlite_session_service {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> $crate::Outcome {
                super::$name($crate::Both::new($crate::Layout::Sqlite).await).await
            })*
        }

        mod database_session_service {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() -> $crate::Outcome {
                super::$name($crate::Both::new($crate::Layout::Database).await).await
            })*
        }
    };
}

pub(crate) use in_both_layouts;

/// What a test's body answers: every error fails the test.
pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// google-adk's service, and with it the layout of the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Layout {
    Sqlite,
    Database,
}

/// A new file, opened by both.
pub(crate) struct Both {
    pub(crate) python: Python,
    pub(crate) rust: SessionService,
    layout: Layout,
    path: PathBuf,
    /// Removed with all that is in it when the test ends.
    _folder: TempDir,
}

impl Both {
    pub(crate) async fn new(layout: Layout) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let path = folder.path().join("shared.db");
        let mut python = Python::start(layout, &path);
        if layout == Layout::Database {
            // Python makes the tables of its layout at the first question; alone, Rust would make the others.
            python.ask("list", json!({"app": "shop"}));
        }
        let rust = rust(&path).await;
        Self { python, rust, layout, path, _folder: folder }
    }

    /// Another process of Python on the same file.
    pub(crate) fn another_python(&self) -> Python {
        Python::start(self.layout, &self.path)
    }

    /// Another service of Rust on the same file, as another process would have it.
    pub(crate) async fn another_rust(&self) -> SessionService {
        rust(&self.path).await
    }

    /// The session `s` as Rust reads it.
    pub(crate) async fn session(&self) -> Session {
        let found = self.rust.get(&key("s"), EventWindow::ALL).await.expect("the session is read");
        found.expect("the session exists")
    }
}

async fn rust(path: &std::path::Path) -> SessionService {
    SessionService::new(SqliteStore::open(SqliteOptions::new(path)).await.expect("the file opens"))
}

pub(crate) fn key(id: &str) -> SessionKey {
    SessionKey::new("shop", "ada", id).expect("a valid key")
}

/// An event of Rust's that sets these keys.
pub(crate) fn setting(id: &str, delta: Value) -> Event {
    let Value::Object(delta) = delta else { panic!("a delta is an object") };
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
