//! What is written, inside the writer's transaction.
//!
//! Shared state is read once and written once in a transaction, however many events change it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, OptionalExtension, params};
use sessile_session::{
    Appended, Commit, Event, EventWindow, NewSession, ScopeKey, SessionError, SessionKey, StoredSession,
    Version,
};
use sessile_state::{Delta, Scope};

use crate::failure::doing;
use crate::layout::Layout;
use crate::read;
use crate::rows::{EVENT_COLUMNS, StateText, corrupt, event};

/// A transaction of the writer.
pub(crate) struct Batch<'a> {
    connection: &'a Connection,
    layout: Layout,
    scopes: HashMap<ScopeKey, SharedState>,
}

/// State that sessions share, as this transaction leaves it.
struct SharedState {
    version: Version,
    state: StateText,
    time: f64,
    changed: bool,
}

const SELECT_SESSION: &str = "
    SELECT state, update_time, sessile_version FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND id = ?3
";
const UPDATE_SESSION: &str = "
    UPDATE sessions SET state = ?4, update_time = ?5, sessile_version = ?6
     WHERE app_name = ?1 AND user_id = ?2 AND id = ?3
";
const TOUCH_SESSION: &str = "
    UPDATE sessions SET update_time = ?4, sessile_version = ?5 WHERE app_name = ?1 AND user_id = ?2 AND id = ?3
";
const INSERT_SESSION: &str = "
    INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time, sessile_version, sessile_initial)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT DO NOTHING
";
const INSERT_EVENT: &str = "
    INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data, sessile_seq)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (app_name, user_id, session_id, id) DO NOTHING
";
const DELETE_SESSION: &str = "DELETE FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND id = ?3";

impl<'a> Batch<'a> {
    pub(crate) fn new(connection: &'a Connection, layout: Layout) -> Self {
        Self { connection, layout, scopes: HashMap::new() }
    }

    pub(crate) fn append(&mut self, commit: &Commit) -> Result<Appended, SessionError> {
        let Commit { key, event, delta, expect } = commit;
        let Some(session) = self.session(key)? else {
            return Err(SessionError::NotFound { key: key.clone() });
        };
        let (app, user) = (ScopeKey::app_of(key), ScopeKey::user_of(key));
        let known = |batch: &mut Self, scope: &ScopeKey, needed: bool| match needed {
            true => batch.scope(scope).map(|state| state.version),
            false => Ok(0),
        };
        let user_version = known(self, &user, expect.user.is_some())?;
        let app_version = known(self, &app, expect.app.is_some())?;
        let stale = expect.check(key, session.version, user_version, app_version);
        let appended = Appended {
            version: session.version + 1,
            update_time: self.layout.next_update_time(session.update_time, event.timestamp),
        };
        if stale.is_ok() && self.insert_event(key, event, appended.version)? {
            self.write_session(key, session, &delta.session, appended)?;
            self.write_scope(&app, &delta.app, event.timestamp)?;
            self.write_scope(&user, &delta.user, event.timestamp)?;
            return Ok(appended);
        }
        match self.stored_event(key, &event.id)? {
            Some(first) if *first.event == **event => {
                Ok(Appended { version: first.version, update_time: session.update_time })
            }
            Some(_) => Err(SessionError::EventConflict { key: key.clone(), id: event.id.clone() }),
            None => stale.map(|()| appended),
        }
    }

    pub(crate) fn create(&mut self, new: &NewSession) -> Result<StoredSession, SessionError> {
        let key = &new.key;
        let text = |state: &StateText| state.to_text().map_err(doing("write a session's state"));
        let mut state = StateText::default();
        let initial: Delta = new.session.iter().map(|(key, value)| (key, value.clone())).collect();
        state.apply(&initial).map_err(doing("write a session's state"))?;
        let initial = text(&state)?;
        let mut update_time = self.layout.round(new.time);
        for (event, delta) in &new.events {
            state.apply(delta).map_err(doing("write a session's state"))?;
            update_time = self.layout.next_update_time(update_time, event.timestamp);
        }
        let inserted = self
            .connection
            .prepare_cached(INSERT_SESSION)
            .and_then(|mut statement| {
                statement.execute(params![
                    key.app(),
                    key.user(),
                    key.id(),
                    text(&state).map_err(to_sql)?,
                    self.layout.write_time(new.time).map_err(to_sql)?,
                    self.layout.write_time(update_time).map_err(to_sql)?,
                    new.events.len(),
                    initial,
                ])
            })
            .map_err(doing("create a session"))?;
        if inserted == 0 {
            return Err(SessionError::AlreadyExists { key: key.clone() });
        }
        for (place, (event, _)) in new.events.iter().enumerate() {
            self.insert_event(key, event, place as Version + 1)?;
        }
        for (scope, delta) in [(ScopeKey::app_of(key), &new.app), (ScopeKey::user_of(key), &new.user)] {
            self.write_scope(&scope, delta, new.time)?;
            if self.layout == Layout::V1 {
                // google-adk needs both rows, also empty ones, to append an event.
                self.scope(&scope)?.exist(new.time);
            }
        }
        self.flush()?; // to be read back
        let made = read::get_in(self.connection, self.layout, key, EventWindow::ALL)?;
        made.ok_or_else(|| SessionError::NotFound { key: key.clone() })
    }

