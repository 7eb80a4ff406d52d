//! The rules of sessions, held once.

mod append;
mod check;
mod create;
mod history;
mod list;
mod restore;
mod sameness;
mod transact;
mod watch;
mod write;

use std::sync::Arc;
use std::time::Duration;

pub use append::{Append, OnConflict};
pub use create::CreateSession;
pub use history::Rewind;
pub use list::{ListSessions, Page};
pub use restore::RestoreSession;
pub use watch::Watch;
pub use write::StateWrite;

use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::commit::Expect;
use crate::error::SessionError;
use crate::key::SessionKey;
use crate::session::Session;
use crate::store::{EventWindow, Store};
use watch::Watchers;

/// Sessions in a store. Clones are the same service.
#[derive(Clone)]
pub struct SessionService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    watchers: Arc<Watchers>,
    /// How often a watcher looks for what other processes committed.
    poll_interval: Duration,
    /// How large the state of a scope may become, in bytes of JSON.
    max_scope_bytes: Option<usize>,
}

impl SessionService {
    /// Sessions in this store, with the computer's clock and random ids.
    pub fn new(store: impl Store + 'static) -> Self {
        Self::over(Arc::new(store))
    }

    /// Sessions in a store that others use too.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            watchers: Arc::default(),
            poll_interval: Duration::from_millis(500),
            max_scope_bytes: None,
        }
    }

    /// With this clock.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// With ids from this source.
    #[must_use]
    pub fn with_ids(mut self, ids: impl Ids + 'static) -> Self {
        self.ids = Arc::new(ids);
        self
    }

    /// With watchers that look for the commits of other processes this often.
    #[must_use]
    pub fn with_poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// With a limit for the state of each scope, in bytes of JSON. A commit after which a scope would be larger is
    /// refused, unless it does not let the scope grow.
    #[must_use]
    pub fn with_max_scope_bytes(mut self, limit: usize) -> Self {
        self.max_scope_bytes = Some(limit);
        self
    }

    /// The store, to be shared with others.
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// A new id, from the source of the service.
    pub fn new_id(&self) -> String {
        self.ids.new_id()
    }

    /// What time it is by the clock of the service, in Unix seconds.
    pub fn now(&self) -> f64 {
        self.clock.now()
    }

    /// Reads a session with a window of its events, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`SessionError::Corrupt`] if a row cannot be understood; the store's own errors.
    pub async fn get(&self, key: &SessionKey, window: EventWindow) -> Result<Option<Session>, SessionError> {
        Ok(self.store.get(key, window).await?.map(Session::from))
    }

    /// Removes a session and its events; application and user state stay. Tells whether there was
    /// one.
    ///
    /// # Errors
    ///
    /// [`SessionError::Replaced`] or [`SessionError::Conflict`] if the session is not the expected one.
    pub async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        let deleted = self.store.delete(key, expect).await?;
        self.watchers.tell(key);
        Ok(deleted)
    }

    /// Commits what was handed over, and ends the store: connections are closed, a SQLite file is folded into one
    /// file. All clones of the service use the same store, so none of them can be used afterwards.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn close(&self) -> Result<(), SessionError> {
        self.store.close().await
    }
}
