//! What the writing thread knows of the rows it wrote last, so that it need not read them again.
//!
//! SQLite tells cheaply whether another connection changed the file (`PRAGMA data_version`); then
//! everything is forgotten. So it is when a transaction fails.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, OptionalExtension, params};
use sessile_session::{ScopeKey, SessionError, SessionKey, Version};
use sessile_state::Delta;

use crate::failure::doing;
use crate::layout::Layout;
use crate::rows::{StateText, corrupt};

/// How much may be remembered, in bytes of JSON and in rows.
const MOST_BYTES: usize = 16 << 20;
const MOST_ROWS: usize = 1024;

#[derive(Default)]
pub(crate) struct Cache {
    /// SQLite's number of the file's content that the rows below are from.
    content: Option<i64>,
    sessions: HashMap<SessionKey, SessionRow>,
    scopes: HashMap<ScopeKey, SharedState>,
    /// The length of all texts that were read or written since everything was forgotten last.
    bytes: usize,
}

/// A session as the open transaction leaves it.
pub(crate) struct SessionRow {
    pub(crate) version: Version,
    pub(crate) update_time: f64,
    state: State,
    changed: bool,
    state_changed: bool,
}

/// State that sessions share, as the open transaction leaves it.
pub(crate) struct SharedState {
    pub(crate) version: Version,
    pub(crate) state: StateText,
    time: f64,
    changed: bool,
}

/// A session's state, which is parsed only if it changes.
enum State {
    Text(String),
    Parsed(StateText),
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

impl Cache {
    /// Forgets everything if somebody else changed the file, or if it is much. Must be called in every write
    /// transaction before anything else.
    pub(crate) fn begin(&mut self, connection: &Connection) -> Result<(), SessionError> {
        let content: i64 = connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(doing("ask for the file's version"))?;
        let rows = self.sessions.len() + self.scopes.len();
        if self.content != Some(content) || self.bytes > MOST_BYTES || rows > MOST_ROWS {
            self.forget();
            self.content = Some(content);
        }
        Ok(())
    }

    /// Forgets everything, because a transaction did not come to its end.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Forgets a session, because its row is gone.
    pub(crate) fn forget_session(&mut self, key: &SessionKey) {
        self.sessions.remove(key);
    }

    /// A session, or `None` if there is none.
    pub(crate) fn session(
        &mut self,
        connection: &Connection,
        layout: Layout,
        key: &SessionKey,
    ) -> Result<Option<&mut SessionRow>, SessionError> {
        if !self.sessions.contains_key(key) {
            let Some((row, bytes)) = SessionRow::read(connection, layout, key)? else { return Ok(None) };
            self.sessions.insert(key.clone(), row);
            self.bytes += bytes;
        }
        Ok(self.sessions.get_mut(key))
    }

    /// Shared state; empty if there is no row.
    pub(crate) fn scope(
        &mut self,
        connection: &Connection,
        scope: &ScopeKey,
    ) -> Result<&mut SharedState, SessionError> {
        match self.scopes.entry(scope.clone()) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let (shared, bytes) = SharedState::read(connection, scope)?;
                self.bytes += bytes;
                Ok(entry.insert(shared))
            }
        }
    }

    /// Writes the rows that changed. Must be called before the commit.
    pub(crate) fn flush(&mut self, connection: &Connection, layout: Layout) -> Result<(), SessionError> {
        for (key, row) in self.sessions.iter_mut().filter(|(_, row)| row.changed) {
            self.bytes += row.write(connection, layout, key)?;
        }
        for (scope, shared) in self.scopes.iter_mut().filter(|(_, shared)| shared.changed) {
            self.bytes += shared.write(connection, layout, scope)?;
        }
        Ok(())
    }
}

