//! The rules of sessions, held once.

mod append;
mod check;
mod create;
mod history;
mod list;
mod restore;
mod transact;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use sessile_state::{Delta, Scope};

pub use append::OnConflict;
pub use create::CreateSession;
pub use history::Rewind;
pub use list::{ListSessions, Page};
pub use restore::RestoreSession;
pub use watch::Watch;

use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::error::SessionError;
use crate::key::{SessionKey, check_app, check_user};
use crate::session::Session;
use crate::store::{EventWindow, ScopeKey, StateMap, Store, Version};
use check::checked;
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
    /// [`SessionError::Conflict`] if a version is expected and another is stored.
    pub async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let deleted = self.store.delete(key, expect).await?;
        self.watchers.tell(key);
        Ok(deleted)
    }

    /// The state that all users and sessions of an application share, without its prefix.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidId`] if it cannot be an application; the store's own errors.
    pub async fn app_state(&self, app: &str) -> Result<StateMap, SessionError> {
        check_app(app)?;
        self.scope_state(ScopeKey::App(app.to_owned())).await
    }

    /// The state that all sessions of a user share, without its prefix.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidId`] if it cannot be an application or user; the store's own errors.
    pub async fn user_state(&self, app: &str, user: &str) -> Result<StateMap, SessionError> {
        check_app(app)?;
        check_user(user)?;
        self.scope_state(ScopeKey::User(app.to_owned(), user.to_owned())).await
    }

    /// Changes the state of an application; keys are without their prefix.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidState`] if a key or value cannot be stored; nothing is changed then.
    pub async fn write_app_state(&self, app: &str, delta: &Delta) -> Result<(), SessionError> {
        check_app(app)?;
        self.write_scope(ScopeKey::App(app.to_owned()), Scope::App, delta).await
    }

    /// Changes the state of a user; keys are without their prefix.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidState`] if a key or value cannot be stored; nothing is changed then.
    pub async fn write_user_state(&self, app: &str, user: &str, delta: &Delta) -> Result<(), SessionError> {
        check_app(app)?;
        check_user(user)?;
        self.write_scope(ScopeKey::User(app.to_owned(), user.to_owned()), Scope::User, delta).await
    }

    /// Reads shared state. A row written by hand may name a key with its prefix, which is the same key; the one
    /// without it wins when both are there, as in a session.
    async fn scope_state(&self, key: ScopeKey) -> Result<StateMap, SessionError> {
        let state = self.store.scope_state(&key).await?;
        let (prefixed, mut plain): (StateMap, StateMap) =
            state.into_iter().partition(|(name, _)| Scope::of(name).0 == key.scope());
        for (name, value) in prefixed {
            plain.entry(Scope::of(&name).1.to_owned()).or_insert(value);
        }
        Ok(plain)
    }

    async fn write_scope(&self, key: ScopeKey, scope: Scope, delta: &Delta) -> Result<(), SessionError> {
        let mut prefixed = Delta::new();
        delta.values().for_each(|(name, value)| prefixed.set(scope.key(name), value.clone()));
        delta.removed().for_each(|name| prefixed.remove(scope.key(name)));
        checked(&prefixed)?;
        if delta.is_empty() {
            return Ok(());
        }
        self.store.write_scope(&key, delta.clone(), self.clock.now()).await
    }
}
