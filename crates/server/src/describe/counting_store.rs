use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use sessile_session::{
    Address, Appended, ChangeWindow, Commit, EventWindow, Expect, ListQuery, NewSession, ScopeChange,
    ScopeKey, ScopeState, ScopeWrite, ScopeWritten, SessionError, SessionKey, Store, StoredPage,
    StoredSession, TrimmedChanges,
};

/// How often a store committed, refused and failed, for `/metrics`.
#[derive(Debug, Default)]
pub struct Counts {
    commits: AtomicU64,
    conflicts: AtomicU64,
    failures: AtomicU64,
    overwrites: AtomicU64,
}

impl Counts {
    /// Wraps a store so that its calls are counted.
    pub fn around(store: Arc<dyn Store>) -> (Arc<dyn Store>, Arc<Self>) {
        let counts = Arc::<Self>::default();
        (Arc::new(CountingStore { store, counts: counts.clone() }), counts)
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) fn conflicts(&self) -> u64 {
        self.conflicts.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn overwrites(&self) -> u64 {
        self.overwrites.load(Ordering::Relaxed)
    }

    fn write<T>(&self, outcome: Result<T, SessionError>) -> Result<T, SessionError> {
        if outcome.is_ok() {
            self.commits.fetch_add(1, Ordering::Relaxed);
        }
        self.read(outcome)
    }

    fn read<T>(&self, outcome: Result<T, SessionError>) -> Result<T, SessionError> {
        match &outcome {
            Err(
                SessionError::Conflict { .. }
                | SessionError::Replaced { .. }
                | SessionError::ScopeConflict { .. }
                | SessionError::Overwritten { .. }
                | SessionError::Operation { .. }
                | SessionError::EventConflict { .. }
                | SessionError::RequestConflict { .. },
            ) => &self.conflicts,
            Err(
                SessionError::Backend { .. }
                | SessionError::Unavailable { .. }
                | SessionError::InDoubt { .. }
                | SessionError::Corrupt { .. }
                | SessionError::Unusable { .. },
            ) => &self.failures,
            _ => return outcome,
        }
        .fetch_add(1, Ordering::Relaxed);
        outcome
    }
}

struct CountingStore {
    store: Arc<dyn Store>,
    counts: Arc<Counts>,
}

#[async_trait]
impl Store for CountingStore {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        self.counts.write(self.store.create(new).await)
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        self.counts.read(self.store.get(key, window).await)
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        self.counts.read(self.store.list(query).await)
    }

    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        self.counts.write(self.store.delete(key, expect).await)
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        match self.store.append(commit).await {
            Ok(appended) if appended.is_known => Ok(appended), // nothing was committed
            outcome => {
                if outcome.as_ref().is_ok_and(|appended| appended.event.overwrote().is_some()) {
                    self.counts.overwrites.fetch_add(1, Ordering::Relaxed);
                }
                self.counts.write(outcome)
            }
        }
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
        self.counts.read(self.store.scope_state(scope).await)
    }

    async fn write_scope(&self, write: ScopeWrite) -> Result<ScopeWritten, SessionError> {
        match self.store.write_scope(write).await {
            Ok(written) if written.known.is_some() => Ok(written), // nothing was committed
            outcome => self.counts.write(outcome),
        }
    }

    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError> {
        self.counts.read(self.store.scope_changes(scope, window).await)
    }

    async fn trim_changes(
        &self,
        before: f64,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<TrimmedChanges, SessionError> {
        self.counts.read(self.store.trim_changes(before, after, limit).await)
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        self.counts.read(self.store.addresses(after, limit).await)
    }

    async fn close(&self) -> Result<(), SessionError> {
        self.counts.read(self.store.close().await)
    }
}
