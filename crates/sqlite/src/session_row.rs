//! The row of a session, as the open transaction leaves it.

use std::collections::VecDeque;

use rusqlite::{Connection, params};
use sessile_session::{Incarnation, SessionError, SessionEvent, SessionKey, Version};

use crate::failure::failed_to;
use crate::layout::Layout;
use crate::rows::{Owner, StoredState, incarnation};
use crate::state_text::{StateText, TextChanges};
use crate::statement::Statement;
use crate::stored_event::StoredEvent;

pub(crate) struct SessionRow {
    pub(crate) incarnation: Incarnation,
    pub(crate) version: Version,
    pub(crate) update_time: f64,
    pub(crate) state: StateText,
    /// The length of all its events' JSON; `None` if it was not counted yet.
    bytes: Option<usize>,
    /// The newest events, cached if several writers append to the session: each of them asks for
    /// those of the others.
    recent: Option<VecDeque<SessionEvent>>,
    /// Whether the row has to be written, and whether its state too.
    changed: bool,
    state_changed: bool,
}

/// The largest number of events of a session that are cached while several writers append to it.
const MOST_RECENT: usize = 128;

const SELECT_SESSION: &str = "
    SELECT state, update_time, sessile_version, sessile_incarnation, sessile_bytes
      FROM sessions WHERE app_name = ?1 AND user_id = ?2 AND id = ?3
";

impl SessionRow {
    /// Reads the row, if there is one.
    pub(crate) fn read(
        connection: &Connection,
        layout: Layout,
        key: &SessionKey,
    ) -> Result<Option<Self>, SessionError> {
        let mut statement = connection.prepare_cached(SELECT_SESSION).map_err(failed_to("read a session"))?;
        let mut rows =
            statement.query([key.app(), key.user(), key.id()]).map_err(failed_to("read a session"))?;
        let Some(row) = rows.next().map_err(failed_to("read a session"))? else { return Ok(None) };
        let owner = Owner::Session(key.clone());
        let time = row.get_ref(1).map_err(owner.unreadable("update_time"))?;
        let version: i64 = row.get(2).map_err(owner.unreadable("sessile_version"))?;
        let number: Option<i64> = row.get(3).map_err(owner.unreadable("sessile_incarnation"))?;
        let bytes: Option<usize> = row.get(4).map_err(owner.unreadable("sessile_bytes"))?;
        let text: String = row.get(0).map_err(owner.unreadable("state"))?;
        let update_time = layout.read_time(time).map_err(|error| owner.corrupt("update_time", error))?;
        let state = StateText::stored(StoredState { owner, text });
        Ok(Some(Self { bytes, ..Self::new(incarnation(number), version.unsigned_abs(), update_time, state) }))
    }

    /// A row that was just inserted.
    pub(crate) fn created(
        incarnation: Incarnation,
        version: Version,
        update_time: f64,
        state: StateText,
        bytes: usize,
    ) -> Self {
        Self { bytes: Some(bytes), ..Self::new(incarnation, version, update_time, state) }
    }

    fn new(incarnation: Incarnation, version: Version, update_time: f64, state: StateText) -> Self {
        let (bytes, recent) = (None, None);
        Self { incarnation, version, update_time, state, bytes, recent, changed: false, state_changed: false }
    }

    /// Makes sure that the size of the session is known. That of a session from before the
    /// migration is counted once.
    pub(crate) fn count_bytes(
        &mut self,
        connection: &Connection,
        key: &SessionKey,
    ) -> Result<(), SessionError> {
        if self.bytes.is_none() {
            self.bytes = Some(count_bytes(connection, key)?);
        }
        Ok(())
    }

