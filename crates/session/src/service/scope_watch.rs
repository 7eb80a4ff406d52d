//! Watching shared state.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, unfold};
use tokio::sync::Notify;

use super::SessionService;
use super::watchers::Watchers;
use crate::error::SessionError;
use crate::key::ScopeKey;
use crate::scope_change::ScopeChange;
use crate::store::Store;
use crate::version::Version;
use crate::window::ChangeWindow;

/// The changes of the state of an application or a user, one after the other, each after its commit
/// and in the order of versions, including those of other programs. Changes that are no longer kept
/// are skipped.
pub struct ScopeWatch {
    scope: ScopeKey,
    store: Arc<dyn Store>,
    /// The last version that was returned.
    seen: Version,
    /// Changes that were read from the store and not returned yet.
    ready: VecDeque<ScopeChange>,
    poll_interval: Duration,
    notify: Arc<Notify>,
    watchers: Arc<Watchers>,
}

/// How many changes are read at once.
const READ_AT_ONCE: usize = 100;

impl SessionService {
    /// Watches the state of a user, starting after a version.
    pub fn watch_user(&self, app: &str, user: &str, after: Version) -> ScopeWatch {
        self.watch_scope(ScopeKey::User(app.to_owned(), user.to_owned()), after)
    }

    /// Watches the state of an application, starting after a version.
    pub fn watch_app(&self, app: &str, after: Version) -> ScopeWatch {
        self.watch_scope(ScopeKey::App(app.to_owned()), after)
    }

    /// Watches shared state, starting after a version.
    pub fn watch_scope(&self, scope: ScopeKey, after: Version) -> ScopeWatch {
        ScopeWatch {
            notify: self.watchers.scopes.enter(&scope),
            scope,
            store: self.store.clone(),
            seen: after,
            ready: VecDeque::new(),
            poll_interval: self.poll_interval,
            watchers: self.watchers.clone(),
        }
    }
}

impl fmt::Debug for ScopeWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ScopeWatch");
        shown.field("scope", &self.scope).field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl ScopeWatch {
    /// Waits for the next change. A watch of shared state never ends, even if its row is deleted.
    ///
    /// # Errors
    ///
    /// Those of reading the history. The watch may be used again afterwards.
    pub async fn next(&mut self) -> Result<ScopeChange, SessionError> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                self.seen = change.version;
                return Ok(change);
            }
            // Subscribe before reading the store, so that no commit in between is missed.
            let notify = self.notify.clone();
            let notified = notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let window =
                ChangeWindow { after: self.seen, oldest_first: true, ..ChangeWindow::newest(READ_AT_ONCE) };
            self.ready = self.store.scope_changes(&self.scope, window).await?.into();
            if self.ready.is_empty() {
                // Read again after a notification, and after the poll interval: commits of other
                // processes send no notification here.
                drop(tokio::time::timeout(self.poll_interval, notified).await);
            }
        }
    }

    /// The changes as a stream, which ends after an error.
    pub fn into_stream(self) -> impl Stream<Item = Result<ScopeChange, SessionError>> + Send {
        unfold(Some(self), |watch| async {
            let mut watch = watch?;
            match watch.next().await {
                Ok(change) => Some((Ok(change), Some(watch))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl Drop for ScopeWatch {
    fn drop(&mut self) {
        self.watchers.scopes.leave(&self.scope, &self.notify);
    }
}
