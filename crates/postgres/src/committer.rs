//! The task that appends: events that wait are committed together, in one round trip.

use std::sync::Arc;

use deadpool_postgres::Pool;
use sessile_session::{Appended, Commit, SessionError, doing};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;

use crate::batch::{APPEND, Batch, Contents, Texts};
use crate::failure::{is_lost, is_victim};
use crate::patience::{client, is_broken, located, wait};
use crate::write;

/// How many events are committed together at the most.
const LARGEST_BATCH: usize = 256;

/// How many events may wait; more wait to wait.
const LONGEST_QUEUE: usize = 4096;

const ACTION: &str = "append an event";

/// Hands events to the task, which ends after what was handed over when this is dropped.
pub(crate) struct Committer {
    queue: mpsc::Sender<Waiting>,
}

struct Waiting {
    commit: Commit,
    texts: Texts,
    reply: oneshot::Sender<Result<Appended, SessionError>>,
}

impl Committer {
    pub(crate) fn start(pool: Pool) -> Self {
        let (queue, waiting) = mpsc::channel(LONGEST_QUEUE);
        tokio::spawn(run(pool, waiting));
        Self { queue }
    }

    pub(crate) async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let texts = Texts::new(&commit)?;
        let (reply, answer) = oneshot::channel();
        self.queue.send(Waiting { commit, texts, reply }).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

fn ended() -> SessionError {
    SessionError::Backend { action: ACTION, source: "the committing task has ended".into() }
}

async fn run(pool: Pool, mut queue: mpsc::Receiver<Waiting>) {
    // An event that the batch before it held already.
    let mut left = None;
    while let Some(first) = match left.take() {
        Some(left) => Some(left),
        None => queue.recv().await,
    } {
        let mut contents = Contents::default();
        contents.add(&first.commit);
        let mut waiting = vec![first];
        while waiting.len() < LARGEST_BATCH
            && let Ok(next) = queue.try_recv()
        {
            if !contents.add(&next.commit) {
                left = Some(next);
                break;
            }
            waiting.push(next);
        }
        match append(&pool, &waiting).await {
            Ok(rows) => answer(waiting, &rows),
            Err(Failed::Lost(lost)) => {
                for one in waiting {
                    drop(one.reply.send(Err(lost.told())));
                }
            }
            // One bad event must not fail its neighbours: each for itself.
            Err(Failed::Refused(_)) if waiting.len() > 1 => {
                for one in waiting {
                    append_alone(&pool, one).await;
                }
            }
            Err(Failed::Refused(error)) => {
                if let Some(one) = waiting.pop() {
                    let error = located(&pool, &one.commit.key, error).await;
                    drop(one.reply.send(Err(error)));
                }
            }
        }
    }
}

async fn append_alone(pool: &Pool, one: Waiting) {
    match append(pool, std::slice::from_ref(&one)).await {
        Ok(rows) => answer(vec![one], &rows),
        Err(Failed::Refused(error)) => {
            let error = located(pool, &one.commit.key, error).await;
            drop(one.reply.send(Err(error)));
        }
        Err(Failed::Lost(lost)) => drop(one.reply.send(Err(lost.told()))),
    }
}

/// Whoever asked may have gone: what was committed stays committed.
fn answer(waiting: Vec<Waiting>, rows: &[Row]) {
    for (one, row) in waiting.into_iter().zip(rows) {
        let appended = write::appended(&one.commit, row);
        drop(one.reply.send(appended));
    }
}

/// Appending the same event again changes nothing, so a broken connection is no reason to give up.
async fn append(pool: &Pool, waiting: &[Waiting]) -> Result<Vec<Row>, Failed> {
    let batch = Batch::new(waiting.iter().map(|one| (&one.commit, &one.texts)));
    let (mut attempt, mut in_doubt) = (1, false);
    loop {
        let failed = match try_append(pool, &batch).await {
            Ok(rows) => return Ok(rows),
            Err(failed) => failed,
        };
        in_doubt |= failed.sent && failed.lost;
        if !failed.again || !wait(attempt).await {
            return Err(match failed.lost || in_doubt {
                true => Failed::Lost(Lost { in_doubt, cause: Arc::new(failed.error) }),
                false => Failed::Refused(failed.error),
            });
        }
        attempt += 1;
    }
}

/// Why events were not appended.
enum Failed {
    /// The server says no, perhaps to one of them only.
    Refused(SessionError),
    /// There is no connection.
    Lost(Lost),
}

/// The end of a connection, told to all who waited for it.
struct Lost {
    /// Whether the server may have committed before.
    in_doubt: bool,
    cause: Arc<SessionError>,
}

impl Lost {
    fn told(&self) -> SessionError {
        let source = self.cause.clone().into();
        match self.in_doubt {
            true => SessionError::InDoubt {
                action: ACTION,
                advice: "append the same event again: if it is stored, that answers what the first append did",
                source,
            },
            false => {
                let reason = match &*self.cause {
                    SessionError::Unavailable { reason, .. } => reason.clone(),
                    other => other.to_string(),
                };
                SessionError::Unavailable { action: ACTION, reason, source }
            }
        }
    }
}

/// One attempt that failed.
struct Attempt {
    error: SessionError,
    /// Whether the events were on their way.
    sent: bool,
    /// Whether the connection is gone.
    lost: bool,
    /// Whether trying again may help.
    again: bool,
}

async fn try_append(pool: &Pool, batch: &Batch<'_>) -> Result<Vec<Row>, Attempt> {
    let client = client(pool).await.map_err(|error| {
        let lost = matches!(error, SessionError::Unavailable { .. });
        Attempt { again: is_broken(&error), error, sent: false, lost }
    })?;
    let failed = |sent: bool| {
        move |error: tokio_postgres::Error| {
            let lost = is_lost(&error);
            Attempt { again: lost || is_victim(&error), sent, lost, error: doing(ACTION)(error) }
        }
    };
    let statement = client.prepare_cached(APPEND).await.map_err(failed(false))?;
    client.query(&statement, &batch.parameters()).await.map_err(failed(true))
}
