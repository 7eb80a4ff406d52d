use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sessile_state::Delta;

use crate::error::SessionError;
use crate::key::SessionKey;
use crate::store::{
    Address, Appended, Commit, EventWindow, ListPlace, ListQuery, NewSession, ScopeKey, SessionEvent,
    StateMap, Store, StoredSession, Version, apply, next_update_time,
};

/// Keeps sessions in memory; they are gone with it. Events are shared with who reads them, not
/// copied.
#[derive(Default)]
pub struct MemoryStore {
    /// A std mutex: it is never held across an `.await`.
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    sessions: BTreeMap<SessionKey, Row>,
    scopes: HashMap<ScopeKey, Scope>,
    /// The sessions of each application, and of each of its users, by their last change.
    by_time: HashMap<(String, Option<String>), BTreeSet<Place>>,
}

#[derive(Default, Clone)]
struct Scope {
    version: Version,
    state: Arc<StateMap>,
}

struct Row {
    update_time: f64,
    initial: Arc<StateMap>,
    state: Arc<StateMap>,
    events: Vec<SessionEvent>,
    /// Where an event is, by its id.
    by_id: HashMap<String, usize>,
}

/// Sorted as lists are.
#[derive(Debug, Clone, PartialEq)]
struct Place(ListPlace);

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let (a, b) = (&self.0, &other.0);
        a.update_time.total_cmp(&b.update_time).then_with(|| (&a.user, &a.id).cmp(&(&b.user, &b.id)))
    }
}

impl MemoryStore {
    /// A store without sessions.
    pub fn new() -> Self {
        Self::default()
    }

    /// No code that can panic runs under the lock, so what it guards is whole.
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        let mut tables = self.tables();
        if tables.sessions.contains_key(&new.key) {
            return Err(SessionError::AlreadyExists { key: new.key });
        }
        tables.write_scopes(&new.key, &new.app, &new.user);
        let initial = Arc::new(new.session);
        let mut row = Row {
            update_time: new.time,
            initial: initial.clone(),
            state: initial,
            events: Vec::new(),
            by_id: HashMap::new(),
        };
        for (event, delta) in new.events {
            row.push(event, &delta);
        }
        tables.place(&new.key, row.update_time);
        let stored = tables.read(&new.key, &row, EventWindow::ALL);
        tables.sessions.insert(new.key, row);
        Ok(stored)
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        let tables = self.tables();
        Ok(tables.sessions.get(key).map(|row| tables.read(key, row, window)))
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<StoredSession>, SessionError> {
        let tables = self.tables();
        let list = (query.app.clone(), query.user.clone());
        let Some(places) = tables.by_time.get(&list) else { return Ok(Vec::new()) };
        let after = query.after.clone().map(Place);
        let passing: Box<dyn Iterator<Item = &Place>> = match (query.newest_first, after) {
            (false, None) => Box::new(places.iter()),
            (false, Some(after)) => Box::new(places.range((Excluded(after), Unbounded))),
            (true, None) => Box::new(places.iter().rev()),
            (true, Some(after)) => Box::new(places.range(..after).rev()),
        };
        let rows = passing.take(query.limit).filter_map(|place| {
            tables.sessions.get_key_value(&SessionKey::from_stored(&query.app, &place.0.user, &place.0.id))
        });
        Ok(rows.map(|(key, row)| tables.read(key, row, EventWindow::NONE)).collect())
    }

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let mut tables = self.tables();
        let Some(row) = tables.sessions.get(key) else { return Ok(false) };
        let actual = row.version();
        if let Some(expected) = expect.filter(|expected| *expected != actual) {
            let scope = sessile_state::Scope::Session;
            return Err(SessionError::Conflict { key: key.clone(), scope, expected, actual });
        }
        let time = row.update_time;
        tables.sessions.remove(key);
        tables.displace(key, time);
        Ok(true)
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let mut tables = self.tables();
        let Commit { key, event, delta, expect } = commit;
        let (app, user) = (tables.version(&ScopeKey::app_of(&key)), tables.version(&ScopeKey::user_of(&key)));
        let Some(row) = tables.sessions.get(&key) else { return Err(SessionError::NotFound { key }) };
        if let Some(&place) = row.by_id.get(&event.id) {
            let first = &row.events[place];
            return match *first.event == *event {
                true => Ok(Appended { version: first.version, update_time: row.update_time }),
                false => Err(SessionError::EventConflict { key, id: event.id.clone() }),
            };
        }
        expect.check(&key, row.version(), user, app)?;
        let before = row.update_time;
        tables.write_scopes(&key, &delta.app, &delta.user);
        tables.displace(&key, before);
        let Some(row) = tables.sessions.get_mut(&key) else { return Err(SessionError::NotFound { key }) };
        row.push(event, &delta.session);
        let appended = Appended { version: row.version(), update_time: row.update_time };
        tables.place(&key, appended.update_time);
        Ok(appended)
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<StateMap, SessionError> {
        Ok((*self.tables().scope(scope).state).clone())
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, _time: f64) -> Result<(), SessionError> {
        self.tables().write_scope(scope.clone(), &delta);
        Ok(())
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        let tables = self.tables();
        let scopes = tables.scopes.keys().cloned().map(Address::Scope);
        let mut passing: Vec<Address> =
            scopes.filter(|address| after.is_none_or(|after| address > after)).collect();
        passing.sort();
        let start = match after {
            Some(Address::Session(key)) => Excluded(key),
            _ => Unbounded,
        };
        let sessions = tables.sessions.range::<SessionKey, _>((start, Unbounded));
        let sessions = sessions.map(|(key, _)| Address::Session(key.clone()));
        Ok(passing.into_iter().chain(sessions).take(limit).collect())
    }
}

