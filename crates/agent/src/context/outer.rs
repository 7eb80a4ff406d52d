use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sessile_session::Event;
use sessile_state::{Change, Reducers, Snapshot};

use super::tool::ToolContext;
use crate::error::ToolError;

/// The tool call that a run is part of, if its agent is a tool.
///
/// The agent runs in a session of its own, which is a copy: what its contexts read and changed must
/// count in the session of the agent that asked.
pub(crate) struct Outer {
    pub(crate) ctx: ToolContext,
    /// The state that was copied.
    copied: Snapshot,
    /// The keys that contexts of the run had read before they set or removed them.
    reads: Mutex<BTreeSet<String>>,
    /// Ids of events whose changes a transaction of the outer session has already stored.
    stored: Mutex<BTreeSet<String>>,
}

impl Outer {
    pub(crate) fn new(ctx: &ToolContext, copied: Snapshot) -> Self {
        Self { ctx: ctx.clone(), copied, reads: Mutex::default(), stored: Mutex::default() }
    }

    /// Notes which keys were read before an event of the run sets or removes them.
    pub(crate) fn note_reads<'a>(&self, keys: impl Iterator<Item = &'a str>) {
        lock(&self.reads).extend(keys.map(str::to_owned));
    }

    /// Notes that the changes of an event are stored already.
    pub(crate) fn note_stored(&self, event: &str) {
        lock(&self.stored).insert(event.to_owned());
    }

    /// Makes what an event of the run changed the tool's changes. Operations are handed on as
    /// operations: their results were computed from a copy of the state, and would overwrite what
    /// other sessions write. A key that was read before it was set counts as read by the tool, with
    /// the value that the copy had.
    pub(crate) fn take_over(&self, event: &Event) -> Result<(), ToolError> {
        if !event.actions.artifact_delta.is_empty() {
            let artifacts = event.actions.artifact_delta.clone();
            self.ctx.with_actions(|actions| actions.artifact_delta.extend(artifacts));
        }
        if lock(&self.stored).remove(&event.id) {
            return Ok(());
        }
        let mut delta = event.actions.state_delta.clone();
        let operations = event.operations();
        delta.retain(|key| !operations.contains_key(key));
        for (key, operations) in operations {
            delta.try_operate(key, operations).map_err(ToolError::failed)?;
        }
        let state = self.ctx.state();
        let (pending, known) = (state.delta(), state.reads());
        for (key, change) in delta.iter() {
            let is_first = pending.get(key).is_none() && known.get(key).is_none();
            if is_first && !matches!(change, Change::Operate(_)) && lock(&self.reads).contains(key) {
                state.mark_read(key, self.copied.get_raw(key));
            }
        }
        // Reducers were already applied in the run: what they cover arrives as operations.
        state.with_reducers(Reducers::new()).try_apply(&delta).map_err(ToolError::failed)
    }
}

fn lock(keys: &Mutex<BTreeSet<String>>) -> MutexGuard<'_, BTreeSet<String>> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}
