use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use foldhash::quality::RandomState;
use sessile_state::Delta;

use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::page::{PageWriter, StoredPage, json_bytes};
use crate::store::{
    Address, Appended, Commit, EventWindow, ListPlace, ListQuery, NewSession, ScopeKey, SessionEvent,
    StateMap, Store, StoredSession, Version, apply, next_update_time,
};

/// Keeps sessions in memory; they are gone with it. Events are shared with who reads them, not
/// copied.
#[derive(Default)]
pub struct MemoryStore {
    /// Applications do not wait for each other. Std locks: they are never held across an `.await`.
    apps: RwLock<BTreeMap<String, Arc<Mutex<App>>>>,
}

#[derive(Default)]
struct App {
    shared: Shared,
    users: BTreeMap<String, User>,
    by_time: BTreeSet<Place>,
}

#[derive(Default)]
struct User {
    shared: Shared,
    sessions: BTreeMap<String, Row>,
    by_time: BTreeSet<Place>,
}

/// State that sessions share.
#[derive(Default)]
struct Shared {
    version: Version,
    state: Arc<StateMap>,
}

struct Row {
    name: Arc<Name>,
    update_time: f64,
    initial: Arc<StateMap>,
    state: Arc<StateMap>,
    /// The events that were there at the last reading of all of them, as readers share them.
    read: Arc<Vec<SessionEvent>>,
    /// Those since.
    new: Vec<SessionEvent>,
    /// Ids may be chosen by strangers: the hasher has a seed that they do not know.
    by_id: HashMap<ById, Version, RandomState>,
}

/// A session under its application.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    user: String,
    id: String,
}

/// Where a session is in a list. Sorted as lists are.
#[derive(Debug, Clone)]
struct Place {
    update_time: f64,
    name: Arc<Name>,
}

/// An event that is found by its id.
struct ById(Arc<Event>);

impl MemoryStore {
    /// A store without sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// The application, if something was ever written to it.
    fn app(&self, app: &str) -> Option<Arc<Mutex<App>>> {
        self.apps.read().unwrap_or_else(PoisonError::into_inner).get(app).cloned()
    }

    /// The application, for a write that makes it if need be.
    fn app_or_new(&self, app: &str) -> Arc<Mutex<App>> {
        self.app(app).unwrap_or_else(|| {
            let mut apps = self.apps.write().unwrap_or_else(PoisonError::into_inner);
            apps.entry(app.to_owned()).or_default().clone()
        })
    }
}