impl Tables {
    fn read(&self, key: &SessionKey, row: &Row, window: EventWindow) -> StoredSession {
        let (app, user) = (self.scope(&ScopeKey::app_of(key)), self.scope(&ScopeKey::user_of(key)));
        StoredSession {
            key: key.clone(),
            version: row.version(),
            app_version: app.version,
            user_version: user.version,
            update_time: row.update_time,
            session: row.state.clone(),
            app: app.state,
            user: user.state,
            initial: Some(row.initial.clone()),
            events: row.window(window),
        }
    }

    fn scope(&self, scope: &ScopeKey) -> Scope {
        self.scopes.get(scope).cloned().unwrap_or_else(Scope::default)
    }

    fn version(&self, scope: &ScopeKey) -> Version {
        self.scopes.get(scope).map_or(0, |scope| scope.version)
    }

    fn write_scopes(&mut self, key: &SessionKey, app: &Delta, user: &Delta) {
        self.write_scope(ScopeKey::app_of(key), app);
        self.write_scope(ScopeKey::user_of(key), user);
    }

    fn write_scope(&mut self, scope: ScopeKey, delta: &Delta) {
        if !delta.is_empty() {
            let scope = self.scopes.entry(scope).or_default();
            scope.version += 1;
            apply(Arc::make_mut(&mut scope.state), delta);
        }
    }

    fn place(&mut self, key: &SessionKey, time: f64) {
        for list in lists_of(key) {
            self.by_time.entry(list).or_default().insert(place_of(key, time));
        }
    }

    fn displace(&mut self, key: &SessionKey, time: f64) {
        for list in lists_of(key) {
            if let Some(places) = self.by_time.get_mut(&list) {
                places.remove(&place_of(key, time));
            }
        }
    }
}

impl Row {
    fn version(&self) -> Version {
        self.events.len() as Version
    }

    fn push(&mut self, event: Arc<crate::event::Event>, delta: &Delta) {
        self.update_time = next_update_time(self.update_time, event.timestamp);
        if !delta.is_empty() {
            apply(Arc::make_mut(&mut self.state), delta);
        }
        self.by_id.insert(event.id.clone(), self.events.len());
        self.events.push(SessionEvent { version: self.version() + 1, event });
    }

    /// Version `n` is at place `n - 1`, so versions are found without looking at events.
    fn window(&self, window: EventWindow) -> Vec<SessionEvent> {
        let place = |version: Version| usize::try_from(version).unwrap_or(usize::MAX).min(self.events.len());
        let start = window.after_version.map_or(0, place);
        let end = window.until_version.map_or(self.events.len(), place).max(start);
        let events = &self.events[start..end];
        if window.after_time.is_none() {
            let skipped = window.last.map_or(0, |last| events.len().saturating_sub(last));
            return events[skipped..].to_vec();
        }
        let last = window.last.unwrap_or(usize::MAX);
        let mut passing: Vec<_> =
            events.iter().rev().filter(|event| window.admits(event)).take(last).cloned().collect();
        passing.reverse();
        passing
    }
}

fn lists_of(key: &SessionKey) -> [(String, Option<String>); 2] {
    [(key.app().to_owned(), None), (key.app().to_owned(), Some(key.user().to_owned()))]
}

fn place_of(key: &SessionKey, update_time: f64) -> Place {
    Place(ListPlace { update_time, user: key.user().to_owned(), id: key.id().to_owned() })
}
