//! The row of an application's or a user's state, as the open transaction leaves it.

use rusqlite::{Connection, params};
use sessile_session::{OverwriteNotes, ScopeKey, SessionError, Undo, Version};

use crate::failure::failed_to;
use crate::history::{self, ChangeNote, NewRow};
use crate::layout::Layout;
use crate::rows::Owner;
use crate::scope_read::shared_text;
use crate::state_text::{StateText, TextChanges};

pub(crate) struct SharedState {
    pub(crate) version: Version,
    pub(crate) state: StateText,
    /// Whether there is a row. Without one, the version is that of the history.
    exists: bool,
    time: f64,
    /// Whether the row has to be written.
    changed: bool,
    /// Changes that are not in the history yet.
    changes: NewRow,
}

impl SharedState {
    /// Reads the row; without one the state is empty.
    pub(crate) fn read(connection: &Connection, scope: &ScopeKey) -> Result<Self, SessionError> {
        let (found, version) = shared_text(connection, scope)?;
        let exists = found.is_some();
        let state = match found {
            Some(stored) => StateText::stored(stored),
            None => StateText::empty(Owner::Shared(scope.clone())),
        };
        Ok(Self { version, state, exists, time: 0.0, changed: false, changes: NewRow::default() })
    }

    /// Applies a change that was computed before, and adds it to the history.
    pub(crate) fn change(
        &mut self,
        texts: &TextChanges,
        note: &ChangeNote,
        undo: &Undo,
        overwrote: &OverwriteNotes,
    ) -> Result<(), SessionError> {
        self.state.apply(texts)?;
        self.version += 1;
        self.changes.push(self.version, note, undo, overwrote)?;
        (self.time, self.changed) = (note.time, true);
        Ok(())
    }

    /// Makes sure that a row will be written. An empty one is not a change, so the version stays.
    pub(crate) fn exist(&mut self, time: f64) {
        if !self.exists && !self.changed {
            (self.time, self.changed) = (time, true);
        }
    }

    /// Writes the history of the changes that were made since it was written last, in one row. A
    /// request id belongs to a row of its own, so it must be written before and after the change
    /// that has one.
    pub(crate) fn write_history(
        &mut self,
        connection: &Connection,
        scope: &ScopeKey,
        request: Option<&str>,
    ) -> Result<(), SessionError> {
        history::insert(connection, scope, request, std::mem::take(&mut self.changes))
    }
}

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
    /// Writes the row and its history if they changed, and returns the length of the text that was
    /// written.
    pub(crate) fn write(
        &mut self,
        connection: &Connection,
        layout: Layout,
        scope: &ScopeKey,
    ) -> Result<usize, SessionError> {
        if !self.changed {
            return Ok(0);
        }
        self.write_history(connection, scope, None)?;
        let time = layout.write_time(self.time).map_err(failed_to("write a time"))?;
        let (version, text) = (self.version, self.state.text());
        let written = match scope {
            ScopeKey::App(app) => connection
                .prepare_cached(UPSERT_APP)
                .and_then(|mut statement| statement.execute(params![app, text, time, version])),
            ScopeKey::User(app, user) => connection
                .prepare_cached(UPSERT_USER)
                .and_then(|mut statement| statement.execute(params![app, user, text, time, version])),
        };
        written.map_err(failed_to("write shared state"))?;
        (self.changed, self.exists) = (false, true);
        Ok(text.len())
    }
}