impl SessionRow {
    fn read(
        connection: &Connection,
        layout: Layout,
        key: &SessionKey,
    ) -> Result<Option<(Self, usize)>, SessionError> {
        let mut statement = connection.prepare_cached(SELECT_SESSION).map_err(doing("read a session"))?;
        let mut rows = statement.query([key.app(), key.user(), key.id()]).map_err(doing("read a session"))?;
        let Some(row) = rows.next().map_err(doing("read a session"))? else { return Ok(None) };
        let address = key.to_string();
        let bad = |column: &'static str, error: rusqlite::Error| corrupt("sessions", column, &address, error);
        let time = row.get_ref(1).map_err(|error| bad("update_time", error))?;
        let version: i64 = row.get(2).map_err(|error| bad("sessile_version", error))?;
        let state: String = row.get(0).map_err(|error| bad("state", error))?;
        let bytes = state.len();
        let row = Self {
            version: version.unsigned_abs(),
            update_time: layout
                .read_time(time)
                .map_err(|error| corrupt("sessions", "update_time", &address, error))?,
            state: State::Text(state),
            changed: false,
            state_changed: false,
        };
        Ok(Some((row, bytes)))
    }

    /// Takes in an event.
    pub(crate) fn advance(
        &mut self,
        key: &SessionKey,
        delta: &Delta,
        version: Version,
        update_time: f64,
    ) -> Result<(), SessionError> {
        if !delta.is_empty() {
            if let State::Text(text) = &self.state {
                self.state = State::Parsed(StateText::parse(text, "sessions", &key.to_string())?);
            }
            if let State::Parsed(state) = &mut self.state {
                state.apply(delta).map_err(doing("write a session's state"))?;
            }
            self.state_changed = true;
        }
        (self.version, self.update_time, self.changed) = (version, update_time, true);
        Ok(())
    }

    /// Writes the row, and returns the length of the text that was written.
    fn write(
        &mut self,
        connection: &Connection,
        layout: Layout,
        key: &SessionKey,
    ) -> Result<usize, SessionError> {
        let time = layout.write_time(self.update_time).map_err(doing("write a time"))?;
        let (app, user, id, version) = (key.app(), key.user(), key.id(), self.version);
        let (written, bytes) = match &self.state {
            State::Parsed(state) if self.state_changed => {
                let text = state.to_text().map_err(doing("write a session's state"))?;
                let written = connection
                    .prepare_cached(UPDATE_SESSION)
                    .and_then(|mut statement| statement.execute(params![app, user, id, text, time, version]));
                (written, text.len())
            }
            _ => {
                let written = connection
                    .prepare_cached(TOUCH_SESSION)
                    .and_then(|mut statement| statement.execute(params![app, user, id, time, version]));
                (written, 0)
            }
        };
        written.map_err(doing("update a session"))?;
        (self.changed, self.state_changed) = (false, false);
        Ok(bytes)
    }
}

impl SharedState {
    fn read(connection: &Connection, scope: &ScopeKey) -> Result<(Self, usize), SessionError> {
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
        let (state, version, bytes) = match found.map_err(|error| corrupt(table, "state", &row, error))? {
            Some((text, version)) => {
                (StateText::parse(&text, table, &row)?, version.unsigned_abs(), text.len())
            }
            None => (StateText::default(), 0, 0),
        };
        Ok((Self { version, state, time: 0.0, changed: false }, bytes))
    }

    /// Applies a delta.
    pub(crate) fn change(&mut self, delta: &Delta, scope: &ScopeKey, time: f64) -> Result<(), SessionError> {
        self.state.apply_shared(delta, scope.scope()).map_err(doing("write shared state"))?;
        (self.version, self.time, self.changed) = (self.version + 1, time, true);
        Ok(())
    }

    /// Makes sure that there is a row.
    pub(crate) fn exist(&mut self, time: f64) {
        if self.version == 0 {
            (self.version, self.time, self.changed) = (1, time, true);
        }
    }

    /// Writes the row, and returns the length of the text that was written.
    fn write(
        &mut self,
        connection: &Connection,
        layout: Layout,
        scope: &ScopeKey,
    ) -> Result<usize, SessionError> {
        let state = self.state.to_text().map_err(doing("write shared state"))?;
        let time = layout.write_time(self.time).map_err(doing("write a time"))?;
        let written = match scope {
            ScopeKey::App(app) => connection
                .prepare_cached(UPSERT_APP)
                .and_then(|mut statement| statement.execute(params![app, state, time, self.version])),
            ScopeKey::User(app, user) => connection
                .prepare_cached(UPSERT_USER)
                .and_then(|mut statement| statement.execute(params![app, user, state, time, self.version])),
        };
        written.map_err(doing("write shared state"))?;
        self.changed = false;
        Ok(state.len())
    }
}
