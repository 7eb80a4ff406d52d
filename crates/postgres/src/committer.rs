//! The task that appends: events that wait are committed together, in one round trip.

use std::time::Duration;

use deadpool_postgres::Pool;
use serde_json::value::RawValue;
use sessile_session::{Appended, Commit, SessionError, doing};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use crate::write;

/// How many events are committed together at the most.
const LARGEST_BATCH: usize = 256;

/// How many events may wait; more wait to wait.
const LONGEST_QUEUE: usize = 4096;

/// How often a batch is tried when the connection breaks or the server picks it as a deadlock's victim.
const ATTEMPTS: u32 = 5;

const APPEND: &str = "SELECT status, version, update_time, actual FROM sessile_append($1::text::jsonb)";

/// Hands events to the task, which ends after what was handed over when this is dropped.
pub(crate) struct Committer {
    queue: mpsc::Sender<Waiting>,
}

struct Waiting {
    commit: Commit,
    json: Box<RawValue>,
    reply: oneshot::Sender<Result<Appended, SessionError>>,
}

impl Committer {
    pub(crate) fn start(pool: Pool) -> Self {
        let (queue, waiting) = mpsc::channel(LONGEST_QUEUE);
        tokio::spawn(run(pool, waiting));
        Self { queue }
    }

    pub(crate) async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let json = write::commit(&commit)?;
        let (reply, answer) = oneshot::channel();
        self.queue.send(Waiting { commit, json, reply }).await.map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

fn ended() -> SessionError {
    SessionError::Backend { action: "append an event", source: "the committing task has ended".into() }
}

async fn run(pool: Pool, mut queue: mpsc::Receiver<Waiting>) {
    while let Some(first) = queue.recv().await {
        let mut waiting = vec![first];
        while waiting.len() < LARGEST_BATCH
            && let Ok(next) = queue.try_recv()
        {
            waiting.push(next);
        }
        match append(&pool, &waiting).await {
            Ok(rows) => answer(waiting, &rows),
            // One bad event must not fail its neighbours: each for itself.
            Err(_) if waiting.len() > 1 => {
                for one in waiting {
                    append_alone(&pool, one).await;
                }
            }
            Err(error) => {
                for one in waiting {
                    drop(one.reply.send(Err(SessionError::Backend {
                        action: "append an event",
                        source: error.to_string().into(),
                    })));
                }
            }
        }
    }
}

async fn append_alone(pool: &Pool, one: Waiting) {
    match append(pool, std::slice::from_ref(&one)).await {
        Ok(rows) => answer(vec![one], &rows),
        Err(error) => drop(one.reply.send(Err(error))),
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
async fn append(pool: &Pool, waiting: &[Waiting]) -> Result<Vec<Row>, SessionError> {
    let commits: Vec<&RawValue> = waiting.iter().map(|one| &*one.json).collect();
    let commits = serde_json::to_string(&commits).map_err(doing("write JSON"))?;
    let mut attempt = 1;
    loop {
        let failed = match try_append(pool, &commits).await {
            Ok(rows) => return Ok(rows),
            Err(failed) => failed,
        };
        if attempt == ATTEMPTS || !failed.again {
            return Err(failed.error);
        }
        tokio::time::sleep(Duration::from_millis(20 << attempt)).await;
        attempt += 1;
    }
}

struct Failed {
    error: SessionError,
    /// Whether trying again may help.
    again: bool,
}

async fn try_append(pool: &Pool, commits: &str) -> Result<Vec<Row>, Failed> {
    let client = pool
        .get()
        .await
        .map_err(|error| Failed { error: doing("connect to PostgreSQL")(error), again: true })?;
    let failed = |error: tokio_postgres::Error| {
        let code = error.code();
        let again = error.is_closed()
            || code.is_none()
            || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
            || code == Some(&SqlState::ADMIN_SHUTDOWN)
            || code == Some(&SqlState::CRASH_SHUTDOWN)
            || code == Some(&SqlState::CANNOT_CONNECT_NOW);
        Failed { error: doing("append an event")(error), again }
    };
    let statement = client.prepare_cached(APPEND).await.map_err(failed)?;
    client.query(&statement, &[&commits]).await.map_err(failed)
}
