use std::sync::Mutex;

use sessile_state::State;

use crate::lock::lock;

/// Clears the `turn:` keys when the next turn begins, but not before the end of the last turn has
/// been processed: its extractors, watches and callbacks still read them.
#[derive(Debug, Default)]
pub(crate) struct TurnGate {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether a turn is in progress.
    open: bool,
    /// How many turns are complete on the wire while their end is still being processed.
    ending: u32,
    /// Whether a new turn began meanwhile, so that the keys must be cleared afterwards.
    clear_later: bool,
}

impl TurnGate {
    /// There is activity: a turn begins, unless one is in progress.
    pub(crate) fn begin(&self, state: &State) {
        let mut inner = lock(&self.inner);
        if std::mem::replace(&mut inner.open, true) {
            return;
        }
        if inner.ending > 0 {
            inner.clear_later = true;
        } else {
            drop(inner);
            clear(state);
        }
    }

    /// The server ended the turn.
    pub(crate) fn complete(&self) {
        let mut inner = lock(&self.inner);
        inner.open = false;
        inner.ending += 1;
    }

    /// The end of a turn has been processed.
    pub(crate) fn ended(&self, state: &State) {
        let mut inner = lock(&self.inner);
        inner.ending = inner.ending.saturating_sub(1);
        if inner.ending == 0 && std::mem::take(&mut inner.clear_later) {
            drop(inner);
            clear(state);
        }
    }
}

fn clear(state: &State) {
    if let Err(error) = state.try_clear_prefix("turn:") {
        tracing::error!(%error, "the keys of the last turn cannot be cleared");
    }
}
