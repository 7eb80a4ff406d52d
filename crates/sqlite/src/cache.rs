//! The rows that the writing thread read or wrote last, so that it need not read them again.
//!
//! The cache is emptied when another connection has changed the file, which `PRAGMA data_version`
//! tells cheaply, and when a transaction fails.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use rusqlite::Connection;
use sessile_session::{ScopeKey, SessionError, SessionKey};

use crate::failure::failed_to;
use crate::layout::Layout;
use crate::session_row::{SessionRow, UpdateSession};
use crate::shared_state::SharedState;

/// The capacity of the cache, in bytes of JSON and in rows. It is emptied when it is exceeded.
const MOST_BYTES: usize = 16 << 20;
const MOST_ROWS: usize = 1024;

#[derive(Default)]
pub(crate) struct Cache {
    /// The `data_version` of the file that the rows are from.
    content: Option<i64>,
    slot_of_session: HashMap<SessionKey, SessionSlot>,
    sessions: Vec<CachedSession>,
    slot_of_scope: HashMap<ScopeKey, ScopeSlot>,
    scopes: Vec<CachedScope>,
    /// The rows that have to be written; a row may be listed twice.
    changed_sessions: Vec<SessionSlot>,
    changed_scopes: Vec<ScopeSlot>,
    /// The length of all texts that were read or written since the cache was emptied.
    bytes: usize,
}

/// Where a session is in the cache; good until the transaction ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionSlot(usize);

/// Where shared state is in the cache; good until the transaction ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScopeSlot(usize);

struct CachedSession {
    key: SessionKey,
    row: SessionRow,
    /// The slots of the state that it shares, once they were looked up.
    user: Option<ScopeSlot>,
    app: Option<ScopeSlot>,
}

struct CachedScope {
    scope: ScopeKey,
    shared: SharedState,
}

impl Cache {
    /// Empties the cache if another connection changed the file, or if the capacity is exceeded.
    /// Must be called in every write transaction before anything else.
    pub(crate) fn begin(&mut self, connection: &Connection) -> Result<(), SessionError> {
        let content: i64 = connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(failed_to("ask for the file's version"))?;
        let rows = self.sessions.len() + self.scopes.len();
        if self.content != Some(content) || self.bytes > MOST_BYTES || rows > MOST_ROWS {
            self.forget();
            self.content = Some(content);
        }
        Ok(())
    }

    /// Empties the cache, because a transaction failed and its changes are in the cached rows.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// A session, or `None` if there is none.
    pub(crate) fn session(
        &mut self,
        connection: &Connection,
        layout: Layout,
        key: &SessionKey,
    ) -> Result<Option<SessionSlot>, SessionError> {
        if let Some(slot) = self.known_session(key) {
            return Ok(Some(slot));
        }
        let Some(mut row) = SessionRow::read(connection, layout, key)? else { return Ok(None) };
        self.bytes += row.state.text().len();
        Ok(Some(self.add_session(key, row)))
    }

    /// A session, if it was read or written before.
    pub(crate) fn known_session(&self, key: &SessionKey) -> Option<SessionSlot> {
        self.slot_of_session.get(key).copied()
    }

    /// Adds a session.
    pub(crate) fn add_session(&mut self, key: &SessionKey, row: SessionRow) -> SessionSlot {
        let slot = SessionSlot(self.sessions.len());
        self.sessions.push(CachedSession { key: key.clone(), row, user: None, app: None });
        self.slot_of_session.insert(key.clone(), slot);
        slot
    }

    /// Drops a session whose row was deleted.
    pub(crate) fn forget_session(&mut self, key: &SessionKey) {
        if let Some(slot) = self.slot_of_session.remove(key) {
            self[slot].forget_changes();
        }
    }

    /// Shared state; empty if there is no row.
    pub(crate) fn scope(
        &mut self,
        connection: &Connection,
        scope: &ScopeKey,
    ) -> Result<ScopeSlot, SessionError> {
        if let Some(slot) = self.slot_of_scope.get(scope) {
            return Ok(*slot);
        }
        let mut shared = SharedState::read(connection, scope)?;
        self.bytes += shared.state.text().len();
        let slot = ScopeSlot(self.scopes.len());
        self.scopes.push(CachedScope { scope: scope.clone(), shared });
        self.slot_of_scope.insert(scope.clone(), slot);
        Ok(slot)
    }

    /// The state of a session's user.
    pub(crate) fn user_of(
        &mut self,
        connection: &Connection,
        slot: SessionSlot,
    ) -> Result<ScopeSlot, SessionError> {
        if let Some(user) = self.sessions[slot.0].user {
            return Ok(user);
        }
        let user = self.scope(connection, &ScopeKey::user_of(&self.sessions[slot.0].key))?;
        self.sessions[slot.0].user = Some(user);
        Ok(user)
    }

    /// The state of a session's application.
    pub(crate) fn app_of(
        &mut self,
        connection: &Connection,
        slot: SessionSlot,
    ) -> Result<ScopeSlot, SessionError> {
        if let Some(app) = self.sessions[slot.0].app {
            return Ok(app);
        }
        let app = self.scope(connection, &ScopeKey::app_of(&self.sessions[slot.0].key))?;
        self.sessions[slot.0].app = Some(app);
        Ok(app)
    }

    /// A session that is to be changed: its row will be written.
    pub(crate) fn session_to_change(&mut self, slot: SessionSlot) -> &mut SessionRow {
        self.changed_sessions.push(slot);
        &mut self[slot]
    }

    /// Shared state that is to be changed: its row will be written.
    pub(crate) fn scope_to_change(&mut self, slot: ScopeSlot) -> &mut SharedState {
        self.changed_scopes.push(slot);
        &mut self[slot]
    }

    /// Writes the rows that changed. Must be called before the commit.
    pub(crate) fn flush(&mut self, connection: &Connection, layout: Layout) -> Result<(), SessionError> {
        let mut statements = UpdateSession::new(connection);
        for slot in std::mem::take(&mut self.changed_sessions) {
            let CachedSession { key, row, .. } = &mut self.sessions[slot.0];
            self.bytes += row.write(&mut statements, layout, key)?;
        }
        for slot in std::mem::take(&mut self.changed_scopes) {
            let CachedScope { scope, shared } = &mut self.scopes[slot.0];
            self.bytes += shared.write(connection, layout, scope)?;
        }
        Ok(())
    }
}

impl Index<SessionSlot> for Cache {
    type Output = SessionRow;

    fn index(&self, slot: SessionSlot) -> &SessionRow {
        &self.sessions[slot.0].row
    }
}

impl IndexMut<SessionSlot> for Cache {
    fn index_mut(&mut self, slot: SessionSlot) -> &mut SessionRow {
        &mut self.sessions[slot.0].row
    }
}

impl Index<ScopeSlot> for Cache {
    type Output = SharedState;

    fn index(&self, slot: ScopeSlot) -> &SharedState {
        &self.scopes[slot.0].shared
    }
}

impl IndexMut<ScopeSlot> for Cache {
    fn index_mut(&mut self, slot: ScopeSlot) -> &mut SharedState {
        &mut self.scopes[slot.0].shared
    }
}
