//! Writing shared state without a session.

use std::sync::Arc;

use rusqlite::Connection;
use sessile_session::{
    ChangeWindow, ChangedBy, OverwriteNotes, ScopeChange, ScopeKey, ScopeState, ScopeWrite, ScopeWritten,
    SessionError, Version,
};

use crate::batch::Batch;
use crate::failure::failed_to;
use crate::history::{self, ChangeNote, by_json};
use crate::prepared_commit::texts_of;
use crate::rows::StoredState;
use crate::scope_read::scope_state_in;

/// The result of a write. The state is still a text: the caller's task parses it, to keep the
/// writing thread free.
pub(crate) enum WriteAnswer {
    Written {
        version: Version,
        state: StoredState,
        overwrote: OverwriteNotes,
    },
    /// A write with this request id made this version before, and nothing was changed now.
    Known {
        version: Version,
    },
}

impl Batch<'_> {
    pub(crate) fn write_scope(&mut self, write: &ScopeWrite) -> Result<WriteAnswer, SessionError> {
        let ScopeWrite { scope, delta, request, time, .. } = write;
        let slot = self.cache.scope(self.connection, scope)?;
        // Earlier changes of the same batch go to a row before: this write has one of its own.
        self.cache[slot].write_history(self.connection, scope, None)?;
        if let Some(version) = history::version_of_request(self.connection, scope, request)? {
            return Ok(WriteAnswer::Known { version });
        }
        write.check_version(self.cache[slot].version)?;
        let evaluated = self.evaluate_scope(slot, write)?;
        let texts = texts_of(&evaluated.results)?;
        let state = &mut self.cache[slot].state;
        state.check_size(&texts, write.max_scope_bytes)?;
        state.check_readable()?;
        if !texts.is_empty() {
            let note = ChangeNote::new(*time, &by_json(&ChangedBy::request(write))?, delta)?;
            let shared = self.cache.scope_to_change(slot);
            shared.change(&texts, &note, &evaluated.undo, &evaluated.overwrote)?;
            shared.write_history(self.connection, scope, Some(request))?;
        }
        let shared = &mut self.cache[slot];
        let (version, state, overwrote) = (shared.version, shared.state.copy(), evaluated.overwrote);
        Ok(WriteAnswer::Written { version, state, overwrote })
    }
}

/// The result of an earlier write with the same request id. Its state is computed from the current
/// one, by undoing all later changes.
pub(crate) fn known(
    connection: &mut Connection,
    scope: &ScopeKey,
    version: Version,
) -> Result<ScopeWritten, SessionError> {
    let transaction = connection.transaction().map_err(failed_to("begin to read shared state"))?;
    let read = || -> Result<ScopeWritten, SessionError> {
        let ScopeState { state, .. } = scope_state_in(&transaction, scope)?;
        let mut state = Arc::unwrap_or_clone(state);
        let mut changes =
            history::changes(&transaction, scope, ChangeWindow { after: version - 1, ..ChangeWindow::ALL })?;
        let ScopeChange { change, overwrote, .. } =
            changes.pop().ok_or_else(|| failed_to("compute an earlier state")("its history is gone"))?;
        for later in &changes {
            later.undo(&mut state).map_err(failed_to("compute an earlier state"))?;
        }
        Ok(ScopeWritten { version, state: Arc::new(state), known: Some(change), overwrote })
    };
    let written = read();
    transaction.finish().map_err(failed_to("end reading shared state"))?;
    written
}
