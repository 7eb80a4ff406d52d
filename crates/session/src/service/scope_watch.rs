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
/// and in the order of versions, whichever program made it. Changes that are no longer kept are
/// passed over.
pub struct ScopeWatch {
    scope: ScopeKey,
    store: Arc<dyn Store>,
    /// The last version that was handed out.
    seen: Version,
    /// Read from the store and not handed out yet.
    ready: VecDeque<ScopeChange>,
    poll_interval: Duration,
    notify: Arc<Notify>,
    watchers: Arc<Watchers>,
}

/// How many changes are read at once.
const READ_AT_ONCE: usize = 100;

impl SessionService {
    /// Watches the state of a user from after a version on.
    pub fn watch_user(&self, app: &str, user: &str, after: Version) -> ScopeWatch {
        self.watch_scope(ScopeKey::User(app.to_owned(), user.to_owned()), after)
    }

    /// Watches the state of an application from after a version on.
    pub fn watch_app(&self, app: &str, after: Version) -> ScopeWatch {
        self.watch_scope(ScopeKey::App(app.to_owned()), after)
    }

    /// Watches shared state from after a version on.
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
    /// The next change. Without one it waits: shared state has no end, also if its row is deleted.
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
            // Listening begins before the store is read, so that no commit falls in between.
            let notify = self.notify.clone();
            let told = notify.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            let window =
                ChangeWindow { after: self.seen, oldest_first: true, ..ChangeWindow::newest(READ_AT_ONCE) };
            self.ready = self.store.scope_changes(&self.scope, window).await?.into();
            if self.ready.is_empty() {
                // It looks again when it is notified, and after a while: other programs notify no
                // one here.
                drop(tokio::time::timeout(self.poll_interval, told).await);
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
