use async_trait::async_trait;
use deadpool_postgres::Pool;
use sessile_session::{
    Address, Appended, Commit, EventWindow, ListQuery, NewSession, ScopeKey, SessionError, SessionKey,
    StateMap, Store, StoredPage, StoredSession, Version,
};
use sessile_state::{Delta, Scope};
use tokio_postgres::types::ToSql;

use crate::addresses::addresses;
use crate::committer::Committer;
use crate::connection::PostgresOptions;
use crate::failure::is_corrupt;
use crate::list::list;
use crate::migrate::migrate;
use crate::patience::{self, again, client, located};
use crate::{read, write};

/// Sessions in PostgreSQL, in google-adk's tables.
pub struct PostgresStore {
    pool: Pool,
    committer: Committer,
}

/// What is being done, and what to do when nobody knows whether it was done.
const CREATING: (&str, &str) =
    ("create a session", "create it again: that is refused as already existing if it was done");
const DELETING: (&str, &str) =
    ("delete a session", "delete it again: that answers that there was none if it was done");
const WRITING: (&str, &str) = ("write shared state", "read the state, and write it again if need be");

/// How the connections of a pool are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    /// How many there may be.
    pub most: usize,
    /// How many are open.
    pub open: usize,
    /// How many of these someone uses.
    pub in_use: usize,
    /// How many callers wait for one.
    pub waiting: usize,
}

const CREATE: &str = "SELECT sessile_create($1::text::jsonb)";
const DELETE: &str = "
    WITH held AS (
        SELECT sessile_version FROM sessions WHERE app_name = $1 AND user_id = $2 AND id = $3 FOR UPDATE
    ), gone AS (
        DELETE FROM sessions WHERE app_name = $1 AND user_id = $2 AND id = $3
           AND (SELECT sessile_version FROM held) = coalesce($4, (SELECT sessile_version FROM held))
    )
    SELECT sessile_version FROM held
";
const WRITE_APP: &str = "SELECT sessile_write_app($1, $2::text::jsonb, $3)";
const WRITE_USER: &str = "SELECT sessile_write_user($1, $2, $3::text::jsonb, $4)";

impl PostgresStore {
    /// Reaches a server, and makes or extends the tables if need be.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] says what to do about a database that cannot be used;
    /// [`SessionError::Backend`] if the server cannot be reached.
    pub async fn connect(options: &PostgresOptions) -> Result<Self, SessionError> {
        Self::with_pool(options.pool()?).await
    }

    /// Reaches the server that a URL names, see [`PostgresOptions::from_url`].
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_url(url: &str) -> Result<Self, SessionError> {
        Self::connect(&PostgresOptions::from_url(url)?).await
    }

    /// How the connections are used at this moment.
    pub fn pool_use(&self) -> PoolUse {
        let status = self.pool.status();
        let in_use = status.size.saturating_sub(status.available);
        PoolUse { most: status.max_size, open: status.size, in_use, waiting: status.waiting }
    }

    /// Uses the caller's own pool.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn with_pool(pool: Pool) -> Result<Self, SessionError> {
        migrate(&pool).await?;
        Ok(Self { committer: Committer::start(pool.clone()), pool })
    }
}

/// A session that is made and cannot be read: nobody may be told that nothing was done.
fn created_unread(error: SessionError) -> SessionError {
    match error {
        SessionError::Unavailable { .. } | SessionError::Backend { .. } => {
            let (action, advice) = CREATING;
            SessionError::InDoubt { action, advice, source: error.into() }
        }
        other => other,
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        let json = write::new_session(&new)?;
        let created = match patience::write(&self.pool, CREATING, CREATE, &[&json.get()]).await {
            Ok(created) => created,
            Err(error) => return Err(located(&self.pool, &new.key, error).await),
        };
        if !created.is_some_and(|row| row.get(0)) {
            return Err(SessionError::AlreadyExists { key: new.key });
        }
        let made = self.get(&new.key, EventWindow::ALL).await.map_err(created_unread)?;
        made.ok_or(SessionError::NotFound { key: new.key })
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        again(|| async move { read::get(&client(&self.pool).await?, key, window).await }).await
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        again(|| async move { list(&client(&self.pool).await?, query).await }).await
    }

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let expected = expect.map(|version| i64::try_from(version).unwrap_or(i64::MAX));
        let values: [&(dyn ToSql + Sync); 4] = [&key.app(), &key.user(), &key.id(), &expected];
        let Some(held) = patience::write(&self.pool, DELETING, DELETE, &values).await? else {
            return Ok(false);
        };
        let actual = held.get::<_, i64>(0).unsigned_abs();
        match expect.filter(|expected| *expected != actual) {
            Some(expected) => {
                Err(SessionError::Conflict { key: key.clone(), scope: Scope::Session, expected, actual })
            }
            None => Ok(true),
        }
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        self.committer.append(commit).await
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<StateMap, SessionError> {
        again(|| async move { read::scope_state(&client(&self.pool).await?, scope).await }).await
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, time: f64) -> Result<(), SessionError> {
        let written = match scope {
            ScopeKey::App(app) => {
                let json = write::scope_delta(&delta, Scope::App)?;
                patience::write(&self.pool, WRITING, WRITE_APP, &[app, &json.get(), &time]).await
            }
            ScopeKey::User(app, user) => {
                let json = write::scope_delta(&delta, Scope::User)?;
                patience::write(&self.pool, WRITING, WRITE_USER, &[app, user, &json.get(), &time]).await
            }
        };
        match written {
            Err(error) if is_corrupt(&error) => self.scope_state(scope).await.and(Err(error)),
            written => written.map(drop),
        }
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        again(|| async move { addresses(&client(&self.pool).await?, after, limit).await }).await
    }
}
