//! Group commit: the one thread that writes commits everything in its queue in one transaction.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use sessile_session::SessionError;
use tokio::sync::mpsc;

use crate::batch::Batch;
use crate::cache::Cache;
use crate::connection::begin_writing;
use crate::failure::failed_to;
use crate::layout::Layout;

/// The largest number of writes that are committed together.
const LARGEST_BATCH: usize = 512;

/// How long closing waits for other processes that use the file, before it leaves the checkpoint to
/// them.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A message to the thread.
pub(crate) enum Message {
    Write(Box<dyn Task>),
    /// Accept nothing more, write what is in the queue, and end.
    Close,
}

/// A write of any kind.
pub(crate) trait Task: Send {
    /// Does the work. An error means that the transaction must not be committed.
    fn perform(&mut self, batch: &mut Batch<'_>) -> Result<(), SessionError>;

    /// Answers the caller, after the commit or with the error that prevented it.
    fn finish(self: Box<Self>, failed: Option<SessionError>);
}

pub(crate) struct WritingThread {
    connection: Connection,
    layout: Layout,
    cache: Cache,
    /// How long a transaction waits for the locks of other processes.
    timeout: Duration,
}

impl WritingThread {
    pub(crate) fn new(connection: Connection, layout: Layout, timeout: Duration) -> Self {
        Self { connection, layout, cache: Cache::default(), timeout }
    }

    /// Writes until it receives [`Message::Close`], or until all senders are dropped.
    pub(crate) fn run(mut self, mut waiting: mpsc::Receiver<Message>) -> Result<(), SessionError> {
        let mut is_closing = false;
        while let Some(first) = waiting.blocking_recv() {
            let mut tasks = Vec::new();
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Write(task) => tasks.push(task),
                    Message::Close => {
                        is_closing = true;
                        waiting.close();
                    }
                }
                next = if tasks.len() < LARGEST_BATCH { waiting.try_recv().ok() } else { None };
            }
            if !tasks.is_empty() {
                self.commit_together(tasks);
            }
        }
        match is_closing {
            true => self.checkpoint(),
            false => Ok(()),
        }
    }

    /// Moves the write-ahead log into the file, and closes the connection. If another process uses
    /// the file, the last one that closes it does this.
    fn checkpoint(self) -> Result<(), SessionError> {
        let Self { connection, .. } = self;
        connection
            .busy_timeout(CLOSE_TIMEOUT)
            .and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())))
            .map_err(failed_to("move the write-ahead log into the SQLite file"))?;
        connection.close().map_err(|(_, error)| failed_to("close the SQLite file")(error))
    }

    /// Does all tasks in one transaction, and answers them.
    fn commit_together(&mut self, mut tasks: Vec<Box<dyn Task>>) {
        match self.commit(&mut tasks) {
            Ok(()) => tasks.into_iter().for_each(|task| task.finish(None)),
            // Another process holds the lock. Waiting for it again for each task would add up.
            Err(Failed::ToBegin(error)) => {
                let error = Arc::new(error);
                tasks.into_iter().for_each(|task| task.finish(Some(shared(&error))));
            }
            // One bad write must not fail the others of its batch: commit each on its own.
            Err(Failed::ToCommit(_)) => self.commit_each(tasks),
        }
    }

    /// Does each task in a transaction of its own. If one cannot be begun, all remaining tasks fail
    /// with the same error.
    fn commit_each(&mut self, tasks: Vec<Box<dyn Task>>) {
        let mut refused = None;
        for task in tasks {
            if let Some(error) = &refused {
                task.finish(Some(shared(error)));
                continue;
            }
            let mut alone = [task];
            let failed = match self.commit(&mut alone) {
                Ok(()) => None,
                Err(Failed::ToBegin(error)) => Some(shared(refused.insert(Arc::new(error)))),
                Err(Failed::ToCommit(error)) => Some(error),
            };
            let [task] = alone;
            task.finish(failed);
        }
    }

    /// Does all tasks in one transaction. If one of them fails, the transaction is rolled back and
    /// the cache is emptied. The same happens if one of them panics: the thread must go on.
    fn commit(&mut self, tasks: &mut [Box<dyn Task>]) -> Result<(), Failed> {
        let Self { connection, layout, cache, timeout } = self;
        let begun = begin_writing(connection, *timeout);
        let transaction = begun.map_err(|error| Failed::ToBegin(failed_to("begin a transaction")(error)))?;
        let performed = catch_unwind(AssertUnwindSafe(|| perform(&transaction, *layout, cache, tasks)));
        let panicked =
            |_| Err(SessionError::Backend { action: "write", source: "the write panicked".into() });
        let done = performed
            .unwrap_or_else(panicked)
            .and_then(|()| transaction.commit().map_err(failed_to("commit")));
        done.map_err(|error| {
            cache.forget();
            Failed::ToCommit(error)
        })
    }
}

/// The step at which a transaction failed. Nothing of it is stored.
enum Failed {
    ToBegin(SessionError),
    ToCommit(SessionError),
}

fn perform(
    connection: &Connection,
    layout: Layout,
    cache: &mut Cache,
    tasks: &mut [Box<dyn Task>],
) -> Result<(), SessionError> {
    let mut batch = Batch::begin(connection, layout, cache)?;
    for task in tasks {
        task.perform(&mut batch)?;
    }
    batch.flush()
}

/// The same error, for each of many.
fn shared(error: &Arc<SessionError>) -> SessionError {
    let source = error.clone().into();
    match &**error {
        SessionError::Unavailable { action, reason, .. } => {
            SessionError::Unavailable { action, reason: reason.clone(), source }
        }
        _ => SessionError::Backend { action: "write", source },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    struct Asked(Arc<Mutex<Vec<SessionError>>>);

    impl Task for Asked {
        fn perform(&mut self, _: &mut Batch<'_>) -> Result<(), SessionError> {
            Ok(())
        }

        fn finish(self: Box<Self>, failed: Option<SessionError>) {
            self.0.lock().expect("no test panics with it").extend(failed);
        }
    }

    #[test]
    fn when_the_file_is_locked_after_a_failed_batch_one_wait_is_enough_for_all() {
        let path = tempfile::tempdir().expect("a temporary folder is made").keep().join("sessile.db");
        let connection = Connection::open(&path).expect("the file opens");
        let other = Connection::open(&path).expect("the file opens");
        other.execute_batch("BEGIN IMMEDIATE").expect("the file is locked");
        let failed = Arc::new(Mutex::default());
        let tasks = (0..3).map(|_| Box::new(Asked(failed.clone())) as Box<dyn Task>).collect();
        WritingThread::new(connection, Layout::Adk, Duration::from_millis(1)).commit_each(tasks);
        let causes: Vec<_> = std::mem::take(&mut *failed.lock().expect("no test panics with it"))
            .into_iter()
            .map(|error| match error {
                SessionError::Unavailable { source, .. } => {
                    source.downcast::<Arc<SessionError>>().expect("the error is shared")
                }
                other => panic!("the file is locked: {other:?}"),
            })
            .collect();
        assert_eq!(causes.len(), 3);
        assert!(causes.iter().all(|cause| Arc::ptr_eq(cause, &causes[0])), "it was begun once");
    }
}