    pub(crate) fn delete(&mut self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let Some(session) = self.session(key)? else { return Ok(false) };
        let actual = session.version;
        if let Some(expected) = expect.filter(|expected| *expected != actual) {
            return Err(SessionError::Conflict { key: key.clone(), scope: Scope::Session, expected, actual });
        }
        self.connection
            .prepare_cached(DELETE_SESSION)
            .and_then(|mut statement| statement.execute([key.app(), key.user(), key.id()]))
            .map_err(doing("delete a session"))?;
        Ok(true)
    }

    pub(crate) fn write_scope(
        &mut self,
        scope: &ScopeKey,
        delta: &Delta,
        time: f64,
    ) -> Result<(), SessionError> {
        if delta.is_empty() {
            return Ok(());
        }
        let shared = self.scope(scope)?;
        shared.state.apply_shared(delta, scope.scope()).map_err(doing("write shared state"))?;
        shared.version += 1;
        shared.time = time;
        shared.changed = true;
        Ok(())
    }

    /// Writes the shared state that changed. Must be called before the commit.
    pub(crate) fn flush(&mut self) -> Result<(), SessionError> {
        for (scope, shared) in self.scopes.iter_mut().filter(|(_, shared)| shared.changed) {
            let state = shared.state.to_text().map_err(doing("write shared state"))?;
            let time = self.layout.write_time(shared.time).map_err(doing("write a time"))?;
            let written = match scope {
                ScopeKey::App(app) => self
                    .connection
                    .prepare_cached(UPSERT_APP)
                    .and_then(|mut statement| statement.execute(params![app, state, time, shared.version])),
                ScopeKey::User(app, user) => {
                    self.connection.prepare_cached(UPSERT_USER).and_then(|mut statement| {
                        statement.execute(params![app, user, state, time, shared.version])
                    })
                }
            };
            written.map_err(doing("write shared state"))?;
            shared.changed = false;
        }
        Ok(())
    }

    /// Inserts an event unless its session has one with this id. Tells whether it did.
    fn insert_event(&self, key: &SessionKey, event: &Event, version: Version) -> Result<bool, SessionError> {
        let data = event.to_stored_json().map_err(|error| SessionError::InvalidEvent {
            id: event.id.clone(),
            reason: error.to_string(),
        })?;
        let time = self.layout.write_time(event.timestamp).map_err(|error| SessionError::InvalidEvent {
            id: event.id.clone(),
            reason: format!("its timestamp cannot be stored: {error}"),
        })?;
        let (app, user, id) = (key.app(), key.user(), key.id());
        let inserted = self
            .connection
            .prepare_cached(INSERT_EVENT)
            .and_then(|mut statement| {
                statement.execute(params![event.id, app, user, id, event.invocation_id, time, data, version])
            })
            .map_err(doing("insert an event"))?;
        Ok(inserted == 1)
    }

    fn stored_event(
        &self,
        key: &SessionKey,
        id: &str,
    ) -> Result<Option<sessile_session::SessionEvent>, SessionError> {
        let query = format!(
            "SELECT {EVENT_COLUMNS} FROM events WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3 AND id = ?4"
        );
        let mut statement = self.connection.prepare_cached(&query).map_err(doing("read an event"))?;
        let mut rows =
            statement.query([key.app(), key.user(), key.id(), id]).map_err(doing("read an event"))?;
        let row = rows.next().map_err(doing("read an event"))?;
        row.map(|row| event(row, key, self.layout)).transpose()
    }

