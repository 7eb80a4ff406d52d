mod place;
mod row;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use sessile_state::{Delta, Scope};

use self::place::Place;
use self::row::{ById, Row};
use self::shared::{Remembered, Shared, Source, Values};
use crate::commit::{Appended, Commit, Expect};
use crate::error::SessionError;
use crate::evaluate::{Evaluated, EvaluatedScope, evaluate, evaluate_scope};
use crate::key::SessionKey;
use crate::page::{PageWriter, StoredPage, json_bytes};
use crate::scope_change::{ChangedBy, ScopeChange};
use crate::scope_write::{ScopeKey, ScopeState, ScopeWrite, ScopeWritten};
use crate::store::{Address, EventWindow, ListQuery, NewSession, Store, StoredSession, Version};

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
        let mut row = Row::new(&new);
        for (event, delta) in &new.events {
            row.push(event.clone(), delta);
        }
        let limit = new.max_scope_bytes;
        let size = row.values.size();
        if let Some(limit) = limit.filter(|limit| size > *limit) {
            return Err(SessionError::TooLarge { scope: Scope::Session, size, limit });
        }
        let evaluated = |shared: &Shared, scope: ScopeKey, delta: &Delta| {
            let write = ScopeWrite::unconditional(scope, delta.clone(), new.time);
            evaluate_scope(&write, &|name| shared.values.state.get(name).cloned())
        };
        let for_app = evaluated(&app.shared, ScopeKey::app_of(&new.key), &new.app)?;
        let for_user = evaluated(&user.shared, ScopeKey::user_of(&new.key), &new.user)?;
        app.shared.values.check_size(Scope::App, &for_app.results, limit)?;
        user.shared.values.check_size(Scope::User, &for_user.results, limit)?;
        let source = |change: &Delta| Source::Creation(new.key.clone(), change.clone());
        app.shared.write(&for_app.results, Some(for_app.undo), new.time, limit, || source(&new.app));
        user.shared.write(&for_user.results, Some(for_user.undo), new.time, limit, || source(&new.user));
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
        let app_bytes = json_bytes(&app.shared.values.state);
        let (mut page, mut of_user) = (PageWriter::new(query), None);
        for place in passing {
            let Some(user) = app.users.get(&place.name.user) else { continue };
            let Some(row) = user.sessions.get(&place.name.id) else { continue };
            let shared = Arc::as_ptr(&user.shared.values.state);
            let user_bytes = match of_user {
                Some((known, bytes)) if known == shared => bytes,
                _ => json_bytes(&user.shared.values.state),
            };
            of_user = Some((shared, user_bytes));
            if !page.takes(json_bytes(&row.values.state) + app_bytes + user_bytes) {
                break;
            }
            let key = SessionKey::from_stored(&query.app, &place.name.user, &place.name.id);
            page.add(Some(place.into()), Ok(row.read(&app.shared, &user.shared, key, Arc::default())));
        }
        page.finish()
    }

    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        let Some(app) = self.app(key.app()) else { return Ok(false) };
        let app = &mut *lock(&app);
        let Some(row) = app.row(key) else { return Ok(false) };
        expect.check_session(key, row.incarnation, row.version())?;
        let place = row.place();
        app.by_time.remove(&place);
        if let Some(user) = app.users.get_mut(key.user()) {
            user.by_time.remove(&place);
            user.sessions.remove(key.id());
        }
        Ok(true)
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let missing = || SessionError::NotFound { key: commit.key.clone() };
        let app = self.app(commit.key.app()).ok_or_else(missing)?;
        let App { shared, users, by_time } = &mut *lock(&app);
        let user = users.get_mut(commit.key.user()).ok_or_else(missing)?;
        let row = user.sessions.get_mut(commit.key.id()).ok_or_else(missing)?;
        if let Some((known, version)) = row.by_id.get_key_value(commit.event.id.as_str()) {
            let (event, version) = (known.0.clone(), *version);
            return Ok(row.appended(&commit, event, version, true, shared, &user.shared));
        }
        commit.expect.check_session(&commit.key, row.incarnation, row.version())?;
        commit.expect.check_shared(&commit.key, user.shared.version, shared.version)?;
        // Most commits only set keys: what they come to is what they say, and what undoes them is found on the way.
        let is_plain = commit.guards.is_empty() && !commit.event.actions.state_delta.has_operations();
        let value_of = |values: &Values, name: &str| values.state.get(name).cloned();
        let evaluated = match is_plain {
            true => None,
            false => Some(evaluate(
                &commit,
                &|name| value_of(&row.values, name),
                &|name| value_of(&user.shared.values, name),
                &|name| value_of(&shared.values, name),
            )?),
        };
        let delta = &commit.delta;
        let (event, own, of_user, of_app) = match &evaluated {
            None => (&commit.event, &delta.session, &delta.user, &delta.app),
            Some(it) => (&it.event, &it.session.results, &it.user.results, &it.app.results),
        };
        let limit = commit.max_scope_bytes;
        row.values.check_size(Scope::Session, own, limit)?;
        user.shared.values.check_size(Scope::User, of_user, limit)?;
        shared.values.check_size(Scope::App, of_app, limit)?;

        let (event, before, time) = (event.clone(), row.place(), event.time());
        row.by_id.insert(ById(event.clone()), row.version() + 1);
        row.push_new(event.clone(), own, limit);
        let source = || Source::Event(commit.key.clone(), event.clone());
        let undo_of =
            |scope: fn(&Evaluated) -> &EvaluatedScope| evaluated.as_ref().map(|it| scope(it).undo.clone());
        shared.write(of_app, undo_of(|it| &it.app), time, limit, source);
        user.shared.write(of_user, undo_of(|it| &it.user), time, limit, source);
        for places in [by_time, &mut user.by_time] {
            places.remove(&before);
            places.insert(row.place());
        }
        let version = row.version();
        Ok(row.appended(&commit, event, version, false, shared, &user.shared))
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
        let (ScopeKey::App(app) | ScopeKey::User(app, _)) = scope;
        let Some(app) = self.app(app) else { return Ok(ScopeState::default()) };
        Ok(lock(&app).shared(scope).map_or_else(ScopeState::default, Shared::read))
    }

    async fn write_scope(&self, write: ScopeWrite) -> Result<ScopeWritten, SessionError> {
        let (ScopeKey::App(app) | ScopeKey::User(app, _)) = &write.scope;
        let app = self.app_or_new(app);
        let app = &mut *lock(&app);
        let shared = match &write.scope {
            ScopeKey::App(_) => &mut app.shared,
            ScopeKey::User(_, user) => &mut app.users.entry(user.clone()).or_default().shared,
        };
        let newest_first = || shared.changes.iter().rev();
        let of_request =
            |change: &Remembered| Some((change.version, change.of_request(&write.request)?.clone()));
        if let Some((version, known)) = newest_first().find_map(of_request) {
            let mut state = (*shared.values.state).clone();
            for later in newest_first().take_while(|change| change.version > version) {
                let later = later.told(write.scope.scope());
                later.undo(&mut state).map_err(crate::error::doing("compute an earlier state"))?;
            }
            return Ok(ScopeWritten { version, state: Arc::new(state), known: Some(known) });
        }
        write.check_version(shared.version)?;
        let evaluated = evaluate_scope(&write, &|name| shared.values.state.get(name).cloned())?;
        shared.values.check_size(write.scope.scope(), &evaluated.results, write.max_scope_bytes)?;
        let source = || Source::Request(ChangedBy::request(&write), write.delta.clone());
        shared.write(&evaluated.results, Some(evaluated.undo), write.time, write.max_scope_bytes, source);
        let ScopeState { version, state } = shared.read();
        Ok(ScopeWritten { version, state, known: None })
    }

    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        after: Version,
        limit: usize,
    ) -> Result<Vec<ScopeChange>, SessionError> {
        let (ScopeKey::App(app) | ScopeKey::User(app, _)) = scope;
        let Some(app) = self.app(app) else { return Ok(Vec::new()) };
        let app = lock(&app);
        let changes = app.shared(scope).into_iter().flat_map(|shared| shared.changes.iter().rev());
        Ok(changes
            .take_while(|change| change.version > after)
            .take(limit)
            .map(|change| change.told(scope.scope()))
            .collect())
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

    async fn close(&self) -> Result<(), SessionError> {
        Ok(())
    }
}

impl App {
    fn shared(&self, scope: &ScopeKey) -> Option<&Shared> {
        match scope {
            ScopeKey::App(_) => Some(&self.shared),
            ScopeKey::User(_, user) => self.users.get(user).map(|user| &user.shared),
        }
    }

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
