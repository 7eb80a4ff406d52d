use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::Connection;
use sessile_session::{
    Address, Appended, Commit, EventWindow, ListQuery, NewSession, ScopeKey, SessionError, SessionKey,
    StateMap, Store, StoredPage, StoredSession, Version,
};
use sessile_state::Delta;
use tokio::sync::Semaphore;

use crate::addresses::addresses;
use crate::connection::{SqliteOptions, not_migrated};
use crate::failure::doing;
use crate::layout::Layout;
use crate::list::list;
use crate::migrate::migrate;
use crate::read;
use crate::write::EventColumns;
use crate::writer::Writer;

/// Sessions in a SQLite file, in google-adk's tables.
///
/// A new file gets the layout of google-adk's `SqliteSessionService`; a file in the layout of its
/// `DatabaseSessionService` is recognised and served as it is.
pub struct SqliteStore {
    layout: Layout,
    writer: Writer,
    readers: Arc<Readers>,
}

/// Connections that read, taken in turns.
struct Readers {
    options: SqliteOptions,
    /// One permit for each connection.
    free: Arc<Semaphore>,
    /// Connections that nobody uses now. A std mutex: it is never held across an `.await`.
    idle: Mutex<Vec<Connection>>,
}

impl SqliteStore {
    /// Opens a file, making it or extending it if need be.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] says what to do about a file that cannot be used: it is read-only,
    /// no database, of google-adk's old format, or written by a newer Sessile.
    pub async fn open(options: SqliteOptions) -> Result<Self, SessionError> {
        tokio::task::spawn_blocking(move || Self::open_now(options))
            .await
            .map_err(doing("open the SQLite file"))?
    }

    /// Opens the file that a URL names, see [`SqliteOptions::from_url`].
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn open_url(url: &str) -> Result<Self, SessionError> {
        Self::open(SqliteOptions::from_url(url)?).await
    }

    /// Closes the file after everything that was handed over is written. Without it nothing is lost
    /// either, but what was written last may still be in the file's `-wal` companion.
    ///
    /// # Errors
    ///
    /// [`SessionError::Backend`] if the writing thread had failed.
    pub async fn close(self) -> Result<(), SessionError> {
        let Self { writer, readers, .. } = self;
        let closed = tokio::task::spawn_blocking(move || {
            drop(readers); // the last connection to close empties the companion
            writer.finish()
        });
        closed.await.map_err(doing("close the SQLite file"))?
    }

    fn open_now(options: SqliteOptions) -> Result<Self, SessionError> {
        let mut connection = options.open_writer()?;
        let layout = migrate(&mut connection).map_err(|error| not_migrated(&options.path, error))?;
        let writer = Writer::start(connection, layout)?;
        let readers =
            Readers { free: Arc::new(Semaphore::new(options.readers)), idle: Mutex::default(), options };
        Ok(Self { layout, writer, readers: Arc::new(readers) })
    }

    /// Reads on a thread that may block.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection, Layout) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        let free = self.readers.free.clone();
        let permit = free.acquire_owned().await.map_err(doing("wait for a connection"))?;
        let (readers, layout) = (self.readers.clone(), self.layout);
        let read = tokio::task::spawn_blocking(move || {
            let mut connection = readers.take()?;
            let result = work(&mut connection, layout);
            readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            drop(permit); // here, because whoever asked may go before the work ends
            result
        });
        read.await.map_err(doing("read"))?
    }
}

impl Readers {
    fn take(&self) -> Result<Connection, SessionError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.options.open_reader(), Ok)
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        self.writer.write(move |batch| batch.create(&new)).await
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        let key = key.clone();
        self.read(move |connection, layout| read::get(connection, layout, &key, window)).await
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        let query = query.clone();
        self.read(move |connection, layout| list(connection, layout, &query)).await
    }

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let key = key.clone();
        self.writer.write(move |batch| batch.delete(&key, expect)).await
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let columns = EventColumns::new(&commit.event, self.layout)?;
        self.writer.write(move |batch| batch.append(&commit, &columns)).await
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<StateMap, SessionError> {
        let scope = scope.clone();
        self.read(move |connection, _| read::scope_state(connection, &scope)).await
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, time: f64) -> Result<(), SessionError> {
        let scope = scope.clone();
        self.writer.write(move |batch| batch.write_scope(&scope, &delta, time)).await
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        let after = after.cloned();
        self.read(move |connection, _| addresses(connection, after.as_ref(), limit)).await
    }
}
