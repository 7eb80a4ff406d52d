//! The one thread that writes: everything that waits is committed together.

use std::sync::Arc;
use std::thread;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sessile_session::SessionError;
use tokio::sync::{mpsc, oneshot};

use crate::cache::Cache;
use crate::failure::doing;
use crate::layout::Layout;
use crate::write::Batch;

/// How many writes are committed together at the most.
const LARGEST_BATCH: usize = 512;

/// How many writes may wait; more wait to wait.
const LONGEST_QUEUE: usize = 4096;

/// Hands writes to the thread. The thread ends, after what was handed over, when this is dropped.
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Task>>,
    thread: thread::JoinHandle<()>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, layout: Layout) -> Result<Self, SessionError> {
        let (queue, waiting) = mpsc::channel(LONGEST_QUEUE);
        let thread = thread::Builder::new()
            .name("sessile-sqlite-writer".to_owned())
            .spawn(move || run(connection, layout, waiting))
            .map_err(doing("start the writing thread"))?;
        Ok(Self { queue, thread })
    }

    /// Waits until everything that was handed over is written and the connection is closed.
    pub(crate) fn finish(self) -> Result<(), SessionError> {
        drop(self.queue);
        self.thread.join().map_err(|_| ended())
    }

    /// Does `work` in a transaction, alone or with others; answers after the commit. The work may be
    /// done twice, if a transaction fails.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Batch<'_>) -> Result<T, SessionError> + Send + 'static,
    ) -> Result<T, SessionError> {
        let (reply, answer) = oneshot::channel();
        let task = Write { work, answer: None, reply };
        self.queue.send(Box::new(task)).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

fn ended() -> SessionError {
    SessionError::Backend { action: "write", source: "the writing thread has ended".into() }
}

/// A write of any kind.
trait Task: Send {
    /// Does the work. An error means that the transaction must not be committed.
    fn perform(&mut self, batch: &mut Batch<'_>) -> Result<(), SessionError>;

    /// Tells who waits what came of it.
    fn finish(self: Box<Self>, failed: Option<SessionError>);
}

struct Write<T, Work> {
    work: Work,
    answer: Option<Result<T, SessionError>>,
    reply: oneshot::Sender<Result<T, SessionError>>,
}

impl<T: Send, Work: Fn(&mut Batch<'_>) -> Result<T, SessionError> + Send> Task for Write<T, Work> {
    fn perform(&mut self, batch: &mut Batch<'_>) -> Result<(), SessionError> {
        match (self.work)(batch) {
            Err(error) if !is_refusal(&error) => Err(error),
            answer => {
                self.answer = Some(answer);
                Ok(())
            }
        }
    }

    fn finish(self: Box<Self>, failed: Option<SessionError>) {
        let answer = match (failed, self.answer) {
            (Some(error), _) => Err(error),
            (None, Some(answer)) => answer,
            (None, None) => Err(ended()),
        };
        // Whoever asked may have gone: what was committed stays committed.
        drop(self.reply.send(answer));
    }
}

/// Errors that are found before anything is written, so that the neighbours can be committed.
fn is_refusal(error: &SessionError) -> bool {
    matches!(
        error,
        SessionError::NotFound { .. }
            | SessionError::AlreadyExists { .. }
            | SessionError::Conflict { .. }
            | SessionError::EventConflict { .. }
    )
}

fn run(mut connection: Connection, layout: Layout, mut waiting: mpsc::Receiver<Box<dyn Task>>) {
    let mut cache = Cache::default();
    while let Some(first) = waiting.blocking_recv() {
        let mut tasks = vec![first];
        while tasks.len() < LARGEST_BATCH
            && let Ok(task) = waiting.try_recv()
        {
            tasks.push(task);
        }
        let done = match begin(&mut connection) {
            Ok(transaction) => commit(transaction, layout, &mut cache, &mut tasks),
            // Nothing was done, and waiting again for each would add up.
            Err(error) => {
                let error = Arc::new(error);
                tasks.into_iter().for_each(|task| task.finish(Some(shared(&error))));
                continue;
            }
        };
        match done {
            Ok(()) => tasks.into_iter().for_each(|task| task.finish(None)),
            // One bad write must not fail its neighbours: each for itself.
            Err(_) => commit_each(&mut connection, layout, &mut cache, tasks),
        }
    }
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

/// Does each task in a transaction of its own. If none can be begun, the tasks that are left fail with it.
fn commit_each(connection: &mut Connection, layout: Layout, cache: &mut Cache, tasks: Vec<Box<dyn Task>>) {
    let mut refused = None;
    for task in tasks {
        if let Some(error) = &refused {
            task.finish(Some(shared(error)));
            continue;
        }
        let mut alone = [task];
        let done = match begin(connection) {
            Ok(transaction) => commit(transaction, layout, cache, &mut alone),
            Err(error) => Err(shared(refused.insert(Arc::new(error)))),
        };
        let [task] = alone;
        task.finish(done.err());
    }
}

fn begin(connection: &mut Connection) -> Result<Transaction<'_>, SessionError> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(doing("begin a transaction"))
}

/// Does all tasks in one transaction. If one of them fails it is rolled back, and what is known of its rows with it.
fn commit(
    transaction: Transaction<'_>,
    layout: Layout,
    cache: &mut Cache,
    tasks: &mut [Box<dyn Task>],
) -> Result<(), SessionError> {
    let done = perform(&transaction, layout, cache, tasks)
        .and_then(|()| transaction.commit().map_err(doing("commit")));
    if done.is_err() {
        cache.forget();
    }
    done
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn when_the_file_is_locked_after_a_failed_batch_one_wait_is_enough_for_all() {
        let path = tempfile::tempdir().expect("a temporary folder is made").keep().join("sessile.db");
        let mut connection = Connection::open(&path).expect("the file opens");
        connection.busy_timeout(Duration::from_millis(1)).expect("it can be set");
        let other = Connection::open(&path).expect("the file opens");
        other.execute_batch("BEGIN IMMEDIATE").expect("the file is locked");
        let (tasks, answers): (Vec<_>, Vec<_>) = (0..3)
            .map(|_| {
                let (reply, answer) = oneshot::channel::<Result<(), SessionError>>();
                let write = Write { work: |_: &mut Batch<'_>| Ok(()), answer: None, reply };
                (Box::new(write) as Box<dyn Task>, answer)
            })
            .unzip();
        commit_each(&mut connection, Layout::Adk, &mut Cache::default(), tasks);
        let causes: Vec<_> = answers
            .into_iter()
            .map(|answer| match answer.blocking_recv() {
                Ok(Err(SessionError::Unavailable { source, .. })) => {
                    source.downcast::<Arc<SessionError>>().expect("the error is shared")
                }
                other => panic!("the file is locked: {other:?}"),
            })
            .collect();
        assert!(causes.iter().all(|cause| Arc::ptr_eq(cause, &causes[0])), "it was begun once");
    }
}
