//! Group commit: one task takes all events that wait, and commits them in one round trip.
//!
//! A row that another transaction has locked must not delay events that do not need it. Those that
//! need it are moved to a [lane](crate::lanes), and wait there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use sessile_session::{Appended, Commit, SessionError, doing};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::append::commit;
use crate::batch::Texts;
use crate::lanes::Lanes;
use crate::locks::locked_by_others;
use crate::queue::{ACTION, Waiting, next_batch};

/// Queue capacity. When it is full, callers wait for a free slot.
const LONGEST_QUEUE: usize = 4096;

/// How long a batch waits for a locked row before the committer looks for that row. It is longer
/// than an ordinary commit takes.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);

/// How often the committer looks for the locked row, with the timeout doubled each time, before it
/// moves the whole batch to lanes.
const SEARCHES: u32 = 3;

/// The queue of the committing task. When this is finished or dropped, the task commits what is in
/// the queue and ends.
pub(crate) struct Committer {
    /// `None` after [`finish`](Self::finish). A std mutex: it is never held across an `.await`.
    queue: Mutex<Option<mpsc::Sender<Waiting>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Committer {
    pub(crate) fn start(pool: Pool) -> Self {
        let (queue, waiting) = mpsc::channel(LONGEST_QUEUE);
        let task = tokio::spawn(run(pool, waiting));
        Self { queue: Mutex::new(Some(queue)), task: Mutex::new(Some(task)) }
    }

    /// Waits until everything in the queue is committed. Later appends fail.
    pub(crate) async fn finish(&self) -> Result<(), SessionError> {
        drop(lock(&self.queue).take());
        let task = lock(&self.task).take();
        match task {
            Some(task) => task.await.map_err(doing("end the committing task")),
            None => Ok(()),
        }
    }

    pub(crate) async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let texts = Texts::new(&commit)?;
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting { commit, texts, reply, in_doubt: false };
        let queue = lock(&self.queue).clone().ok_or_else(ended)?;
        queue.send(waiting).await.map_err(|_| ended())?;
        drop(queue);
        answer.await.map_err(|_| ended())?
    }
}

fn ended() -> SessionError {
    SessionError::Backend { action: ACTION, source: "the store is closed".into() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn run(pool: Pool, mut queue: mpsc::Receiver<Waiting>) {
    let lanes = Lanes::new(pool.clone());
    // An event that was already in the previous batch.
    let mut left = None;
    while let Some(first) = match left.take() {
        Some(left) => Some(left),
        None => queue.recv().await,
    } {
        let mut next = Some(first);
        let mut from_queue = || next.take().or_else(|| queue.try_recv().ok());
        let waiting = next_batch(
            || loop {
                match lanes.route(from_queue()?) {
                    Some(free) => return Some(free),
                    None => continue,
                }
            },
            &mut left,
        );
        commit_or_set_aside(&pool, &lanes, waiting).await;
    }
    lanes.finish().await;
}

/// Commits a batch. Commits that need a row which another transaction has locked are moved to a
/// lane; the rest is committed without them.
async fn commit_or_set_aside(pool: &Pool, lanes: &Lanes, mut waiting: Vec<Waiting>) {
    let mut searches = 0;
    while !waiting.is_empty() {
        waiting = commit(pool, waiting, LOCK_TIMEOUT * 2_u32.pow(searches)).await;
        if waiting.is_empty() {
            return;
        }
        // If the search fails, so will the next attempt to commit, which reports it to the callers.
        match locked_by_others(pool, &waiting).await {
            Ok(held) if !held.is_empty() => waiting = lanes.set_aside(waiting, &held),
            Ok(_) | Err(_) => searches += 1,
        }
        // A row that another transaction is inserting cannot be seen, so it was not found: move
        // everything to lanes.
        if searches == SEARCHES {
            lanes.set_all_aside(std::mem::take(&mut waiting));
        }
    }
}