    /// Applies an event, whose JSON has this many bytes.
    pub(crate) fn advance(
        &mut self,
        changes: &TextChanges,
        event: &StoredEvent,
        update_time: f64,
        bytes: usize,
    ) -> Result<(), SessionError> {
        if !changes.is_empty() {
            self.state.apply(changes)?;
            self.state_changed = true;
        }
        self.bytes = self.bytes.map(|before| before + bytes);
        (self.version, self.update_time) = (event.version, update_time);
        if let Some(recent) = &mut self.recent {
            if recent.len() == MOST_RECENT {
                recent.pop_front();
            }
            recent.push_back(event.to_event());
        }
        self.changed = true;
        Ok(())
    }

    /// The events with versions in a range, if they are cached. The first call begins to cache
    /// them.
    pub(crate) fn recent(&mut self, after: Version, until: Version) -> Option<Vec<SessionEvent>> {
        let recent = self.recent.get_or_insert_default();
        let oldest = recent.front()?.version;
        let in_range = |event: &&SessionEvent| event.version > after && event.version <= until;
        (oldest <= after + 1).then(|| recent.iter().filter(in_range).cloned().collect())
    }

    /// The row was deleted, and must not be written.
    pub(crate) fn forget_changes(&mut self) {
        (self.changed, self.state_changed) = (false, false);
    }

    /// Writes the row if it changed, and returns the length of the text that was written.
    pub(crate) fn write(
        &mut self,
        statements: &mut UpdateSession<'_>,
        layout: Layout,
        key: &SessionKey,
    ) -> Result<usize, SessionError> {
        if !self.changed {
            return Ok(0);
        }
        let written = match self.state_changed {
            true => self.write_all(&mut statements.all, layout, key)?,
            false => self.write_version(&mut statements.version, layout, key)?,
        };
        self.forget_changes();
        Ok(written)
    }
}

const COUNT_BYTES: &str = "
    SELECT coalesce(sum(octet_length(event_data)), 0) FROM events
     WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3
";

fn count_bytes(connection: &Connection, key: &SessionKey) -> Result<usize, SessionError> {
    connection
        .prepare_cached(COUNT_BYTES)
        .and_then(|mut statement| statement.query_row([key.app(), key.user(), key.id()], |row| row.get(0)))
        .map_err(failed_to("count the bytes of a session"))
}

const UPDATE_SESSION: &str = "
    UPDATE sessions SET state = ?4, update_time = ?5, sessile_version = ?6, sessile_bytes = ?7
     WHERE app_name = ?1 AND user_id = ?2 AND id = ?3
";
const TOUCH_SESSION: &str = "
    UPDATE sessions SET update_time = ?4, sessile_version = ?5, sessile_bytes = ?6
     WHERE app_name = ?1 AND user_id = ?2 AND id = ?3
";

/// The statements that write rows of sessions, for all rows of a transaction.
pub(crate) struct UpdateSession<'c> {
    all: Statement<'c>,
    /// Of a row whose state stays as it was.
    version: Statement<'c>,
}

impl<'c> UpdateSession<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        let (all, version) = (UPDATE_SESSION, TOUCH_SESSION);
        Self { all: Statement::new(connection, all), version: Statement::new(connection, version) }
    }
}

impl SessionRow {
    fn write_all(
        &mut self,
        statement: &mut Statement<'_>,
        layout: Layout,
        key: &SessionKey,
    ) -> Result<usize, SessionError> {
        let time = layout.write_time(self.update_time).map_err(failed_to("write a time"))?;
        let (version, bytes, text) = (self.version, self.bytes, self.state.text());
        statement
            .get()
            .and_then(|statement| {
                statement.execute(params![key.app(), key.user(), key.id(), text, time, version, bytes])
            })
            .map_err(failed_to("update a session"))?;
        Ok(text.len())
    }

    fn write_version(
        &self,
        statement: &mut Statement<'_>,
        layout: Layout,
        key: &SessionKey,
    ) -> Result<usize, SessionError> {
        let time = layout.write_time(self.update_time).map_err(failed_to("write a time"))?;
        statement
            .get()
            .and_then(|statement| {
                statement.execute(params![key.app(), key.user(), key.id(), time, self.version, self.bytes])
            })
            .map_err(failed_to("update a session"))?;
        Ok(0)
    }
}
