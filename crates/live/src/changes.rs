//! The changes of state between two commits.

use std::sync::{Arc, Mutex};

use sessile_session::OnOverwrite;
use sessile_state::{Recorded, Recorder, State, StateSchema};

use crate::lock::lock;

/// Records the changes of a session's state, and merges those of its tools.
pub(crate) struct Changes {
    pub(crate) recorder: Recorder,
    pub(crate) on_overwrite: OnOverwrite,
    schema: Option<Arc<StateSchema>>,
    /// Changes that must be committed before the ones that are being recorded: a tool overwrote a
    /// value of theirs after it had read the key, and only a separate event can report that
    /// overwrite.
    earlier: Mutex<Vec<Recorded>>,
}

impl Changes {
    pub(crate) fn new(
        recorder: Recorder,
        on_overwrite: OnOverwrite,
        schema: Option<Arc<StateSchema>>,
    ) -> Self {
        Self { recorder, on_overwrite, schema, earlier: Mutex::default() }
    }

    /// Takes the changes since the last call, in the order in which they must be committed; the
    /// last may be empty.
    pub(crate) fn take(&self) -> (Vec<Recorded>, Recorded) {
        let mut earlier = lock(&self.earlier);
        (std::mem::take(&mut earlier), self.recorder.take())
    }

    /// The view of a tool: it tracks the values that the tool reads, and checks writes against the
    /// schema at once.
    pub(crate) fn view(&self, state: &State) -> State {
        let view = state.with_latest_read_tracking();
        match &self.schema {
            Some(schema) => view.with_schema(schema.clone()),
            None => view,
        }
    }

    /// Commits the changes of a tool. If another tool or a callback of this session changed a key
    /// between the tool's read and its write, the commit is refused or the event reports the
    /// overwrite, depending on `on_overwrite`.
    pub(crate) fn commit(&self, view: &State) -> Result<(), String> {
        let mut earlier = lock(&self.earlier);
        let changed = view.try_commit_unchanged().map_err(|error| error.to_string())?;
        if changed.is_empty() {
            return Ok(());
        }
        if self.on_overwrite == OnOverwrite::Refuse {
            let names: Vec<String> = changed.iter().map(|key| format!("{key:?}")).collect();
            let (keys, were) = if names.len() == 1 { ("key", "was") } else { ("keys", "were") };
            return Err(format!(
                "the state {keys} {} {were} changed since the tool read it; the changes of the tool are discarded; \
                 read the current value, compute again, and retry",
                names.join(" and ")
            ));
        }
        let reads = view.reads();
        earlier.push(self.recorder.take());
        for key in changed {
            self.recorder.mark_read(&key, reads.get(&key).flatten().cloned());
        }
        view.try_commit().map_err(|error| error.to_string())
    }
}
