use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{Stream, unfold};
use tokio::sync::Notify;

use super::SessionService;
use super::watchers::Watchers;
use crate::error::SessionError;
use crate::key::SessionKey;
use crate::store::Store;
use crate::stored_session::SessionEvent;
use crate::version::{Incarnation, Version};
use crate::window::EventWindow;

/// The changes of a session, one event after the other, each after its commit and in the order of
/// versions, including those of other processes.
pub struct Watch {
    key: SessionKey,
    store: Arc<dyn Store>,
    /// The last version that was returned.
    seen: Version,
    /// Which session is watched; a later one with the same address is not.
    incarnation: Option<Incarnation>,
    /// Events that were read from the store and not returned yet.
    ready: VecDeque<SessionEvent>,
    poll_interval: Duration,
    notify: Arc<Notify>,
    watchers: Arc<Watchers>,
}

impl SessionService {
    /// Watches a session, starting after a version. It is the session that has this address at the
    /// first read.
    pub fn watch(&self, key: &SessionKey, after: Version) -> Watch {
        Watch {
            key: key.clone(),
            store: self.store.clone(),
            seen: after,
            incarnation: None,
            ready: VecDeque::new(),
            poll_interval: self.poll_interval,
            notify: self.watchers.sessions.enter(key),
            watchers: self.watchers.clone(),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("key", &self.key).field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl Watch {
    /// Watches this session only, even if it was deleted before the first read.
    #[must_use]
    pub fn of(mut self, incarnation: Incarnation) -> Self {
        self.incarnation = Some(incarnation);
        self
    }

    /// Waits for the next change; `None` when the session was deleted, even if another one was
    /// created under its address.
    ///
    /// # Errors
    ///
    /// Those of reading the session. The watch may be used again afterwards.
    pub async fn next(&mut self) -> Result<Option<SessionEvent>, SessionError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.seen = event.version;
                return Ok(Some(event));
            }
            // Subscribe before reading the store, so that no commit in between is missed.
            let notify = self.notify.clone();
            let notified = notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let window = EventWindow::after_version(self.seen);
            let Some(stored) = self.store.get(&self.key, window).await? else { return Ok(None) };
            if *self.incarnation.get_or_insert(stored.incarnation) != stored.incarnation {
                return Ok(None);
            }
            self.ready = Arc::unwrap_or_clone(stored.events).into();
            if self.ready.is_empty() {
                // Read again after a notification, and after the poll interval: commits of other
                // processes send no notification here.
                drop(tokio::time::timeout(self.poll_interval, notified).await);
            }
        }
    }

    /// The changes as a stream, which ends after an error or when the session was deleted.
    pub fn into_stream(self) -> impl Stream<Item = Result<SessionEvent, SessionError>> + Send {
        unfold(Some(self), |watch| async {
            let mut watch = watch?;
            match watch.next().await {
                Ok(Some(event)) => Some((Ok(event), Some(watch))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.watchers.sessions.leave(&self.key, &self.notify);
    }
}
