mod place;
mod row;
mod shared;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem::take;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use async_trait::async_trait;
use sessile_state::{Delta, Scope};

use self::place::{Name, Place};
use self::row::{ById, Row};
use self::shared::{Shared, Source, Values};
use crate::commit::{Appended, Commit, Expect};
use crate::error::SessionError;
use crate::evaluate::{evaluate, evaluate_scope};
use crate::key::{Address, ScopeKey, SessionKey};
use crate::page::{ListQuery, PageWriter, StoredPage, json_bytes};
use crate::scope_change::{ChangedBy, ScopeChange};
use crate::scope_write::{ScopeState, ScopeWrite, ScopeWritten};
use crate::store::{Store, TrimmedChanges};
use crate::stored_session::{NewSession, StoredSession};
use crate::window::{ChangeWindow, EventWindow};

/// Keeps sessions in memory; they are lost when it is dropped. Events are shared with readers, not
/// copied.
#[derive(Default)]
pub struct MemoryStore {
    /// One lock per application, so that applications do not contend. Std locks, because they are
    /// never held across an `.await`.
    apps: RwLock<BTreeMap<String, Arc<Mutex<App>>>>,
}

#[derive(Default)]
struct App {
    shared: Shared,
    users: BTreeMap<String, User>,
    by_time: BTreeSet<Place>,
    /// Sessions whose position in the lists by time is out of date. Moving them is deferred until a
    /// list is read or many have to be moved, so that a session with many appends is moved once.
    moved: Vec<Arc<Name>>,
}

/// How many sessions may have an outdated position before they are moved.
const MOST_MOVED: usize = 128;

#[derive(Default)]
struct User {
    shared: Shared,
    sessions: BTreeMap<String, Row>,
    by_time: BTreeSet<Place>,
}

/// Without its content: state and events may hold secrets.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The application, if something was ever written to it.
    fn app(&self, app: &str) -> Option<Arc<Mutex<App>>> {
        self.apps.read().unwrap_or_else(PoisonError::into_inner).get(app).cloned()
    }

    /// The application, created if it does not exist.
    fn app_or_new(&self, app: &str) -> Arc<Mutex<App>> {
        self.app(app).unwrap_or_else(|| {
            let mut apps = self.apps.write().unwrap_or_else(PoisonError::into_inner);
            apps.entry(app.to_owned()).or_default().clone()
        })
    }
}

/// Whether trimming visits a scope after another one: an application, then its users.
fn is_later(scope: &ScopeKey, after: Option<&ScopeKey>) -> bool {
    let place = |scope: &ScopeKey| match scope {
        ScopeKey::App(app) => (app.clone(), None),
        ScopeKey::User(app, user) => (app.clone(), Some(user.clone())),
    };
    after.is_none_or(|after| place(scope) > place(after))
}

