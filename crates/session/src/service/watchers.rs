//! The watchers of this process, which are notified of each commit. Watchers in other processes
//! poll.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::key::{ScopeKey, SessionKey};

/// The watchers to notify of commits in this process.
#[derive(Default)]
pub(super) struct Watchers {
    pub(super) sessions: WatcherTable<SessionKey>,
    pub(super) scopes: WatcherTable<ScopeKey>,
}

/// The watchers of sessions, or of shared state, by what they watch.
pub(super) struct WatcherTable<K> {
    by_key: Mutex<HashMap<K, Arc<Notify>>>,
    /// Whether there was ever a watcher. Until then commits do not have to lock the table.
    is_used: AtomicBool,
}

impl<K> Default for WatcherTable<K> {
    fn default() -> Self {
        Self { by_key: Mutex::default(), is_used: AtomicBool::new(false) }
    }
}

impl<K: Eq + Hash + Clone> WatcherTable<K> {
    /// Notifies all watchers of this key that it changed. The key is built only if there ever was a
    /// watcher.
    pub(super) fn notify<B: std::borrow::Borrow<K>>(&self, key: impl FnOnce() -> B) {
        // A watcher enters the table before it reads the store. One that is not seen here will
        // therefore read the new commit.
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

    /// Removes a key that has no other watcher: the table and the leaving watcher hold the last two
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
