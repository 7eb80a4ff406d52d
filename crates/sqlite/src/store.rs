use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sessile_session::{
    Address, Appended, ChangeWindow, Commit, EventWindow, Expect, ListQuery, NewSession, ScopeChange,
    ScopeKey, ScopeState, ScopeWrite, ScopeWritten, SessionError, SessionKey, Store, StoredPage,
    StoredSession, TrimmedChanges,
};

use crate::addresses::addresses;
use crate::connection::{SqliteOptions, not_migrated};
use crate::create::PreparedSession;
use crate::failure::failed_to;
use crate::layout::Layout;
use crate::list::list;
use crate::migrate::migrate;
use crate::prepared_commit::PreparedCommit;
use crate::readers::Readers;
use crate::scope_write::WriteAnswer;
use crate::trim::OldScopes;
use crate::writer::Writer;
use crate::{history, read, scope_read, scope_write, trim};

/// Sessions in a SQLite file, in google-adk's tables.
///
/// A new file gets the layout of google-adk's `SqliteSessionService`; a file in the layout of its
/// `DatabaseSessionService` is recognised and served as it is.
pub struct SqliteStore {
    layout: Layout,
    writer: Writer,
    readers: Arc<Readers>,
}

impl SqliteStore {
    /// Opens a file; creates or migrates it if necessary.
    ///
    /// # Errors
    ///
    /// [`SessionError::Unusable`] says what to do about a file that cannot be used: it is
    /// read-only, not a database, in google-adk's old format, or written by a newer Sessile.
    /// [`SessionError::Unavailable`] if another program has locked it.
    pub async fn open(options: SqliteOptions) -> Result<Self, SessionError> {
        tokio::task::spawn_blocking(move || Self::open_now(options))
            .await
            .map_err(failed_to("open the SQLite file"))?
    }

    /// Opens the file that a URL names, see [`SqliteOptions::from_url`].
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn open_url(url: &str) -> Result<Self, SessionError> {
        Self::open(SqliteOptions::from_url(url)?).await
    }

    fn open_now(options: SqliteOptions) -> Result<Self, SessionError> {
        let connection = options.open_writer()?;
        let layout = migrate(&connection, options.busy_timeout);
        let layout = layout.map_err(|error| not_migrated(&options.path, error))?;
        let writer = Writer::start(connection, layout, options.busy_timeout)?;
        Ok(Self { layout, writer, readers: Arc::new(Readers::new(options)) })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        let prepared = Arc::new(PreparedSession::new(new, self.layout)?);
        let shared = {
            let prepared = prepared.clone();
            self.writer.write(move |batch| batch.create(&prepared)).await?
        };
        prepared.stored(&shared)
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        let (key, layout) = (key.clone(), self.layout);
        self.readers.read(move |connection| read::get(connection, layout, &key, window)).await
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        let (query, layout) = (query.clone(), self.layout);
        self.readers.read(move |connection| list(connection, layout, &query)).await
    }

    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        let key = key.clone();
        self.writer.write(move |batch| batch.delete(&key, expect)).await
    }

    async fn append(&self, mut commit: Commit) -> Result<Appended, SessionError> {
        let prepared = PreparedCommit::new(&mut commit, self.layout)?;
        let answer = self.writer.write(move |batch| batch.append(&commit, &prepared)).await?;
        answer.parsed()
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
        let scope = scope.clone();
        self.readers.read(move |connection| scope_read::scope_state(connection, &scope)).await
    }

    async fn write_scope(&self, write: ScopeWrite) -> Result<ScopeWritten, SessionError> {
        let scope = write.scope.clone();
        match self.writer.write(move |batch| batch.write_scope(&write)).await? {
            WriteAnswer::Written { version, state, overwrote } => {
                Ok(ScopeWritten { version, state: state.values()?, known: None, overwrote })
            }
            WriteAnswer::Known { version } => {
                self.readers.read(move |connection| scope_write::known(connection, &scope, version)).await
            }
        }
    }

    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError> {
        let scope = scope.clone();
        self.readers.read(move |connection| history::changes(connection, &scope, window)).await
    }

    /// Searches with a reading connection, and takes the file's write lock only if there is
    /// something to remove.
    async fn trim_changes(
        &self,
        before: f64,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<TrimmedChanges, SessionError> {
        let after = after.cloned();
        let look = move |connection: &mut _| trim::old_scopes(connection, before, after.as_ref(), limit);
        let OldScopes { scopes, next } = self.readers.read(look).await?;
        if scopes.is_empty() {
            return Ok(TrimmedChanges { removed: 0, next });
        }
        let removed = self.writer.write(move |batch| batch.trim(&scopes, before, limit)).await?;
        Ok(TrimmedChanges { removed, next })
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        let after = after.cloned();
        self.readers.read(move |connection| addresses(connection, after.as_ref(), limit)).await
    }

    /// Without closing, no acknowledged write is lost, but the last ones may still be in the
    /// write-ahead log beside the file.
    async fn close(&self) -> Result<(), SessionError> {
        self.readers.close().await?; // first: only the last connection can remove the write-ahead log
        self.writer.close().await
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.readers.options();
        f.debug_struct("SqliteStore").field("options", options).field("layout", &self.layout).finish()
    }
}
