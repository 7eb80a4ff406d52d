//! What a live session changes between two commits.

use std::sync::{Arc, Mutex};

use sessile_session::OnOverwrite;
use sessile_state::{Recorded, Recorder, State, StateSchema};

use crate::lock::lock;

/// Records the changes of a session's state, and joins those of its tools.
pub(crate) struct Changes {
    pub(crate) recorder: Recorder,
    pub(crate) on_overwrite: OnOverwrite,
    schema: Option<Arc<StateSchema>>,
    /// Changes that come before those that are being recorded, and must be committed before them: a
    /// tool overwrote what they had written after it read the key, and only an event of its own can
    /// tell that.
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

    /// Takes the changes since the last time, in the order in which they must be committed; the
    /// last may be empty.
    pub(crate) fn take(&self) -> (Vec<Recorded>, Recorded) {
        let mut earlier = lock(&self.earlier);
        (std::mem::take(&mut earlier), self.recorder.take())
    }

    /// The view of a tool: it keeps what the tool reads, and refuses at once what the schema does
    /// not allow.
    pub(crate) fn view(&self, state: &State) -> State {
        let view = state.with_latest_read_tracking();
        match &self.schema {
            Some(schema) => view.with_schema(schema.clone()),
            None => view,
        }
    }

    /// Commits what a tool changed. A key that it set after reading it may have been changed
    /// meanwhile by another tool or a callback of this session: then the tool is refused, or the
    /// overwrite is reported by the store.
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
                "the state {keys} {} {were} changed since the tool read it; nothing that the tool wrote is kept; \
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
