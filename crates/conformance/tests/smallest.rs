//! The smallest store that keeps the contract: everything in one place, behind one lock.
//!
//! It is slow, and forgets everything; it is here to be read. `docs/adding-a-store.md` walks through it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sessile_session::{
    Address, Appended, Commit, Event, EventWindow, ListPlace, ListQuery, NewSession, PageWriter, ScopeKey,
    SessionError, SessionEvent, SessionKey, StateMap, Store, StoredPage, StoredSession, Version, apply,
    next_update_time,
};
use sessile_state::{Delta, Scope};

fn main() -> ExitCode {
    sessile_conformance::run(|| async { Arc::new(Smallest::default()) as _ })
}

/// The store.
#[derive(Default)]
struct Smallest {
    /// One lock is one transaction: whoever holds it sees all of a commit or nothing.
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    sessions: BTreeMap<SessionKey, Row>,
    shared: BTreeMap<ScopeKey, Shared>,
}

struct Row {
    update_time: f64,
    initial: StateMap,
    state: StateMap,
    /// In the order of their commits; the version of each is its place, counted from one.
    events: Vec<Arc<Event>>,
}

/// The state of an application or a user, and how often it was written.
#[derive(Clone, Default)]
struct Shared {
    version: Version,
    /// Whoever reads it shares it.
    state: Arc<StateMap>,
}

impl Smallest {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for Smallest {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        let mut tables = self.lock();
        if tables.sessions.contains_key(&new.key) {
            return Err(SessionError::AlreadyExists { key: new.key });
        }
        let mut row = Row {
            update_time: new.time,
            initial: new.session.clone(),
            state: new.session,
            events: Vec::new(),
        };
        for (event, delta) in new.events {
            row.push(event, &delta);
        }
        tables.sessions.insert(new.key.clone(), row);
        tables.write(ScopeKey::app_of(&new.key), &new.app);
        tables.write(ScopeKey::user_of(&new.key), &new.user);
        tables.read(&new.key, EventWindow::ALL).ok_or(SessionError::NotFound { key: new.key })
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        Ok(self.lock().read(key, window))
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        let tables = self.lock();
        let mut places: Vec<(ListPlace, &SessionKey)> = tables
            .sessions
            .iter()
            .filter(|(key, _)| key.app() == query.app)
            .filter(|(key, _)| query.user.as_ref().is_none_or(|user| key.user() == user))
            .map(|(key, row)| {
                let (user, id) = (key.user().to_owned(), key.id().to_owned());
                (ListPlace { update_time: row.update_time, user, id }, key)
            })
            .collect();
        let order = |one: &ListPlace, other: &ListPlace| {
            let order = one.update_time.total_cmp(&other.update_time);
            let order = order.then_with(|| (&one.user, &one.id).cmp(&(&other.user, &other.id)));
            if query.newest_first { order.reverse() } else { order }
        };
        places.sort_by(|(one, _), (other, _)| order(one, other));
        places.retain(|(place, _)| query.after.as_ref().is_none_or(|after| order(place, after).is_gt()));
        let mut page = PageWriter::new(query);
        for (place, key) in places {
            let Some(session) = tables.read(key, EventWindow::NONE) else { continue };
            let states = [&session.session, &session.app, &session.user];
            if !page.takes(states.iter().map(|state| json_bytes(state)).sum()) {
                break;
            }
            page.add(Some(place), Ok(session));
        }
        page.finish()
    }

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let mut tables = self.lock();
        let Some(row) = tables.sessions.get(key) else { return Ok(false) };
        let actual = row.version();
        if let Some(expected) = expect.filter(|expected| *expected != actual) {
            return Err(SessionError::Conflict { key: key.clone(), scope: Scope::Session, expected, actual });
        }
        tables.sessions.remove(key);
        Ok(true)
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let Commit { key, event, delta, expect } = commit;
        let mut tables = self.lock();
        let (app, user) = (ScopeKey::app_of(&key), ScopeKey::user_of(&key));
        let (app_version, user_version) = (tables.shared(&app).version, tables.shared(&user).version);
        let Some(row) = tables.sessions.get_mut(&key) else { return Err(SessionError::NotFound { key }) };
        if let Some(place) = row.events.iter().position(|stored| stored.id == event.id) {
            if row.events[place] != event {
                return Err(SessionError::EventConflict { key, id: event.id.clone() });
            }
            return Ok(Appended { version: place as Version + 1, update_time: row.update_time });
        }
        expect.check(&key, row.version(), user_version, app_version)?;
        row.push(event, &delta.session);
        let appended = Appended { version: row.version(), update_time: row.update_time };
        tables.write(app, &delta.app);
        tables.write(user, &delta.user);
        Ok(appended)
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<StateMap, SessionError> {
        Ok(Arc::unwrap_or_clone(self.lock().shared(scope).state))
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, _time: f64) -> Result<(), SessionError> {
        self.lock().write(scope.clone(), &delta);
        Ok(())
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        let tables = self.lock();
        let scopes = tables.shared.keys().cloned().map(Address::Scope);
        let sessions = tables.sessions.keys().cloned().map(Address::Session);
        let passing = scopes.chain(sessions).filter(|address| after.is_none_or(|after| address > after));
        Ok(passing.take(limit).collect())
    }
}

fn json_bytes(state: &StateMap) -> usize {
    serde_json::to_string(state).expect("JSON has a text").len()
}

impl Row {
    fn version(&self) -> Version {
        self.events.len() as Version
    }

    fn push(&mut self, event: Arc<Event>, delta: &Delta) {
        apply(&mut self.state, delta);
        self.update_time = next_update_time(self.update_time, event.timestamp);
        self.events.push(event);
    }
}

impl Tables {
    fn shared(&self, scope: &ScopeKey) -> Shared {
        self.shared.get(scope).cloned().unwrap_or_default()
    }

    fn write(&mut self, scope: ScopeKey, delta: &Delta) {
        if !delta.is_empty() {
            let shared = self.shared.entry(scope).or_default();
            apply(Arc::make_mut(&mut shared.state), delta);
            shared.version += 1;
        }
    }

    fn read(&self, key: &SessionKey, window: EventWindow) -> Option<StoredSession> {
        let row = self.sessions.get(key)?;
        let (app, user) = (self.shared(&ScopeKey::app_of(key)), self.shared(&ScopeKey::user_of(key)));
        let mut events: Vec<SessionEvent> = (1..)
            .zip(&row.events)
            .map(|(version, event)| SessionEvent { version, event: event.clone() })
            .filter(|event| window.admits(event))
            .collect();
        let first = window.last.map_or(0, |last| events.len().saturating_sub(last));
        events.drain(..first);
        Some(StoredSession {
            key: key.clone(),
            version: row.version(),
            app_version: app.version,
            user_version: user.version,
            update_time: row.update_time,
            session: Arc::new(row.state.clone()),
            app: app.state,
            user: user.state,
            initial: Some(Arc::new(row.initial.clone())),
            events: Arc::new(events),
        })
    }
}
