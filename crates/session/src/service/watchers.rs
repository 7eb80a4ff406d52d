//! The watchers of this process, which are told of each commit at once. Those of other processes
//! look now and then.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::key::{ScopeKey, SessionKey};

/// Who is told of commits in this process.
#[derive(Default)]
pub(super) struct Watchers {
    pub(super) sessions: WatcherTable<SessionKey>,
    pub(super) scopes: WatcherTable<ScopeKey>,
}

/// The watchers of sessions, or of shared state, by what they watch.
pub(super) struct WatcherTable<K> {
    by_key: Mutex<HashMap<K, Arc<Notify>>>,
    /// Whether there was ever a watcher. Until then commits need not wait for each other at the
    /// table.
    is_used: AtomicBool,
}

impl<K> Default for WatcherTable<K> {
    fn default() -> Self {
        Self { by_key: Mutex::default(), is_used: AtomicBool::new(false) }
    }
}

impl<K: Eq + Hash + Clone> WatcherTable<K> {
    /// Tells all watchers of this key that it changed. The key is made only if there were ever
    /// watchers.
    pub(super) fn tell<B: std::borrow::Borrow<K>>(&self, key: impl FnOnce() -> B) {
        // A watcher enters the table before it reads the store. If it is not seen here, it reads
        // what was committed.
        if !self.is_used.load(Ordering::SeqCst) {
            return;
        }
        if let Some(notify) = self.table().get(key().borrow()) {
            notify.notify_waiters();
        }
    }

    pub(super) fn enter(&self, key: &K) -> Arc<Notify> {
        self.is_used.store(true, Ordering::SeqCst);
        self.table().entry(key.clone()).or_default().clone()
    }

    /// Forgets a key that has no other watcher: the table and the leaving watcher hold the last two
    /// references.
    pub(super) fn leave(&self, key: &K, notify: &Arc<Notify>) {
        let mut table = self.table();
        if Arc::strong_count(notify) <= 2 {
            table.remove(key);
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<K, Arc<Notify>>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
