//! One file of memories.

use serde_json::{Value, json};
use sessile_memory::{MemoryService, SqliteMemory};
use sessile_session::{Content, CreateSession, Event, MemoryStore, Session, SessionService};
use tempfile::TempDir;

use crate::Outcome;
use crate::python::{Python, place};

const SAID: [&str; 4] = [
    "My cat is called Grace.",
    "私はPythonを使う",
    "ÉCOLE de cafe\u{301}, snake_case and 100%",
    "İstanbul'da \"quoted\"",
];

const QUERIES: [&str; 10] = [
    "the CAT",
    "python",
    "école café",
    "İstanbul",
    "snake_case",
    "100%",
    "\"quoted\" OR (",
    "を使う",
    "grace*",
    "de",
];

/// A file used by both.
struct Both {
    python: Python,
    rust: SqliteMemory,
    _folder: TempDir,
}

impl Both {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let path = folder.path().join("memory.db");
        let python = Python::start_service("memory", path.to_str().expect("a temporary path is text"));
        let rust = SqliteMemory::open(path).await.expect("the file opens");
        Self { python, rust, _folder: folder }
    }

    /// What Python finds, without its times, which are local.
    fn search(&mut self, query: &str) -> Value {
        let found = self.python.ask("search", json!({"app": "shop", "user": "ada", "query": query}));
        without_times(found["memories"].clone())
    }

    /// What Rust finds, spelled as Python does.
    async fn find(&self, query: &str) -> Value {
        let found = self.rust.search("shop", "ada", query).await.expect("the search works");
        without_times(serde_json::to_value(found).expect("memories have a JSON form"))
    }
}

fn without_times(mut memories: Value) -> Value {
    for memory in memories.as_array_mut().expect("memories are a list") {
        let memory = memory.as_object_mut().expect("a memory is an object");
        assert!(
            memory
                .remove("timestamp")
                .is_some_and(|time| time.as_str().is_some_and(|time| time.starts_with("20")))
        );
    }
    memories
}

async fn session() -> Session {
    let sessions = SessionService::new(MemoryStore::new());
    let mut session =
        sessions.create(CreateSession::new("shop", "ada").with_id("s")).await.expect("a session");
    for (n, text) in SAID.iter().enumerate() {
        let event = Event { id: format!("e{n}"), ..Event::new("user") };
        let event = event.with_content(Content::text("user", *text));
        sessions.append(&mut session, event).await.expect("an event");
    }
    session
}

#[tokio::test]
async fn what_rust_remembers_both_find() -> Outcome {
    let mut both = Both::new().await;
    both.rust.add_session(&session().await).await?;
    for query in QUERIES {
        let found = both.search(query);
        assert_eq!(found, both.find(query).await, "{query}");
        assert!(!found.as_array().is_some_and(Vec::is_empty), "{query} finds nothing");
    }
    Ok(())
}

#[tokio::test]
async fn what_python_remembers_both_find() -> Outcome {
    let mut both = Both::new().await;
    let events: Vec<Value> = session().await.events().iter().map(|event| json!(&*event.event)).collect();
    let mut arguments = place("s");
    arguments["events"] = events.into();
    both.python.ask("add", arguments);
    for query in QUERIES {
        let found = both.search(query);
        assert_eq!(found, both.find(query).await, "{query}");
        assert!(!found.as_array().is_some_and(Vec::is_empty), "{query} finds nothing");
    }
    Ok(())
}

#[tokio::test]
async fn what_both_remember_is_there_once() -> Outcome {
    let mut both = Both::new().await;
    let session = session().await;
    both.rust.add_session(&session).await?;
    let mut arguments = place("s");
    arguments["events"] = session.events().iter().map(|event| json!(&*event.event)).collect();
    both.python.ask("add", arguments);
    both.rust.add_session(&session).await?;
    assert_eq!(both.find("cat").await.as_array().map(Vec::len), Some(1));
    assert_eq!(both.search("cat").as_array().map(Vec::len), Some(1));
    Ok(())
}
