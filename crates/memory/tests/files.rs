//! What only a file has: limits, reopening, and files that cannot be used.

use std::fs;

use rusqlite::Connection;
use sessile_memory::{InMemoryMemory, MemoryError, MemoryService, SqliteMemory};
use sessile_session::{Content, CreateSession, Event, MemoryStore, Session, SessionService};
use sessile_sqlite::SqliteStore;
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn std::error::Error>>;

async fn session_with(sessions: &SessionService, count: usize) -> Session {
    let mut session = sessions.create(CreateSession::new("app", "ada")).await.expect("a session");
    for n in 0..count {
        let event = Event::new("user").with_content(Content::text("user", format!("sheep {n}")));
        sessions.append(&mut session, event).await.expect("an event");
    }
    session
}

async fn sheep(count: usize) -> Session {
    session_with(&SessionService::new(MemoryStore::new()), count).await
}

#[tokio::test]
async fn a_reopened_file_remembers() -> Outcome {
    let folder = TempDir::new()?;
    let path = folder.path().join("memory.db");
    SqliteMemory::open(&path).await?.add_session(&sheep(3).await).await?;
    assert_eq!(SqliteMemory::open(&path).await?.search("app", "ada", "sheep").await?.len(), 3);
    Ok(())
}

#[tokio::test]
async fn searches_are_limited() -> Outcome {
    let folder = TempDir::new()?;
    let file = SqliteMemory::open(folder.path().join("memory.db")).await?;
    let memory = InMemoryMemory::new();
    let session = sheep(60).await;
    file.add_session(&session).await?;
    memory.add_session(&session).await?;
    assert_eq!(file.search("app", "ada", "sheep").await?.len(), 50);
    assert_eq!(memory.search("app", "ada", "sheep").await?.len(), 10);
    Ok(())
}

#[tokio::test]
async fn sessions_and_memory_share_a_file() -> Outcome {
    let folder = TempDir::new()?;
    let path = folder.path().join("both.db");
    let url = format!("sqlite:///{}", path.display());
    let sessions = SessionService::new(SqliteStore::open_url(&url).await?);
    let memory = SqliteMemory::open(&path).await?;
    let session = session_with(&sessions, 2).await;
    memory.add_session(&session).await?;
    assert_eq!(memory.search("app", "ada", "sheep").await?.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_file_may_be_opened_by_many_at_once() -> Outcome {
    let folder = TempDir::new()?;
    let path = folder.path().join("memory.db");
    let opening: Vec<_> = (0..8).map(|_| tokio::spawn(SqliteMemory::open(path.clone()))).collect();
    for opened in opening {
        opened.await??.add_session(&sheep(1).await).await?;
    }
    assert_eq!(SqliteMemory::open(&path).await?.search("app", "ada", "sheep").await?.len(), 8);
    Ok(())
}

#[tokio::test]
async fn what_was_written_without_an_index_of_words_is_found() -> Outcome {
    let folder = TempDir::new()?;
    let path = folder.path().join("memory.db");
    SqliteMemory::open(&path).await?.add_session(&sheep(2).await).await?;
    Connection::open(&path)?.execute_batch(
        "DROP TRIGGER memory_events_ai; DROP TRIGGER memory_events_ad; DROP TRIGGER memory_events_au;
         DROP TABLE memory_events_fts;",
    )?;
    assert_eq!(SqliteMemory::open(&path).await?.search("app", "ada", "sheep").await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn another_layout_is_refused_and_left_alone() -> Outcome {
    let folder = TempDir::new()?;
    let path = folder.path().join("memory.db");
    Connection::open(&path)?.execute_batch(
        "CREATE TABLE adk_memory_metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
         INSERT INTO adk_memory_metadata VALUES ('schema_version', '2');",
    )?;
    let refused = SqliteMemory::open(&path).await.err().ok_or("it has another layout")?;
    assert!(matches!(refused, MemoryError::Unusable { .. }), "{refused}");
    let tables: u32 = Connection::open(&path)?.query_row(
        "SELECT count(*) FROM sqlite_master WHERE type = 'table'",
        [],
        |row| row.get(0),
    )?;
    assert_eq!(tables, 1);
    Ok(())
}

#[tokio::test]
async fn files_that_are_no_database_are_refused() -> Outcome {
    let folder = TempDir::new()?;
    let text = folder.path().join("text.db");
    fs::write(&text, "this is not a database at all, but a long enough text")?;
    for path in [text, folder.path().to_owned(), folder.path().join("no/such/folder.db")] {
        let refused = SqliteMemory::open(&path).await.err().ok_or("it is no database")?;
        assert!(matches!(refused, MemoryError::Unusable { .. }), "{refused}");
    }
    Ok(())
}

#[tokio::test]
async fn corruption_names_the_row() -> Outcome {
    let folder = TempDir::new()?;
    let path = folder.path().join("memory.db");
    let memory = SqliteMemory::open(&path).await?;
    memory.add_session(&sheep(1).await).await?;
    Connection::open(&path)?.execute("UPDATE memory_events SET content_json = '{'", [])?;
    let error = memory.search("app", "ada", "sheep").await.err().ok_or("it is corrupt")?.to_string();
    assert!(error.contains("content_json") && error.contains("row 1"), "{error}");
    Ok(())
}
