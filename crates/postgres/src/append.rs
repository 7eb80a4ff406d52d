//! Sending a batch to the server, and retrying until its outcome is known.

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

/// Commits a batch in one transaction and answers its callers. Returns the commits that could not
/// be made because another transaction held a row for longer than `lock_timeout`; nothing of them
/// is stored.
pub(crate) async fn commit(pool: &Pool, batch: Vec<Waiting>, lock_timeout: Duration) -> Vec<Waiting> {
    match append(pool, &batch, lock_timeout).await {
        Ok(rows) => answer(batch, &rows),
        Err(Failed::Lost(lost)) => {
            for one in batch {
                drop(one.reply.send(Err(lost.to_error())));
            }
        }
        Err(Failed::Locked { in_doubt }) => {
            return batch.into_iter().map(|one| Waiting { in_doubt, ..one }).collect();
        }
        // One bad event must not fail the others of its batch: commit each on its own.
        Err(Failed::Refused(_)) if batch.len() > 1 => {
            let mut locked: Vec<Waiting> = Vec::new();
            for one in batch {
                // To keep a session's order, a commit waits behind an earlier one that waits.
                let is_behind = locked.iter().any(|earlier| earlier.commit.key == one.commit.key);
                let still = match is_behind {
                    true => vec![one],
                    false => Box::pin(commit(pool, vec![one], lock_timeout)).await,
                };
                locked.extend(still);
            }
            return locked;
        }
        Err(Failed::Refused(error)) => {
            if let Some(one) = batch.into_iter().next() {
                let error = located(pool, &one.commit.key, error).await;
                drop(one.reply.send(Err(error)));
            }
        }
    }
    Vec::new()
}

/// Answers the callers. One that stopped waiting is no error: its event stays committed.
fn answer(batch: Vec<Waiting>, rows: &[Row]) {
    for (one, row) in batch.into_iter().zip(rows) {
        let appended = answer::appended(&one.commit, row);
        drop(one.reply.send(appended));
    }
}

/// Sends a batch, and retries if the connection breaks: appending is idempotent, because the server
/// answers an event that it has stored as it did the first time.
async fn append(pool: &Pool, waiting: &[Waiting], lock_timeout: Duration) -> Result<Vec<Row>, Failed> {
    let batch = Batch::new(waiting.iter().map(|one| (&one.commit, &one.texts)), lock_timeout);
    let (mut attempt, mut in_doubt) = (1, waiting.iter().any(|one| one.in_doubt));
    loop {
        let failure = match try_append(pool, &batch).await {
            Ok(rows) => return Ok(rows),
            Err(failure) => failure,
        };
        in_doubt |= matches!(failure, AttemptFailure::Unanswered(_));
        if failure.is_retryable() && wait(attempt).await {
            attempt += 1;
            continue;
        }
        let lost = |error| Failed::Lost(Lost { in_doubt, cause: Arc::new(error) });
        return Err(match failure {
            AttemptFailure::Locked => Failed::Locked { in_doubt },
            AttemptFailure::NotSent(error)
            | AttemptFailure::Unanswered(error)
            | AttemptFailure::NoConnection(error) => lost(error),
            // The server refused this attempt, but an earlier one may have been committed.
            AttemptFailure::RolledBack(error) | AttemptFailure::Refused(error) if in_doubt => lost(error),
            AttemptFailure::RolledBack(error) | AttemptFailure::Refused(error) => Failed::Refused(error),
        });
    }
}

/// Why a batch was not appended, after all retries.
enum Failed {
    /// The server refused the batch, perhaps because of only one of its commits.
    Refused(SessionError),
    /// Another transaction holds a row that the batch needs.
    Locked {
        /// Whether a connection was lost before, so that the server may have committed.
        in_doubt: bool,
    },
    /// There is no connection to the server.
    Lost(Lost),
}

/// A lost connection, reported to every caller of the batch.
struct Lost {
    /// Whether the server may have committed the batch before the connection was lost.
    in_doubt: bool,
    cause: Arc<SessionError>,
}

impl Lost {
    fn to_error(&self) -> SessionError {
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

/// Why one attempt to append failed, which decides what happens next.
enum AttemptFailure {
    /// The connection broke before the batch was sent. Nothing is stored; retry.
    NotSent(SessionError),
    /// The connection broke after the batch was sent, so the server may have committed it; retry.
    Unanswered(SessionError),
    /// The pool has no connection, and its timeout has passed. Nothing is stored.
    NoConnection(SessionError),
    /// Another transaction held a row for longer than the lock timeout. Nothing is stored.
    Locked,
    /// The server rolled the batch back to resolve a deadlock. Nothing is stored; retry.
    RolledBack(SessionError),
    /// The server refused the batch. Nothing is stored.
    Refused(SessionError),
}

impl AttemptFailure {
    /// The failure of a statement on a connection that worked before.
    fn of(error: tokio_postgres::Error, broken: fn(SessionError) -> Self) -> Self {
        if is_locked(&error) {
            return Self::Locked;
        }
        let variant = match (is_lost(&error), is_victim(&error)) {
            (true, _) => broken,
            (false, true) => Self::RolledBack,
            (false, false) => Self::Refused,
        };
        variant(doing(ACTION)(error))
    }

    fn is_retryable(&self) -> bool {
        matches!(self, Self::NotSent(_) | Self::Unanswered(_) | Self::RolledBack(_))
    }
}

async fn try_append(pool: &Pool, batch: &Batch<'_>) -> Result<Vec<Row>, AttemptFailure> {
    let client = client(pool).await.map_err(|error| match error {
        error if is_broken(&error) => AttemptFailure::NotSent(error),
        error @ SessionError::Unavailable { .. } => AttemptFailure::NoConnection(error),
        error => AttemptFailure::Refused(error),
    })?;
    let prepared = client.prepare_cached(APPEND).await;
    let statement = prepared.map_err(|error| AttemptFailure::of(error, AttemptFailure::NotSent))?;
    let answered = client.query(&statement, &batch.parameters()).await;
    answered.map_err(|error| AttemptFailure::of(error, AttemptFailure::Unanswered))
}
