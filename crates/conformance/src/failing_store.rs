//! A store that fails or waits on demand, for fault injection in tests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use sessile_session::{
    Address, Appended, ChangeWindow, Commit, EventWindow, Expect, ListQuery, MemoryStore, NewSession,
    ScopeChange, ScopeKey, ScopeState, ScopeWrite, ScopeWritten, SessionError, SessionKey, Store, StoredPage,
    StoredSession, TrimmedChanges,
};

/// A store with a hook that runs before each call, and may delay it, fail it, or do something else
/// first.
///
/// ```
/// use sessile_conformance::{Between, Call};
/// use sessile_session::{CreateSession, SessionError, SessionService};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let full = SessionService::new(Between::new(|call| {
///     let creates = matches!(call, Call::Create);
///     async move {
///         match creates {
///             true => Err(SessionError::Backend { action: "create", source: "the disk is full".into() }),
///             false => Ok(()),
///         }
///     }
/// }));
/// assert!(full.create(CreateSession::new("shop", "ada")).await.is_err());
/// # });
/// ```
pub struct Between {
    store: Arc<dyn Store>,
    before: Box<dyn Fn(Call<'_>) -> Pending + Send + Sync>,
}

type Pending = Pin<Box<dyn Future<Output = Result<(), SessionError>> + Send>>;

/// A call of a store's method.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "they are the methods of `Store`")]
pub enum Call<'a> {
    Create,
    Get,
    List,
    Delete,
    Append(&'a Commit),
    ScopeState,
    WriteScope(&'a ScopeWrite),
    ScopeChanges,
    TrimChanges,
    Addresses,
    Close,
}

impl Between {
    /// An empty memory store; `before` runs before each call, which is made only if it succeeds.
    pub fn new<F, Fut>(before: F) -> Self
    where
        F: Fn(Call<'_>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), SessionError>> + Send + 'static,
    {
        Self::over(Arc::new(MemoryStore::new()), before)
    }

    /// A shared store; `before` runs before each call that is made through this handle.
    pub fn over<F, Fut>(store: Arc<dyn Store>, before: F) -> Self
    where
        F: Fn(Call<'_>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), SessionError>> + Send + 'static,
    {
        Self { store, before: Box::new(move |call| Box::pin(before(call))) }
    }
}

impl fmt::Debug for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Between").finish_non_exhaustive()
    }
}

#[async_trait]
impl Store for Between {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        (self.before)(Call::Create).await?;
        self.store.create(new).await
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        (self.before)(Call::Get).await?;
        self.store.get(key, window).await
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        (self.before)(Call::List).await?;
        self.store.list(query).await
    }

    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        (self.before)(Call::Delete).await?;
        self.store.delete(key, expect).await
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        (self.before)(Call::Append(&commit)).await?;
        self.store.append(commit).await
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
        (self.before)(Call::ScopeState).await?;
        self.store.scope_state(scope).await
    }

    async fn write_scope(&self, write: ScopeWrite) -> Result<ScopeWritten, SessionError> {
        (self.before)(Call::WriteScope(&write)).await?;
        self.store.write_scope(write).await
    }

    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError> {
        (self.before)(Call::ScopeChanges).await?;
        self.store.scope_changes(scope, window).await
    }

    async fn trim_changes(
        &self,
        before: f64,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<TrimmedChanges, SessionError> {
        (self.before)(Call::TrimChanges).await?;
        self.store.trim_changes(before, after, limit).await
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        (self.before)(Call::Addresses).await?;
        self.store.addresses(after, limit).await
    }

    async fn close(&self) -> Result<(), SessionError> {
        (self.before)(Call::Close).await?;
        self.store.close().await
    }
}
