//! Retries when a connection breaks, where that is safe, and `InDoubt` where it is not.

use std::time::Duration;

use deadpool_postgres::{Client, Pool, PoolError};
use sessile_session::{EventWindow, ScopeKey, SessionError, SessionKey, doing};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::failure::{is_corrupt, is_lost, is_victim, no_connection};
use crate::read;

/// The largest number of attempts, the first included.
const ATTEMPTS: u32 = 6;

/// Waits before the next attempt, twice as long each time; returns whether there is one.
pub(crate) async fn wait(attempt: u32) -> bool {
    if attempt < ATTEMPTS {
        tokio::time::sleep(Duration::from_millis(20 << attempt)).await;
    }
    attempt < ATTEMPTS
}

/// A connection of the pool.
pub(crate) async fn client(pool: &Pool) -> Result<Client, SessionError> {
    pool.get().await.map_err(|error| no_connection(pool, error))
}

/// Retries an idempotent operation, such as reading, while its connection breaks.
pub(crate) async fn again<T, Work>(work: impl Fn() -> Work) -> Result<T, SessionError>
where
    Work: Future<Output = Result<T, SessionError>>,
{
    let mut attempt = 1;
    loop {
        match work().await {
            Err(error) if is_broken(&error) => {
                if !wait(attempt).await {
                    return Err(lost_is_unavailable(error));
                }
            }
            done => return done,
        }
        attempt += 1;
    }
}

/// Runs an idempotent statement that writes, and retries while its connection breaks. If no attempt
/// is answered, the outcome is in doubt: one of them may have been committed.
pub(crate) async fn write_again(
    pool: &Pool,
    doing: (&'static str, &'static str),
    statement: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Row, SessionError> {
    let (mut attempt, mut lost) = (1, None);
    loop {
        match write(pool, doing, statement, values).await {
            Ok(Some(row)) => return Ok(row),
            Ok(None) => {
                let source = "the database returned no row".into();
                return Err(SessionError::Backend { action: doing.0, source });
            }
            Err(in_doubt @ SessionError::InDoubt { .. }) => {
                if !wait(attempt).await {
                    return Err(in_doubt);
                }
                lost = Some(in_doubt);
            }
            // The server can no longer be reached, and an earlier attempt may have been committed.
            Err(SessionError::Unavailable { .. }) if let Some(in_doubt) = lost => return Err(in_doubt),
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

/// Runs a statement that must not run twice. Before it is sent, a broken connection is replaced.
/// After that the outcome is in doubt, and `advice` tells the caller how to find out.
pub(crate) async fn write(
    pool: &Pool,
    (action, advice): (&'static str, &'static str),
    statement: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>, SessionError> {
    let mut attempt = 1;
    loop {
        let (client, prepared) = again(|| async move {
            let client = client(pool).await?;
            let prepared = client.prepare_cached(statement).await.map_err(doing(action))?;
            Ok((client, prepared))
        })
        .await?;
        match client.query_opt(&prepared, values).await {
            Err(error) if is_lost(&error) => {
                return Err(SessionError::InDoubt { action, advice, source: error.into() });
            }
            // It was rolled back to resolve a deadlock: nothing is stored.
            Err(error) if is_victim(&error) && wait(attempt).await => attempt += 1,
            done => return done.map_err(doing(action)),
        }
    }
}

/// Names the row, if an operation failed because one is corrupt: reading the rows finds it.
pub(crate) async fn located(pool: &Pool, key: &SessionKey, error: SessionError) -> SessionError {
    if !is_corrupt(&error) {
        return error;
    }
    let looked = again(|| async move {
        let client = client(pool).await?;
        read::scope_state(&client, &ScopeKey::app_of(key)).await?;
        read::scope_state(&client, &ScopeKey::user_of(key)).await?;
        read::get(&client, key, EventWindow::NONE).await
    });
    match looked.await {
        Err(found @ SessionError::Corrupt { .. }) => found,
        _ => error,
    }
}

/// Whether an operation failed because its connection broke or could not be made.
pub(crate) fn is_broken(error: &SessionError) -> bool {
    match error {
        SessionError::Backend { source, .. } => source.downcast_ref().is_some_and(is_lost),
        SessionError::Unavailable { source, .. } => {
            matches!(source.downcast_ref(), Some(PoolError::Backend(_)))
        }
        _ => false,
    }
}

/// Reports a broken connection as `Unavailable`; leaves other errors as they are.
pub(crate) fn lost_is_unavailable(error: SessionError) -> SessionError {
    match error {
        SessionError::Backend { action, source } if source.downcast_ref().is_some_and(is_lost) => {
            SessionError::Unavailable {
                action,
                reason: "the connection was lost; is the server running?".to_owned(),
                source,
            }
        }
        other => other,
    }
}
