//! Memory: what agents remember across sessions.
//!
//! A [`MemoryService`] indexes the messages of sessions and searches them: [`InMemoryMemory`] in
//! memory, [`SqliteMemory`] in a file that google-adk's `SqliteMemoryService` uses too. Sessions
//! are added only on request, and memory never changes the state of a session.
//!
//! ```
//! use sessile_memory::{InMemoryMemory, MemoryService};
//! use sessile_session::{Content, CreateSession, Event, MemoryStore, SessionService};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let sessions = SessionService::new(MemoryStore::new());
//! let mut session = sessions.create(CreateSession::new("travel", "ada")).await?;
//! let said = Event::new("user").with_content(Content::text("user", "I am allergic to nuts."));
//! sessions.append(&mut session, said).await?;
//!
//! let memory = InMemoryMemory::new();
//! memory.add_session(&session).await?;
//! let found = memory.search("travel", "ada", "What is the user allergic to?").await?;
//! assert_eq!(found[0].author.as_deref(), Some("user"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

mod error;
mod in_memory;
mod service;
mod sqlite;
mod time;
mod words;

pub use error::MemoryError;
pub use in_memory::InMemoryMemory;
pub use service::{MemoryEntry, MemoryService};
pub use sqlite::SqliteMemory;
