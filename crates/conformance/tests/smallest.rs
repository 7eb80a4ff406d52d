//! The smallest store that keeps the contract: everything in one place, behind one lock.
//!
//! It is slow, and forgets everything; it is here to be read. `docs/adding-a-store.md` walks
//! through it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use sessile_session::{
    Address, Appended, ChangeWindow, ChangedBy, Commit, Evaluated, EvaluatedScope, Event, EventWindow,
    Expect, Incarnation, ListPlace, ListQuery, NewSession, PageWriter, ScopeChange, ScopeKey, ScopeState,
    ScopeWrite, ScopeWritten, SessionError, SessionEvent, SessionKey, StateMap, Store, StoredPage,
    StoredSession, TrimmedChanges, Version, apply, doing, evaluate, evaluate_scope, next_update_time,
};
use sessile_state::{Delta, Scope};

fn main() -> ExitCode {
    sessile_conformance::run(|| async { Arc::new(Smallest::default()) as _ })
}

/// The store.
#[derive(Default)]
struct Smallest {
    /// One lock is one transaction: a caller that holds it sees all of a commit or nothing.
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    sessions: BTreeMap<SessionKey, Row>,
    shared: BTreeMap<ScopeKey, Shared>,
}

struct Row {
    incarnation: Incarnation,
    update_time: f64,
    initial: StateMap,
    state: StateMap,
    /// In the order of their commits; the version of each is its place, counted from one.
    events: Vec<Arc<Event>>,
}

/// The state of an application or a user, how often it was written, and each change of it, oldest
/// first.
#[derive(Clone, Default)]
struct Shared {
    version: Version,
    state: Arc<StateMap>,
    changes: Vec<ScopeChange>,
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
            incarnation: new.incarnation,
            update_time: new.time,
            initial: new.session.clone(),
            state: new.session,
            events: Vec::new(),
        };
        for (event, delta) in new.events {
            row.push(event, &delta);
        }
        check_size(Scope::Session, &StateMap::new(), &row.state, new.max_scope_bytes)?;
        let write = |scope, delta| ScopeWrite {
            max_scope_bytes: new.max_scope_bytes,
            ..ScopeWrite::unconditional(scope, delta, new.time)
        };
        let app = write(ScopeKey::app_of(&new.key), new.app);
        let user = write(ScopeKey::user_of(&new.key), new.user);
        let (for_app, for_user) = (tables.evaluate(&app)?, tables.evaluate(&user)?);
        let by = ChangedBy::creation(&new.key);
        tables.write(app.scope, &app.delta, for_app, &by, new.time);
        tables.write(user.scope, &user.delta, for_user, &by, new.time);
        tables.sessions.insert(new.key.clone(), row);
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

    async fn delete(&self, key: &SessionKey, expect: Expect) -> Result<bool, SessionError> {
        let mut tables = self.lock();
        let Some(row) = tables.sessions.get(key) else { return Ok(false) };
        expect.check_session(key, row.incarnation, row.version())?;
        tables.sessions.remove(key);
        Ok(true)
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        let mut tables = self.lock();
        let key = &commit.key;
        let (app_key, user_key) = (ScopeKey::app_of(key), ScopeKey::user_of(key));
        let (app, user) = (tables.shared(&app_key), tables.shared(&user_key));
        let Some(row) = tables.sessions.get_mut(key) else {
            return Err(SessionError::NotFound { key: key.clone() });
        };
        if let Some(place) = row.events.iter().position(|stored| stored.id == commit.event.id) {
            return tables.appended(&commit, place, true);
        }
        commit.expect.check_session(key, row.incarnation, row.version())?;
        commit.expect.check_shared(key, user.version, app.version)?;
        let evaluated = evaluate(
            &commit,
            &|name| row.state.get(name).cloned(),
            &|name| user.state.get(name).cloned(),
            &|name| app.state.get(name).cloned(),
        )?;
        let event = evaluated.committed(commit.event.clone());
        let Evaluated { session: for_session, user: for_user, app: for_app, .. } = evaluated;
        for (scope, state, results) in [
            (Scope::Session, &row.state, &for_session.results),
            (Scope::User, &*user.state, &for_user.results),
            (Scope::App, &*app.state, &for_app.results),
        ] {
            let mut after = state.clone();
            apply(&mut after, results);
            check_size(scope, state, &after, commit.max_scope_bytes)?;
        }
        // Nothing was written so far, and nothing is refused from here on.
        let (place, by, time) = (row.events.len(), ChangedBy::event(key, &event), event.time());
        row.push(event, &for_session.results);
        tables.write(app_key, &commit.delta.app, for_app, &by, time);
        tables.write(user_key, &commit.delta.user, for_user, &by, time);
        tables.appended(&commit, place, false)
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
        let Shared { version, state, .. } = self.lock().shared(scope);
        Ok(ScopeState { version, state })
    }

    async fn write_scope(&self, write: ScopeWrite) -> Result<ScopeWritten, SessionError> {
        let mut tables = self.lock();
        let Shared { version, mut state, changes } = tables.shared(&write.scope);
        if let Some(place) = changes.iter().position(|change| change.by.is_request(&write.request)) {
            // The state that the first write led to is computed backwards from the current one.
            for later in changes[place + 1..].iter().rev() {
                later.undo(Arc::make_mut(&mut state)).map_err(doing("compute an earlier state"))?;
            }
            let known = Some(changes[place].change.clone());
            let overwrote = changes[place].overwrote.clone();
            return Ok(ScopeWritten { version: changes[place].version, state, known, overwrote });
        }
        write.check_version(version)?;
        let evaluated = tables.evaluate(&write)?;
        let (by, overwrote) = (ChangedBy::request(&write), evaluated.overwrote.clone());
        tables.write(write.scope.clone(), &write.delta, evaluated, &by, write.time);
        let Shared { version, state, .. } = tables.shared(&write.scope);
        Ok(ScopeWritten { version, state, known: None, overwrote })
    }

    async fn scope_changes(
        &self,
        scope: &ScopeKey,
        window: ChangeWindow,
    ) -> Result<Vec<ScopeChange>, SessionError> {
        let mut changes = self.lock().shared(scope).changes;
        changes.retain(|change| window.admits(change.version));
        if !window.oldest_first {
            changes.reverse();
        }
        changes.truncate(window.limit);
        Ok(changes)
    }

    async fn trim_changes(
        &self,
        before: f64,
        after: Option<&ScopeKey>,
        limit: usize,
    ) -> Result<TrimmedChanges, SessionError> {
        let mut tables = self.lock();
        let mut trimmed = TrimmedChanges::default();
        let later = tables.shared.iter_mut().filter(|(scope, _)| after.is_none_or(|after| *scope > after));
        for (looked_at, (scope, shared)) in later.enumerate() {
            if looked_at == limit || trimmed.removed >= limit {
                return Ok(trimmed);
            }
            let old = shared.changes.iter().take_while(|change| change.time < before).count();
            let removed = old.min(shared.changes.len().saturating_sub(1)).min(limit - trimmed.removed);
            shared.changes.drain(..removed);
            trimmed = TrimmedChanges { removed: trimmed.removed + removed, next: Some(scope.clone()) };
        }
        Ok(TrimmedChanges { next: None, ..trimmed })
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        let tables = self.lock();
        let scopes = tables.shared.keys().cloned().map(Address::Scope);
        let sessions = tables.sessions.keys().cloned().map(Address::Session);
        let passing = scopes.chain(sessions).filter(|address| after.is_none_or(|after| address > after));
        Ok(passing.take(limit).collect())
    }

    async fn close(&self) -> Result<(), SessionError> {
        Ok(())
    }
}

