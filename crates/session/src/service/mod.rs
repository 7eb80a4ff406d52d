//! The rules of sessions, independent of the store.

mod append;
mod check;
mod create;
mod history;
mod list;
mod overwrites;
mod reduce;
mod restore;
mod retention;
mod sameness;
mod scope_history;
mod scope_watch;
mod transact;
mod watch;
mod watchers;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sessile_state::StateSchema;

pub use append::{Append, OnConflict};
pub use create::CreateSession;
pub use history::Rewind;
pub use list::{ListSessions, Page};
pub use overwrites::{Overwrites, Overwrote};
pub use restore::RestoreSession;
pub use scope_history::{HistoryPage, ScopeHistory};
pub use scope_watch::ScopeWatch;
pub use transact::{Attempt, Backoff};
pub use watch::Watch;
pub use write::StateWrite;

use crate::clock::{Clock, Ids, RandomIds, SystemClock};
use crate::commit::Expect;
use crate::error::SessionError;
use crate::guard::OnOverwrite;
use crate::key::SessionKey;
use crate::session::Session;
use crate::store::Store;
use crate::window::EventWindow;
use overwrites::Warnings;
use retention::Trimming;
use watchers::Watchers;

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
    /// What happens when a write overwrites a value that its writer has not read.
    on_overwrite: OnOverwrite,
    /// The overwrites that were logged already.
    overwrites: Arc<Warnings>,
    /// What may be stored, by application; an application without a schema may store anything.
    schemas: Arc<BTreeMap<String, Arc<StateSchema>>>,
    /// How long changes of shared state are kept; `None` means forever.
    history_kept: Option<Duration>,
    trimming: Arc<Trimming>,
}

impl fmt::Debug for SessionService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionService")
            .field("poll_interval", &self.poll_interval)
            .field("max_scope_bytes", &self.max_scope_bytes)
            .field("on_overwrite", &self.on_overwrite)
            .field("history_kept", &self.history_kept)
            .finish_non_exhaustive()
    }
}

impl SessionService {
    /// Sessions in this store, with the computer's clock and random ids.
    pub fn new(store: impl Store + 'static) -> Self {
        Self::over(Arc::new(store))
    }

    /// Sessions in a shared store.
    pub fn over(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            watchers: Arc::default(),
            poll_interval: Duration::from_millis(500),
            max_scope_bytes: None,
            on_overwrite: OnOverwrite::default(),
            overwrites: Arc::default(),
            schemas: Arc::default(),
            history_kept: Some(retention::KEPT),
            trimming: Arc::default(),
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

    /// With a limit for the state of each scope: the bytes of its names, and of its values as JSON
    /// without spaces. A commit that would exceed it is refused, unless it does not increase the
    /// size of the scope.
    #[must_use]
    pub fn with_max_scope_bytes(mut self, limit: usize) -> Self {
        self.max_scope_bytes = Some(limit);
        self
    }

    /// How to treat writes that overwrite a value that their writer has not read: they are reported
    /// in their event, or refused. It is the default of [`append`](Self::append) and of the runners
    /// on this service.
    #[must_use]
    pub fn with_on_overwrite(mut self, on_overwrite: OnOverwrite) -> Self {
        self.on_overwrite = on_overwrite;
        self
    }

    /// What happens when a write overwrites a value that its writer has not read.
    pub fn on_overwrite(&self) -> OnOverwrite {
        self.on_overwrite
    }

    /// With a schema for the state of an application, in the place of one that it had. Every change
    /// of that state through this service is checked: by append, change, transact and write, in
    /// runs and live sessions, at creation. State that is restored (by restore, fork and rewind) is
    /// not checked.
    ///
    /// ```
    /// use serde_json::json;
    /// use sessile_session::{CreateSession, MemoryStore, SessionService};
    /// use sessile_state::{StateSchema, ValueType};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let schema = StateSchema::new().declare("user:points", ValueType::integer().at_least(0));
    /// let service = SessionService::new(MemoryStore::new()).with_schema("shop", schema);
    ///
    /// let new = CreateSession::new("shop", "ada").with_state(json!({"user:points": "many"}));
    /// assert_eq!(
    ///     service.create(new).await.unwrap_err().to_string(),
    ///     "cannot store state key \"user:points\": it is declared as `integer` and cannot hold a string",
    /// );
    /// # });
    /// ```
    #[must_use]
    pub fn with_schema(mut self, app: impl Into<String>, schema: impl Into<Arc<StateSchema>>) -> Self {
        Arc::make_mut(&mut self.schemas).insert(app.into(), schema.into());
        self
    }

    /// The schema for the state of an application, if it has one.
    pub fn schema(&self, app: &str) -> Option<&Arc<StateSchema>> {
        self.schemas.get(app)
    }

    /// The schema that changes of this application are checked with.
    fn checking(&self, app: &str) -> Option<&StateSchema> {
        self.schema(app).map(|schema| &**schema)
    }

    /// With a history of shared state that is kept this long, 90 days by default; `None` keeps it
    /// forever. The newest change of each scope is never removed. A request id is recognized as
    /// long as its change is kept.
    #[must_use]
    pub fn with_history_kept(mut self, kept: Option<Duration>) -> Self {
        self.history_kept = kept;
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
    /// [`SessionError::Corrupt`] if a row cannot be decoded; the store's own errors.
    pub async fn get(&self, key: &SessionKey, window: EventWindow) -> Result<Option<Session>, SessionError> {
        Ok(self.store.get(key, window).await?.map(Session::from))
    }

    /// Removes a session and its events; application and user state stay. Returns whether there was
    /// one.
    ///
    /// # Errors
    ///
    /// The store's own errors.
    pub async fn delete(&self, key: &SessionKey) -> Result<bool, SessionError> {
        self.delete_expecting(key, Expect::default()).await
    }

    /// [`delete`](Self::delete), if the session is the one that the caller expects.
    ///
    /// # Errors
    ///
    /// [`SessionError::Replaced`] or [`SessionError::Conflict`] if the session is not the expected
    /// one.
    pub async fn delete_expecting(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        let deleted = self.store.delete(key, expect).await?;
        self.watchers.sessions.notify(|| key);
        Ok(deleted)
    }

    /// Finishes pending commits and closes the store: connections are closed, and a SQLite database
    /// is merged into a single file. All clones of the service use the same store, so none of them
    /// can be used afterwards.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn close(&self) -> Result<(), SessionError> {
        self.store.close().await
    }
}
