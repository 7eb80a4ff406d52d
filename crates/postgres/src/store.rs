use std::fmt;

use async_trait::async_trait;
use deadpool_postgres::Pool;
use sessile_session::{
    Address, Appended, ChangeWindow, Commit, EventWindow, Expect, Incarnation, ListQuery, NewSession,
    ScopeChange, ScopeKey, ScopeState, ScopeWrite, ScopeWritten, SessionError, SessionKey, Store, StoredPage,
    StoredSession, TrimmedChanges,
};
use tokio_postgres::types::ToSql;

use crate::addresses::addresses;
use crate::batch::{length, signed};
use crate::committer::Committer;
use crate::connection::PostgresOptions;
use crate::failure::is_corrupt;
use crate::json;
use crate::list::list;
use crate::migrate::migrate;
use crate::retry::{self, again, client, located};
use crate::{answer, history, read};

/// Sessions in PostgreSQL, in google-adk's tables.
pub struct PostgresStore {
    pool: Pool,
    committer: Committer,
}

/// What an operation does, and the advice to a caller if its outcome is in doubt.
const CREATING: (&str, &str) =
    ("create a session", "create it again: that is refused as already existing if it was done");
const DELETING: (&str, &str) =
    ("delete a session", "delete it again: that answers that there was none if it was done");
const WRITING: (&str, &str) =
    ("write shared state", "write it again with the same request id: if it was done, that changes nothing");

/// How the connections of a pool are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    /// The size of the pool.
    pub most: usize,
    /// How many are open, in use or idle.
    pub open: usize,
    /// How many are in use.
    pub in_use: usize,
    /// How many callers wait for a connection.
    pub waiting: usize,
}

const CREATE: &str = "
    SELECT status, update_time, actual, detail::text, user_state, user_version, app_state, app_version
      FROM sessile_create_session($1::text::jsonb)
";
/// Deletes a session if its version and incarnation are the expected ones, and returns them as they
/// were. The comparison is that of [`Expect::check_session`], which then makes the error.
const DELETE: &str = "
    WITH held AS (
        SELECT sessile_version AS version, coalesce(sessile_incarnation, 0) AS incarnation FROM sessions
         WHERE app_name = $1 AND user_id = $2 AND id = $3 FOR UPDATE
    ), gone AS (
        DELETE FROM sessions WHERE app_name = $1 AND user_id = $2 AND id = $3
           AND (SELECT version = coalesce($4, version) AND incarnation = coalesce($5, incarnation) FROM held)
    )
    SELECT version, incarnation FROM held
";
const WRITE: &str = "
    SELECT status, version, actual, detail::text, state, known, later
      FROM sessile_write_scope($1, $2, $3::text::jsonb, $4::text::text[], $5, $6, $7::text::jsonb, $8, $9, $10)
";

impl PostgresStore {
    /// Connects to a server, and creates or migrates the tables if necessary.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] says what to do about a database that cannot be used;
    /// [`SessionError::Unavailable`] if the server cannot be reached.
    pub async fn connect(options: &PostgresOptions) -> Result<Self, SessionError> {
        Self::with_pool(options.pool()?).await
    }

    /// Connects to the server that a URL names, see [`PostgresOptions::from_url`].
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

    /// Uses a pool that the caller has made.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn with_pool(pool: Pool) -> Result<Self, SessionError> {
        migrate(&pool).await?;
        Ok(Self { committer: Committer::start(pool.clone()), pool })
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        let json = json::new_session(&new)?;
        // The function compares incarnations: if an attempt whose answer was lost has created the
        // session, a retry finds its own incarnation and succeeds.
        match retry::write_again(&self.pool, CREATING, CREATE, &[&json.get()]).await {
            Ok(row) => answer::created(&new, &row),
            Err(error) => Err(located(&self.pool, &new.key, error).await),
        }
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

    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        let (version, incarnation) =
            (expect.session.map(signed), expect.incarnation.map(|incarnation| signed(incarnation.0)));
        let values: [&(dyn ToSql + Sync); 5] = [&key.app(), &key.user(), &key.id(), &version, &incarnation];
        let Some(held) = retry::write(&self.pool, DELETING, DELETE, &values).await? else {
            return Ok(false);
        };
        let number = |column: &str| held.get::<_, i64>(column).unsigned_abs();
        expect.check_session(key, Incarnation(number("incarnation")), number("version"))?;
        Ok(true)
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        self.committer.append(commit).await
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
        again(|| async move { read::scope_state(&client(&self.pool).await?, scope).await }).await
    }

    async fn write_scope(&self, write: ScopeWrite) -> Result<ScopeWritten, SessionError> {
        let (app, user) = match &write.scope {
            ScopeKey::App(app) => (app, None),
            ScopeKey::User(app, user) => (app, Some(user)),
        };
        let texts = json::delta(&write.delta, write.scope.scope())?;
        let (delta, names) =
            (texts.as_ref().map(|texts| &texts.delta), texts.as_ref().map(|texts| &texts.names));
        let guards = json::guards(&write.guards, write.scope.scope())?;
        let guards = guards.as_ref().map(|guards| guards.get());
        let (expect, limit) = (write.expect.map(signed), write.max_scope_bytes.map(length));
        let values: [&(dyn ToSql + Sync); 10] = [
            app,
            &user,
            &delta,
            &names,
            &write.time,
            &expect,
            &guards,
            &limit,
            &write.request,
            &write.principal,
        ];
        match retry::write_again(&self.pool, WRITING, WRITE, &values).await {
            Ok(row) => answer::written(&write, &row),
            Err(error) if is_corrupt(&error) => self.scope_state(&write.scope).await.and(Err(error)),
            Err(error) => Err(error),
        }
    }

    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError> {
        again(|| async move { history::changes(&client(&self.pool).await?, scope, window).await }).await
    }

    async fn trim_changes(
        &self,
        before: f64,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<TrimmedChanges, SessionError> {
        again(|| async move { history::trim(&client(&self.pool).await?, before, after, limit).await }).await
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        again(|| async move { addresses(&client(&self.pool).await?, after, limit).await }).await
    }

    async fn close(&self) -> Result<(), SessionError> {
        self.committer.finish().await?;
        self.pool.close();
        Ok(())
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("pool", &self.pool_use()).finish_non_exhaustive()
    }
}
