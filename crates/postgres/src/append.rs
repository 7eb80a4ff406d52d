//! Sending a batch to the server, until it is known what became of it.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::Pool;
use sessile_session::{SessionError, doing};
use tokio_postgres::Row;

use crate::answer;
use crate::batch::{APPEND, Batch};
use crate::failure::{is_locked, is_lost, is_victim};
use crate::queue::{ACTION, Waiting};
use crate::retry::{client, is_broken, located, wait};

/// Commits together what waits, and answers it. Returns what could not be done because somebody
/// else held a row for longer than `patience`; nothing of that is stored.
pub(crate) async fn commit(pool: &Pool, waiting: Vec<Waiting>, patience: Duration) -> Vec<Waiting> {
    match append(pool, &waiting, patience).await {
        Ok(rows) => answer(waiting, &rows),
        Err(Failed::Lost(lost)) => {
            for one in waiting {
                drop(one.reply.send(Err(lost.told())));
            }
        }
        Err(Failed::Locked { in_doubt }) => {
            return waiting.into_iter().map(|one| Waiting { in_doubt, ..one }).collect();
        }
        // One bad event must not fail its neighbours: each for itself.
        Err(Failed::Refused(_)) if waiting.len() > 1 => {
            let mut locked: Vec<Waiting> = Vec::new();
            for one in waiting {
                // What waits behind another of its session goes on waiting, to keep their order.
                let behind = locked.iter().any(|before| before.commit.key == one.commit.key);
                let still =
                    if behind { vec![one] } else { Box::pin(commit(pool, vec![one], patience)).await };
                locked.extend(still);
            }
            return locked;
        }
        Err(Failed::Refused(error)) => {
            if let Some(one) = waiting.into_iter().next() {
                let error = located(pool, &one.commit.key, error).await;
                drop(one.reply.send(Err(error)));
            }
        }
    }
    Vec::new()
}

/// Whoever asked may have gone: what was committed stays committed.
fn answer(waiting: Vec<Waiting>, rows: &[Row]) {
    for (one, row) in waiting.into_iter().zip(rows) {
        let appended = answer::appended(&one.commit, row);
        drop(one.reply.send(appended));
    }
}

/// Appending the same event again changes nothing, so a broken connection is no reason to give up.
async fn append(pool: &Pool, waiting: &[Waiting], patience: Duration) -> Result<Vec<Row>, Failed> {
    let batch = Batch::new(waiting.iter().map(|one| (&one.commit, &one.texts)), patience);
    let (mut attempt, mut in_doubt) = (1, waiting.iter().any(|one| one.in_doubt));
    loop {
        let failed = match try_append(pool, &batch).await {
            Ok(rows) => return Ok(rows),
            Err(failed) => failed,
        };
        if failed.locked {
            return Err(Failed::Locked { in_doubt });
        }
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
    /// Somebody else holds a row of one of them, or of several.
    Locked {
        /// Whether a connection was lost before, and the server may have committed.
        in_doubt: bool,
    },
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
    /// Whether somebody else holds a row for too long.
    locked: bool,
    /// Whether trying again may help.
    again: bool,
}

async fn try_append(pool: &Pool, batch: &Batch<'_>) -> Result<Vec<Row>, Attempt> {
    let client = client(pool).await.map_err(|error| {
        let lost = matches!(error, SessionError::Unavailable { .. });
        Attempt { again: is_broken(&error), error, sent: false, lost, locked: false }
    })?;
    let failed = |sent: bool| {
        move |error: tokio_postgres::Error| {
            let (lost, locked) = (is_lost(&error), is_locked(&error));
            Attempt { again: lost || is_victim(&error), sent, lost, locked, error: doing(ACTION)(error) }
        }
    };
    let statement = client.prepare_cached(APPEND).await.map_err(failed(false))?;
    client.query(&statement, &batch.parameters()).await.map_err(failed(true))
}
