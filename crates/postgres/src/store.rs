use async_trait::async_trait;
use deadpool_postgres::{Client, Pool};
use sessile_session::{
    Appended, Commit, EventWindow, ListQuery, NewSession, ScopeKey, SessionError, SessionKey, StateMap,
    Store, StoredSession, Version, doing,
};
use sessile_state::{Delta, Scope};

use crate::committer::Committer;
use crate::connection::PostgresOptions;
use crate::migrate::migrate;
use crate::{read, write};

/// Sessions in PostgreSQL, in google-adk's tables.
pub struct PostgresStore {
    pool: Pool,
    committer: Committer,
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

    /// Uses the caller's own pool.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn with_pool(pool: Pool) -> Result<Self, SessionError> {
        migrate(&pool).await?;
        Ok(Self { committer: Committer::start(pool.clone()), pool })
    }

    async fn client(&self) -> Result<Client, SessionError> {
        self.pool.get().await.map_err(doing("connect to PostgreSQL"))
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        let json = write::new_session(&new)?;
        let client = self.client().await?;
        let statement = client.prepare_cached(CREATE).await.map_err(doing("create a session"))?;
        let created =
            client.query_one(&statement, &[&json.get()]).await.map_err(doing("create a session"))?;
        if !created.get::<_, bool>(0) {
            return Err(SessionError::AlreadyExists { key: new.key });
        }
        let made = read::get(&client, &new.key, EventWindow::ALL).await?;
        made.ok_or(SessionError::NotFound { key: new.key })
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        read::get(&self.client().await?, key, window).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<StoredSession>, SessionError> {
        read::list(&self.client().await?, query).await
    }

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let client = self.client().await?;
        let expected = expect.map(|version| i64::try_from(version).unwrap_or(i64::MAX));
        let statement = client.prepare_cached(DELETE).await.map_err(doing("delete a session"))?;
        let held = client
            .query_opt(&statement, &[&key.app(), &key.user(), &key.id(), &expected])
            .await
            .map_err(doing("delete a session"))?;
        let Some(held) = held else { return Ok(false) };
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
        read::scope_state(&self.client().await?, scope).await
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, time: f64) -> Result<(), SessionError> {
        let client = self.client().await?;
        let written = match scope {
            ScopeKey::App(app) => {
                let json = write::scope_delta(&delta, Scope::App)?;
                let statement =
                    client.prepare_cached(WRITE_APP).await.map_err(doing("write shared state"))?;
                client.execute(&statement, &[app, &json.get(), &time]).await
            }
            ScopeKey::User(app, user) => {
                let json = write::scope_delta(&delta, Scope::User)?;
                let statement =
                    client.prepare_cached(WRITE_USER).await.map_err(doing("write shared state"))?;
                client.execute(&statement, &[app, user, &json.get(), &time]).await
            }
        };
        written.map(drop).map_err(doing("write shared state"))
    }
}