/// Poisoning is ignored: no code that can panic runs under the lock, so the data is consistent.
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
        drop(app.shared.write(&for_app.results, Some(for_app.undo), new.time, limit, || source(&new.app)));
        drop(
            user.shared.write(&for_user.results, Some(for_user.undo), new.time, limit, || source(&new.user)),
        );
        let place = row.move_in_lists();
        app.by_time.insert(place.clone());
        user.by_time.insert(place);
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
        let mut app = lock(&app);
        app.move_sessions();
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
        let place = row.listed_place();
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
        let mut app = lock(&app);
        if app.moved.len() >= MOST_MOVED {
            app.move_sessions();
        }
        let App { shared, users, moved, .. } = &mut *app;
        let user = users.get_mut(commit.key.user()).ok_or_else(missing)?;
        let row = user.sessions.get_mut(commit.key.id()).ok_or_else(missing)?;
        if let Some((known, version)) = row.by_id.get_key_value(commit.event.id.as_str()) {
            let (event, version) = (known.0.clone(), *version);
            return Ok(row.appended(commit.answer, event, version, Some(commit.event), shared, &user.shared));
        }
        commit.expect.check_session(&commit.key, row.incarnation, row.version())?;
        commit.expect.check_shared(&commit.key, user.shared.version, shared.version)?;
        // Fast path: most commits only set keys, so nothing needs to be computed, and the undo
        // information is collected while they are applied.
        let is_plain = commit.guards.is_empty() && !commit.event.actions.state_delta.has_operations();
        let value_of = |values: &Values, name: &str| values.state.get(name).cloned();
        let mut evaluated = match is_plain {
            true => None,
            false => Some(evaluate(
                &commit,
                &|name| value_of(&row.values, name),
                &|name| value_of(&user.shared.values, name),
                &|name| value_of(&shared.values, name),
            )?),
        };
        let undo = evaluated.as_mut().map(|it| (take(&mut it.app.undo), take(&mut it.user.undo)));
        let (undo_of_app, undo_of_user) = undo.unzip();
        let delta = &commit.delta;
        let (own, of_user, of_app) = match &evaluated {
            None => (&delta.session, &delta.user, &delta.app),
            Some(it) => (&it.session.results, &it.user.results, &it.app.results),
        };
        let limit = commit.max_scope_bytes;
        row.values.check_size(Scope::Session, own, limit)?;
        user.shared.values.check_size(Scope::User, of_user, limit)?;
        shared.values.check_size(Scope::App, of_app, limit)?;

        let event = match &evaluated {
            None => commit.event,
            Some(it) => it.committed(commit.event),
        };
        let time = event.time();
        if !row.is_moved() {
            moved.push(row.name.clone());
        }
        row.by_id.insert(ById(event.clone()), row.version() + 1);
        row.push_new(event.clone(), own, limit);
        let source = || Source::Event(commit.key.clone(), event.clone());
        let forgotten = [
            shared.write(of_app, undo_of_app, time, limit, source),
            user.shared.write(of_user, undo_of_user, time, limit, source),
        ];
        let version = row.version();
        let appended = row.appended(commit.answer, event, version, None, shared, &user.shared);
        drop(app);
        drop(forgotten); // without the lock
        Ok(appended)
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
        let known =
            newest_first().find_map(|change| Some((change.version, change.of_request(&write.request)?)));
        if let Some((version, (known, overwrote))) = known {
            let (known, overwrote) = (Some(known.clone()), overwrote.clone());
            let mut state = (*shared.values.state).clone();
            for later in newest_first().take_while(|change| change.version > version) {
                let later = later.to_change(write.scope.scope());
                later.undo(&mut state).map_err(crate::error::doing("compute an earlier state"))?;
            }
            return Ok(ScopeWritten { version, state: Arc::new(state), known, overwrote });
        }
        write.check_version(shared.version)?;
        let evaluated = evaluate_scope(&write, &|name| shared.values.state.get(name).cloned())?;
        shared.values.check_size(write.scope.scope(), &evaluated.results, write.max_scope_bytes)?;
        let overwrote = evaluated.overwrote;
        let source = || Source::Request(ChangedBy::request(&write), write.delta.clone(), overwrote.clone());
        drop(shared.write(
            &evaluated.results,
            Some(evaluated.undo),
            write.time,
            write.max_scope_bytes,
            source,
        ));
        let ScopeState { version, state } = shared.read();
        Ok(ScopeWritten { version, state, known: None, overwrote })
    }

    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError> {
        let (ScopeKey::App(app) | ScopeKey::User(app, _)) = scope;
        let Some(app) = self.app(app) else { return Ok(Vec::new()) };
        let app = lock(&app);
        Ok(app.shared(scope).map_or_else(Vec::new, |shared| shared.changes(scope.scope(), window)))
    }

    async fn trim_changes(
        &self,
        before: f64,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<TrimmedChanges, SessionError> {
        let first = after.map_or("", |(ScopeKey::App(app) | ScopeKey::User(app, _))| app).to_owned();
        let apps: Vec<_> = {
            let apps = self.apps.read().unwrap_or_else(PoisonError::into_inner);
            apps.range(first..).map(|(name, app)| (name.clone(), app.clone())).collect()
        };
        let mut trimmed = TrimmedChanges::default();
        let mut looked_at = 0;
        for (name, app) in apps {
            let mut app = lock(&app);
            for scope in app.scopes(&name).into_iter().filter(|scope| is_later(scope, after)) {
                if looked_at == limit || trimmed.removed >= limit {
                    return Ok(trimmed);
                }
                looked_at += 1;
                if let Some(shared) = app.shared_mut(&scope) {
                    trimmed.removed += shared.trim(before, limit - trimmed.removed);
                }
                trimmed.next = Some(scope);
            }
        }
        Ok(TrimmedChanges { next: None, ..trimmed })
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

    fn shared_mut(&mut self, scope: &ScopeKey) -> Option<&mut Shared> {
        match scope {
            ScopeKey::App(_) => Some(&mut self.shared),
            ScopeKey::User(_, user) => self.users.get_mut(user).map(|user| &mut user.shared),
        }
    }

    /// The addresses of the shared state of this application and its users.
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

    /// Brings the lists by time up to date.
    fn move_sessions(&mut self) {
        for name in take(&mut self.moved) {
            let Some(user) = self.users.get_mut(&name.user) else { continue };
            let Some(row) = user.sessions.get_mut(&name.id) else { continue }; // it was deleted
            let before = row.listed_place();
            let place = row.move_in_lists();
            for places in [&mut self.by_time, &mut user.by_time] {
                places.remove(&before);
                places.insert(place.clone());
            }
        }
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
