use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use sessile_session::{
    Address, Appended, Commit, EventWindow, ListQuery, NewSession, ScopeKey, SessionError, SessionKey,
    StateMap, Store, StoredPage, StoredSession, Version,
};
use sessile_state::Delta;

/// How often a store committed, refused and failed, for `/metrics`.
#[derive(Default)]
pub struct Counts {
    commits: AtomicU64,
    conflicts: AtomicU64,
    failures: AtomicU64,
}

impl Counts {
    /// Puts counters around a store; whoever commits through the result is counted.
    pub fn around(store: Arc<dyn Store>) -> (Arc<dyn Store>, Arc<Self>) {
        let counts = Arc::<Self>::default();
        (Arc::new(Counted { store, counts: counts.clone() }), counts)
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

    fn write<T>(&self, outcome: Result<T, SessionError>) -> Result<T, SessionError> {
        if outcome.is_ok() {
            self.commits.fetch_add(1, Ordering::Relaxed);
        }
        self.read(outcome)
    }

    fn read<T>(&self, outcome: Result<T, SessionError>) -> Result<T, SessionError> {
        match &outcome {
            Err(SessionError::Conflict { .. } | SessionError::EventConflict { .. }) => &self.conflicts,
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

struct Counted {
    store: Arc<dyn Store>,
    counts: Arc<Counts>,
}

#[async_trait]
impl Store for Counted {
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

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        self.counts.write(self.store.delete(key, expect).await)
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        self.counts.write(self.store.append(commit).await)
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<StateMap, SessionError> {
        self.counts.read(self.store.scope_state(scope).await)
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, time: f64) -> Result<(), SessionError> {
        self.counts.write(self.store.write_scope(scope, delta, time).await)
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        self.counts.read(self.store.addresses(after, limit).await)
    }
}