/// Refuses a state that is larger than the limit, unless it is no larger than before.
fn check_size(
    scope: Scope,
    before: &StateMap,
    after: &StateMap,
    limit: Option<usize>,
) -> Result<(), SessionError> {
    let size = json_bytes(after);
    match limit.filter(|limit| size > *limit && size > json_bytes(before)) {
        Some(limit) => Err(SessionError::TooLarge { scope, size, limit }),
        None => Ok(()),
    }
}

fn json_bytes(state: &StateMap) -> usize {
    state.iter().map(|(key, value)| key.len() + value.json_size()).sum()
}

impl Row {
    fn version(&self) -> Version {
        self.events.len() as Version
    }

    fn push(&mut self, event: Arc<Event>, results: &Delta) {
        apply(&mut self.state, results);
        self.update_time = next_update_time(self.update_time, event.time());
        self.events.push(event);
    }
}

impl Tables {
    fn shared(&self, scope: &ScopeKey) -> Shared {
        self.shared.get(scope).cloned().unwrap_or_default()
    }

    /// Computes the results of a write of shared state, without writing anything.
    fn evaluate(&self, write: &ScopeWrite) -> Result<EvaluatedScope, SessionError> {
        let before = self.shared(&write.scope).state;
        let evaluated = evaluate_scope(write, &|name| before.get(name).cloned())?;
        let mut after = (*before).clone();
        apply(&mut after, &evaluated.results);
        check_size(write.scope.scope(), &before, &after, write.max_scope_bytes)?;
        Ok(evaluated)
    }

    /// Writes the results, and records the change in the history of the scope.
    fn write(
        &mut self,
        scope: ScopeKey,
        change: &Delta,
        evaluated: EvaluatedScope,
        by: &ChangedBy,
        time: f64,
    ) {
        let EvaluatedScope { results, undo, overwrote } = evaluated;
        if !results.is_empty() {
            let Shared { version, state, changes } = self.shared.entry(scope).or_default();
            apply(Arc::make_mut(state), &results);
            *version += 1;
            changes.push(ScopeChange {
                version: *version,
                time,
                by: by.clone(),
                change: change.clone(),
                undo,
                overwrote,
            });
        }
    }

    /// The response to a commit whose event has this index.
    fn appended(&self, commit: &Commit, place: usize, is_known: bool) -> Result<Appended, SessionError> {
        let missing = || SessionError::NotFound { key: commit.key.clone() };
        let stored = self.read(&commit.key, EventWindow::ALL).ok_or_else(missing)?;
        let since = commit.answer.since.map(|since| match since.incarnation == stored.incarnation {
            true => since.version,
            false => 0, // another session was meant, so no event of this one is known
        });
        let between =
            stored.events[..place].iter().filter(|event| since.is_some_and(|since| event.version > since));
        Ok(Appended {
            is_known,
            sent: is_known.then(|| commit.event.clone()),
            version: stored.events[place].version,
            update_time: stored.update_time,
            incarnation: stored.incarnation,
            event: stored.events[place].event.clone(),
            between: between.cloned().collect(),
            state: commit.answer.state.then(|| (&stored).into()),
        })
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
            incarnation: row.incarnation,
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