    fn session(&self, key: &SessionKey) -> Result<Option<SessionRow>, SessionError> {
        let mut statement =
            self.connection.prepare_cached(SELECT_SESSION).map_err(doing("read a session"))?;
        let mut rows = statement.query([key.app(), key.user(), key.id()]).map_err(doing("read a session"))?;
        let Some(row) = rows.next().map_err(doing("read a session"))? else { return Ok(None) };
        let address = key.to_string();
        let bad = |column: &'static str, error: rusqlite::Error| corrupt("sessions", column, &address, error);
        let time = row.get_ref(1).map_err(|error| bad("update_time", error))?;
        let version: i64 = row.get(2).map_err(|error| bad("sessile_version", error))?;
        Ok(Some(SessionRow {
            state: row.get(0).map_err(|error| bad("state", error))?,
            update_time: self
                .layout
                .read_time(time)
                .map_err(|error| corrupt("sessions", "update_time", &address, error))?,
            version: version.unsigned_abs(),
        }))
    }

    fn write_session(
        &self,
        key: &SessionKey,
        session: SessionRow,
        delta: &Delta,
        appended: Appended,
    ) -> Result<(), SessionError> {
        let time = self.layout.write_time(appended.update_time).map_err(doing("write a time"))?;
        let (app, user, id, version) = (key.app(), key.user(), key.id(), appended.version);
        let written = if delta.is_empty() {
            self.connection
                .prepare_cached(TOUCH_SESSION)
                .and_then(|mut statement| statement.execute(params![app, user, id, time, version]))
        } else {
            let mut state = StateText::parse(&session.state, "sessions", &key.to_string())?;
            state.apply(delta).map_err(doing("write a session's state"))?;
            let text = state.to_text().map_err(doing("write a session's state"))?;
            self.connection
                .prepare_cached(UPDATE_SESSION)
                .and_then(|mut statement| statement.execute(params![app, user, id, text, time, version]))
        };
        written.map(drop).map_err(doing("update a session"))
    }

    /// Shared state as this transaction sees it.
    fn scope(&mut self, scope: &ScopeKey) -> Result<&mut SharedState, SessionError> {
        match self.scopes.entry(scope.clone()) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(SharedState::read(self.connection, scope)?)),
        }
    }
}

const SELECT_APP: &str = "SELECT state, sessile_version FROM app_states WHERE app_name = ?1";
const SELECT_USER: &str =
    "SELECT state, sessile_version FROM user_states WHERE app_name = ?1 AND user_id = ?2";
const UPSERT_APP: &str = "
    INSERT INTO app_states (app_name, state, update_time, sessile_version) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (app_name) DO UPDATE SET
        state = excluded.state, update_time = excluded.update_time, sessile_version = excluded.sessile_version
";
const UPSERT_USER: &str = "
    INSERT INTO user_states (app_name, user_id, state, update_time, sessile_version) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (app_name, user_id) DO UPDATE SET
        state = excluded.state, update_time = excluded.update_time, sessile_version = excluded.sessile_version
";

impl SharedState {
    fn read(connection: &Connection, scope: &ScopeKey) -> Result<Self, SessionError> {
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (table, row, found): (_, _, Result<Option<(String, i64)>, _>) = match scope {
            ScopeKey::App(app) => {
                let found = connection
                    .prepare_cached(SELECT_APP)
                    .and_then(|mut s| s.query_row([app], columns).optional());
                ("app_states", app.clone(), found)
            }
            ScopeKey::User(app, user) => {
                let found = connection
                    .prepare_cached(SELECT_USER)
                    .and_then(|mut s| s.query_row([app, user], columns).optional());
                ("user_states", format!("{app}/{user}"), found)
            }
        };
        let (state, version) = match found.map_err(|error| corrupt(table, "state", &row, error))? {
            Some((text, version)) => (StateText::parse(&text, table, &row)?, version.unsigned_abs()),
            None => (StateText::default(), 0),
        };
        Ok(Self { version, state, time: 0.0, changed: false })
    }

    /// Makes sure that there is a row.
    fn exist(&mut self, time: f64) {
        if self.version == 0 {
            (self.version, self.time, self.changed) = (1, time, true);
        }
    }
}

struct SessionRow {
    state: String,
    update_time: f64,
    version: Version,
}

fn to_sql(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
