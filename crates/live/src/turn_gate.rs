use std::sync::Mutex;

use sessile_state::State;

use crate::lock::lock;

/// When `turn:` keys are cleared: as the next turn begins, and never while what follows from the
/// turn that wrote them is still going on.
#[derive(Debug, Default)]
pub(crate) struct TurnGate {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether a turn is going on.
    open: bool,
    /// Turns that are complete on the wire, and whose end is still worked on.
    ending: u32,
    /// Whether a turn began meanwhile.
    clear_later: bool,
}

impl TurnGate {
    /// Somebody says something: a turn begins, unless one is going on.
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

    /// The server says that the turn is complete.
    pub(crate) fn complete(&self) {
        let mut inner = lock(&self.inner);
        inner.open = false;
        inner.ending += 1;
    }

    /// Everything that follows from a complete turn is done.
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
