//! Memory in a SQLite file, in the tables of google-adk's `SqliteMemoryService`.

mod open;
mod rows;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::Connection;
use sessile_session::Session;
use tokio::sync::Mutex;

use crate::error::{MemoryError, doing};
use crate::service::{MemoryEntry, MemoryService};
use rows::{Found, NewRow};

/// Memories in a SQLite file that google-adk's `SqliteMemoryService` can use at the same time. It
/// may be the file of the sessions. A search returns at most fifty memories, the best match first.
pub struct SqliteMemory {
    /// A tokio mutex, because it is locked while a blocking thread uses the connection; waiting
    /// tasks do not block their threads.
    writer: Arc<Mutex<Connection>>,
    reader: Arc<Mutex<Connection>>,
}

impl SqliteMemory {
    /// Opens a file, and creates it and its tables if they do not exist.
    ///
    /// # Errors
    ///
    /// [`MemoryError::Unusable`] says what to do about a file that cannot be used.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, MemoryError> {
        let path = path.into();
        let opened = tokio::task::spawn_blocking(move || {
            let writer = open::writer(&path)?; // first: it creates the tables
            Ok((writer, open::reader(&path)?))
        });
        let (writer, reader) = opened.await.map_err(doing("open the memory file"))??;
        Ok(Self { writer: Arc::new(Mutex::new(writer)), reader: Arc::new(Mutex::new(reader)) })
    }
}

#[async_trait]
impl MemoryService for SqliteMemory {
    async fn add_session(&self, session: &Session) -> Result<(), MemoryError> {
        let key = session.key().clone();
        let rows = session.events().iter().map(|event| NewRow::of(event));
        let rows: Vec<NewRow> = rows.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        if rows.is_empty() {
            return Ok(());
        }
        with(&self.writer, "add to the memory", move |connection| rows::add(connection, &key, &rows)).await
    }

    async fn search(&self, app: &str, user: &str, query: &str) -> Result<Vec<MemoryEntry>, MemoryError> {
        let Some(query) = rows::match_any(query) else { return Ok(Vec::new()) };
        let (app, user) = (app.to_owned(), user.to_owned());
        let found = with(&self.reader, "search the memory", move |connection| {
            rows::search(connection, &app, &user, &query)
        });
        found.await?.into_iter().map(Found::entry).collect()
    }
}

/// Uses a connection on a thread that may block.
async fn with<T: Send + 'static>(
    connection: &Arc<Mutex<Connection>>,
    action: &'static str,
    work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, MemoryError> {
    let mut connection = connection.clone().lock_owned().await;
    let worked = tokio::task::spawn_blocking(move || work(&mut connection));
    worked.await.map_err(doing(action))?.map_err(doing(action))
}

impl fmt::Debug for SqliteMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteMemory").finish_non_exhaustive()
    }
}