/// No code that can panic runs under the lock, so what it guards is whole.
fn lock(app: &Mutex<App>) -> MutexGuard<'_, App> {
    app.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        let app = self.app_or_new(new.key.app());
        let app = &mut *lock(&app);
        if app.row(&new.key).is_some() {
            return Err(SessionError::AlreadyExists { key: new.key });
        }
        let user = app.users.entry(new.key.user().to_owned()).or_default();
        app.shared.write(&new.app);
        user.shared.write(&new.user);
        let mut row = Row::new(&new.key, new.session, new.time);
        for (event, delta) in new.events {
            row.push(event, &delta);
        }
        app.by_time.insert(row.place());
        user.by_time.insert(row.place());
        let events = row.window(EventWindow::ALL);
        let stored = row.read(&app.shared, &user.shared, new.key.clone(), events);
        user.sessions.insert(new.key.id().to_owned(), row);
        Ok(stored)
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        let Some(app) = self.app(key.app()) else { return Ok(None) };
        Ok(lock(&app).read(key.clone(), window))
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        let Some(app) = self.app(&query.app) else { return Ok(StoredPage::default()) };
        let app = lock(&app);
        let places = match &query.user {
            None => &app.by_time,
            Some(user) => match app.users.get(user) {
                Some(user) => &user.by_time,
                None => return Ok(StoredPage::default()),
            },
        };
        let after = query.after.clone().map(Place::from);
        let passing: Box<dyn Iterator<Item = &Place>> = match (query.newest_first, after) {
            (false, None) => Box::new(places.iter()),
            (false, Some(after)) => Box::new(places.range((Excluded(after), Unbounded))),
            (true, None) => Box::new(places.iter().rev()),
            (true, Some(after)) => Box::new(places.range(..after).rev()),
        };
        let app_bytes = json_bytes(&app.shared.state);
        let (mut page, mut of_user) = (PageWriter::new(query), None);
        for place in passing {
            let Some(user) = app.users.get(&place.name.user) else { continue };
            let Some(row) = user.sessions.get(&place.name.id) else { continue };
            let shared = Arc::as_ptr(&user.shared.state);
            let user_bytes = match of_user {
                Some((known, bytes)) if known == shared => bytes,
                _ => json_bytes(&user.shared.state),
            };
            of_user = Some((shared, user_bytes));
            if !page.takes(json_bytes(&row.state) + app_bytes + user_bytes) {
                break;
            }
            let key = SessionKey::from_stored(&query.app, &place.name.user, &place.name.id);
            page.add(Some(place.into()), Ok(row.read(&app.shared, &user.shared, key, Arc::default())));
        }
        page.finish()
    }

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let Some(app) = self.app(key.app()) else { return Ok(false) };
        let app = &mut *lock(&app);
        let Some(row) = app.row(key) else { return Ok(false) };
        let (actual, place) = (row.version(), row.place());
        if let Some(expected) = expect.filter(|expected| *expected != actual) {
            let scope = sessile_state::Scope::Session;
            return Err(SessionError::Conflict { key: key.clone(), scope, expected, actual });
        }
        app.by_time.remove(&place);
        if let Some(user) = app.users.get_mut(key.user()) {
            user.by_time.remove(&place);
            user.sessions.remove(key.id());
        }
        Ok(true)
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let Commit { key, event, delta, expect } = commit;
        let Some(app) = self.app(key.app()) else { return Err(SessionError::NotFound { key }) };
        let App { shared, users, by_time } = &mut *lock(&app);
        let Some(user) = users.get_mut(key.user()) else { return Err(SessionError::NotFound { key }) };
        let Some(row) = user.sessions.get_mut(key.id()) else { return Err(SessionError::NotFound { key }) };
        let version = row.version();
        match row.by_id.entry(ById(event.clone())) {
            Entry::Occupied(first) => {
                return match *first.key().0 == *event {
                    true => Ok(Appended { version: *first.get(), update_time: row.update_time }),
                    false => Err(SessionError::EventConflict { key, id: event.id.clone() }),
                };
            }
            Entry::Vacant(place) => {
                expect.check(&key, version, user.shared.version, shared.version)?;
                place.insert(version + 1);
            }
        }
        let before = row.place();
        row.push_new(event, &delta.session);
        shared.write(&delta.app);
        user.shared.write(&delta.user);
        for places in [by_time, &mut user.by_time] {
            places.remove(&before);
            places.insert(row.place());
        }
        Ok(Appended { version: row.version(), update_time: row.update_time })
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<StateMap, SessionError> {
        let (ScopeKey::App(app) | ScopeKey::User(app, _)) = scope;
        let Some(app) = self.app(app) else { return Ok(StateMap::new()) };
        let app = lock(&app);
        let state = match scope {
            ScopeKey::App(_) => Some(&app.shared),
            ScopeKey::User(_, user) => app.users.get(user).map(|user| &user.shared),
        };
        Ok(state.map_or_else(StateMap::new, |shared| (*shared.state).clone()))
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, _time: f64) -> Result<(), SessionError> {
        let (ScopeKey::App(app) | ScopeKey::User(app, _)) = scope;
        let app = self.app_or_new(app);
        let app = &mut *lock(&app);
        match scope {
            ScopeKey::App(_) => app.shared.write(&delta),
            ScopeKey::User(_, user) => app.users.entry(user.clone()).or_default().shared.write(&delta),
        }
        Ok(())
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        let apps = self.apps.read().unwrap_or_else(PoisonError::into_inner).clone();
        let passes = |address: &Address| after.is_none_or(|after| address > after);
        let mut passing = Vec::new();
        for (name, app) in &apps {
            let scopes = lock(app).scopes(name);
            passing.extend(scopes.into_iter().map(Address::Scope).filter(passes));
        }
        passing.sort();
        let first = match after {
            Some(Address::Session(key)) => Some(key),
            _ => None,
        };
        for (name, app) in apps.range(first.map_or("", SessionKey::app).to_owned()..) {
            if passing.len() >= limit {
                break;
            }
            let first = first.filter(|key| key.app() == name.as_str());
            passing.extend(lock(app).keys(name, first).take(limit - passing.len()).map(Address::Session));
        }
        passing.truncate(limit);
        Ok(passing)
    }
}

impl App {
    /// Where this application's shared state is.
    fn scopes(&self, app: &str) -> Vec<ScopeKey> {
        let own = (self.shared.version > 0).then(|| ScopeKey::App(app.to_owned()));
        let users = self.users.iter().filter(|(_, user)| user.shared.version > 0);
        own.into_iter().chain(users.map(|(user, _)| ScopeKey::User(app.to_owned(), user.clone()))).collect()
    }

