//! The pool of connections that read.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use sessile_session::SessionError;
use tokio::sync::Semaphore;

use crate::connection::SqliteOptions;
use crate::failure::{closed, failed_to};

pub(crate) struct Readers {
    options: SqliteOptions,
    /// One permit for each connection; closed with the store.
    free: Arc<Semaphore>,
    /// Connections that are not in use. A std mutex: it is never held across an `.await`.
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(options: SqliteOptions) -> Self {
        Self { free: Arc::new(Semaphore::new(options.readers)), idle: Mutex::default(), options }
    }

    pub(crate) fn options(&self) -> &SqliteOptions {
        &self.options
    }

    /// Runs `work` with a connection, on a thread that may block.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Connection) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        let permit = self.free.clone().acquire_owned().await.map_err(|_| closed())?;
        let readers = self.clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut connection = readers.take()?;
            let result = work(&mut connection);
            readers.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            drop(permit); // only now: the caller may stop waiting before the work ends
            result
        });
        read.await.map_err(failed_to("read"))?
    }

    /// Waits for reads in progress, and closes all connections. Later reads fail.
    pub(crate) async fn close(&self) -> Result<(), SessionError> {
        let all = u32::try_from(self.options.readers).unwrap_or(u32::MAX);
        let Ok(_permits) = self.free.acquire_many(all).await else { return Ok(()) }; // it is closed already
        self.free.close();
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(move || drop(idle)).await.map_err(failed_to("close the SQLite file"))
    }

    fn take(&self) -> Result<Connection, SessionError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.options.open_reader(), Ok)
    }
}
