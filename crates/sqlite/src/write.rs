//! What is written, inside the writer's transaction.
//!
//! A row of a session or of shared state is written once in a transaction, however many events change it.

use rusqlite::types::Value;
use rusqlite::{Connection, params};
use sessile_session::{
    Appended, Commit, Event, EventWindow, NewSession, ScopeKey, SessionError, SessionKey, StoredSession,
    Version,
};
use sessile_state::{Delta, Scope};

use crate::cache::Cache;
use crate::failure::doing;
use crate::layout::Layout;
use crate::read;
use crate::rows::{EVENT_COLUMNS, StateText, event};

/// A transaction of the writer.
pub(crate) struct Batch<'a> {
    connection: &'a Connection,
    layout: Layout,
    cache: &'a mut Cache,
}

/// An event's columns that take work to make; they are made before the writing thread sees it.
pub(crate) struct EventColumns {
    data: String,
    time: Value,
}

impl EventColumns {
    pub(crate) fn new(event: &Event, layout: Layout) -> Result<Self, SessionError> {
        let invalid = |reason: String| SessionError::InvalidEvent { id: event.id.clone(), reason };
        let data = event.to_stored_json().map_err(|error| invalid(error.to_string()))?;
        let time = layout.write_time(event.timestamp);
        let time = time.map_err(|error| invalid(format!("its timestamp cannot be stored: {error}")))?;
        Ok(Self { data, time })
    }
}

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
    /// The transaction must be open.
    pub(crate) fn begin(
        connection: &'a Connection,
        layout: Layout,
        cache: &'a mut Cache,
    ) -> Result<Self, SessionError> {
        cache.begin(connection)?;
        Ok(Self { connection, layout, cache })
    }

    pub(crate) fn append(
        &mut self,
        commit: &Commit,
        columns: &EventColumns,
    ) -> Result<Appended, SessionError> {
        let Commit { key, event, delta, expect } = commit;
        let Some(session) = self.cache.session(self.connection, self.layout, key)? else {
            return Err(SessionError::NotFound { key: key.clone() });
        };
        let (before, update_time) = (session.version, session.update_time);
        let (app, user) = (ScopeKey::app_of(key), ScopeKey::user_of(key));
        let known = |batch: &mut Self, scope: &ScopeKey, needed: bool| match needed {
            true => batch.cache.scope(batch.connection, scope).map(|state| state.version),
            false => Ok(0),
        };
        let user_version = known(self, &user, expect.user.is_some())?;
        let app_version = known(self, &app, expect.app.is_some())?;
        let stale = expect.check(key, before, user_version, app_version);
        let appended = Appended {
            version: before + 1,
            update_time: self.layout.next_update_time(update_time, event.timestamp),
        };
        if stale.is_ok() && self.insert_event(key, event, columns, appended.version)? {
            if let Some(session) = self.cache.session(self.connection, self.layout, key)? {
                session.advance(key, &delta.session, appended.version, appended.update_time)?;
            }
            self.write_scope(&app, &delta.app, event.timestamp)?;
            self.write_scope(&user, &delta.user, event.timestamp)?;
            return Ok(appended);
        }
        match self.stored_event(key, &event.id)? {
            Some(first) if *first.event == **event => Ok(Appended { version: first.version, update_time }),
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
            let columns = EventColumns::new(event, self.layout)?;
            self.insert_event(key, event, &columns, place as Version + 1)?;
        }
        for (scope, delta) in [(ScopeKey::app_of(key), &new.app), (ScopeKey::user_of(key), &new.user)] {
            self.write_scope(&scope, delta, new.time)?;
            if self.layout == Layout::V1 {
                // google-adk needs both rows, also empty ones, to append an event.
                self.cache.scope(self.connection, &scope)?.exist(new.time);
            }
        }
        self.flush()?; // to be read back
        let made = read::get_in(self.connection, self.layout, key, EventWindow::ALL)?;
        made.ok_or_else(|| SessionError::NotFound { key: key.clone() })
    }

    pub(crate) fn delete(&mut self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        let Some(session) = self.cache.session(self.connection, self.layout, key)? else { return Ok(false) };
        let actual = session.version;
        if let Some(expected) = expect.filter(|expected| *expected != actual) {
            return Err(SessionError::Conflict { key: key.clone(), scope: Scope::Session, expected, actual });
        }
        self.connection
            .prepare_cached(DELETE_SESSION)
            .and_then(|mut statement| statement.execute([key.app(), key.user(), key.id()]))
            .map_err(doing("delete a session"))?;
        self.cache.forget_session(key);
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
        self.cache.scope(self.connection, scope)?.change(delta, scope, time)
    }

    /// Writes the rows that changed. Must be called before the commit.
    pub(crate) fn flush(&mut self) -> Result<(), SessionError> {
        self.cache.flush(self.connection, self.layout)
    }

    /// Inserts an event unless its session has one with this id. Tells whether it did.
    fn insert_event(
        &self,
        key: &SessionKey,
        event: &Event,
        EventColumns { data, time }: &EventColumns,
        version: Version,
    ) -> Result<bool, SessionError> {
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
}

fn to_sql(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