    /// Its sessions after one of them, in the order of their keys.
    fn keys(&self, app: &str, after: Option<&SessionKey>) -> impl Iterator<Item = SessionKey> {
        let users = self.users.range(after.map_or("", SessionKey::user).to_owned()..);
        users.flat_map(move |(user, rows)| {
            let start = match after.filter(|key| key.user() == user.as_str()) {
                Some(key) => Excluded(key.id().to_owned()),
                None => Unbounded,
            };
            let ids = rows.sessions.range((start, Unbounded)).map(|(id, _)| id);
            ids.map(move |id| SessionKey::from_stored(app, user, id))
        })
    }

    fn row(&self, key: &SessionKey) -> Option<&Row> {
        self.users.get(key.user())?.sessions.get(key.id())
    }

    fn read(&mut self, key: SessionKey, window: EventWindow) -> Option<StoredSession> {
        let user = self.users.get_mut(key.user())?;
        let row = user.sessions.get_mut(key.id())?;
        let events = row.window(window);
        Some(row.read(&self.shared, &user.shared, key, events))
    }
}

impl Shared {
    fn write(&mut self, delta: &Delta) {
        if !delta.is_empty() {
            self.version += 1;
            apply(Arc::make_mut(&mut self.state), delta);
        }
    }
}

impl Row {
    fn new(key: &SessionKey, state: StateMap, time: f64) -> Self {
        let initial = Arc::new(state);
        Self {
            name: Arc::new(Name { user: key.user().to_owned(), id: key.id().to_owned() }),
            update_time: time,
            initial: initial.clone(),
            state: initial,
            read: Arc::default(),
            new: Vec::new(),
            by_id: HashMap::default(),
        }
    }

    fn len(&self) -> usize {
        self.read.len() + self.new.len()
    }

    fn version(&self) -> Version {
        self.len() as Version
    }

    fn place(&self) -> Place {
        Place { update_time: self.update_time, name: self.name.clone() }
    }

    fn push(&mut self, event: Arc<Event>, delta: &Delta) {
        self.by_id.insert(ById(event.clone()), self.version() + 1);
        self.push_new(event, delta);
    }

    /// Adds an event whose id is noted already.
    fn push_new(&mut self, event: Arc<Event>, delta: &Delta) {
        self.update_time = next_update_time(self.update_time, event.timestamp);
        if !delta.is_empty() {
            apply(Arc::make_mut(&mut self.state), delta);
        }
        let version = self.version() + 1;
        self.new.push(SessionEvent { version, event });
    }

    fn read(
        &self,
        app: &Shared,
        user: &Shared,
        key: SessionKey,
        events: Arc<Vec<SessionEvent>>,
    ) -> StoredSession {
        StoredSession {
            key,
            version: self.version(),
            app_version: app.version,
            user_version: user.version,
            update_time: self.update_time,
            session: self.state.clone(),
            app: app.state.clone(),
            user: user.state.clone(),
            initial: Some(self.initial.clone()),
            events,
        }
    }

    /// Version `n` is at place `n - 1`, so versions are found without looking at events.
    fn window(&mut self, window: EventWindow) -> Arc<Vec<SessionEvent>> {
        let length = self.len();
        let place = |version: Version| usize::try_from(version).unwrap_or(usize::MAX).min(length);
        let start = window.after_version.map_or(0, place);
        let end = window.until_version.map_or(length, place).max(start);
        let last = window.last.unwrap_or(usize::MAX);
        if window.after_time.is_none() {
            let start = start.max(end.saturating_sub(last));
            return if end - start == length {
                self.all()
            } else {
                Arc::new(self.between(start, end).collect())
            };
        }
        let mut passing: Vec<_> =
            self.between(start, end).rev().filter(|event| window.admits(event)).take(last).collect();
        passing.reverse();
        Arc::new(passing)
    }

    /// All events, shared. What is new is added to what readers share; if some reader still holds that, its
    /// pointers are copied for once.
    fn all(&mut self) -> Arc<Vec<SessionEvent>> {
        if !self.new.is_empty() {
            Arc::make_mut(&mut self.read).append(&mut self.new);
        }
        self.read.clone()
    }

    fn between(&self, start: usize, end: usize) -> impl DoubleEndedIterator<Item = SessionEvent> {
        let old = self.read.len();
        let read = &self.read[start.min(old)..end.min(old)];
        let new = &self.new[start.max(old) - old..end.max(old) - old];
        read.iter().chain(new).cloned()
    }
}

impl From<ListPlace> for Place {
    fn from(ListPlace { update_time, user, id }: ListPlace) -> Self {
        Self { update_time, name: Arc::new(Name { user, id }) }
    }
}

impl From<&Place> for ListPlace {
    fn from(Place { update_time, name }: &Place) -> Self {
        Self { update_time: *update_time, user: name.user.clone(), id: name.id.clone() }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        self.update_time.total_cmp(&other.update_time).then_with(|| self.name.cmp(&other.name))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}
