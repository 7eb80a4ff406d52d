//! Which scopes were read: what a transaction must find unchanged when it commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::scope::Scope;
use crate::state::State;

/// The scopes of a state that were read through [`State::with_read_tracking`].
#[derive(Debug, Clone, Default)]
pub struct Reads(Arc<AtomicU8>);

impl Reads {
    /// Whether a key of this scope was read, or all keys were listed.
    pub fn contains(&self, scope: Scope) -> bool {
        self.0.load(Ordering::Relaxed) & bit(scope) != 0
    }

    pub(crate) fn key(&self, key: &str) {
        self.0.fetch_or(bit(Scope::of(key).0), Ordering::Relaxed);
    }

    pub(crate) fn everything(&self) {
        self.0.fetch_or(!0, Ordering::Relaxed);
    }
}

fn bit(scope: Scope) -> u8 {
    1 << scope as u8
}

impl State {
    /// This state, and a note of the scopes that are read through the returned handle and the
    /// views made from it.
    pub fn with_read_tracking(&self) -> (Self, Reads) {
        let reads = Reads::default();
        (Self { reads: Some(reads.clone()), ..self.clone() }, reads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scopes that `read` reads, app, user and session.
    fn noted<T>(read: impl FnOnce(&State) -> T) -> [bool; 3] {
        let state = State::new();
        state.update([("app:a", 1), ("user:u", 1), ("s", 1)]);
        let (tracked, reads) = state.with_read_tracking();
        let view = tracked.with_delta_tracking();
        view.set("app:unread", 1);
        read(&view);
        [Scope::App, Scope::User, Scope::Session].map(|scope| reads.contains(scope))
    }

    #[test]
    fn reads_note_their_scope_and_writes_none() {
        assert_eq!(noted(|_| {}), [false; 3]);
        assert_eq!(noted(|state| state.get::<u32>("app:a")), [true, false, false]);
        assert_eq!(noted(|state| state.user().with("u", |_| ())), [false, true, false]);
        assert_eq!(noted(|state| state.contains("absent")), [false, false, true]);
        assert_eq!(noted(|state| state.modify("user:n", 0, |n: u32| n + 1)), [false, true, false]);
        assert_eq!(noted(|state| state.set_default("s", 0)), [false, false, true]);
        assert_eq!(noted(|state| state.remove("s")), [false, false, true]);
        assert_eq!(noted(|state| state.set("s", 0)), [false; 3]);
    }

    #[test]
    fn reads_of_many_keys_note_everything() {
        assert_eq!(noted(|state| state.keys()), [true; 3]);
        assert_eq!(noted(|state| state.app().keys()), [true; 3]);
        assert_eq!(noted(|state| state.to_map()), [true; 3]);
        assert_eq!(noted(|state| state.rename("s", "t")), [true; 3]);
        assert_eq!(noted(|state| state.clear_prefix("x")), [true; 3]);
        assert_eq!(noted(|state| State::new().merge(state)), [true; 3]);
    }
}
