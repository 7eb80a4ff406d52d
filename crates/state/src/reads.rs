//! What was read: a transaction must find it unchanged when it commits.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::scope::Scope;
use crate::state::State;
use crate::sync::{Mutex, lock};

/// The keys of a state that were read through [`State::with_read_tracking`].
///
/// A key that a view has set or removed before it is read does not count: what was read then is the view's own.
#[derive(Debug, Clone, Default)]
pub struct Reads(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    keys: BTreeSet<String>,
    /// Whether all keys were listed, so that every key matters.
    everything: bool,
}

impl Reads {
    /// Whether all keys were listed, by `keys`, `to_map` and their like.
    pub fn is_everything(&self) -> bool {
        lock(&self.0).everything
    }

    /// The keys that were read one by one, in key order.
    pub fn keys(&self) -> Vec<String> {
        lock(&self.0).keys.iter().cloned().collect()
    }

    /// Whether a key of this scope was read, or all keys were listed.
    pub fn contains(&self, scope: Scope) -> bool {
        let noted = lock(&self.0);
        noted.everything || noted.keys.iter().any(|key| Scope::of(key).0 == scope)
    }

    pub(crate) fn key(&self, key: &str) {
        let mut noted = lock(&self.0);
        if !noted.keys.contains(key) {
            noted.keys.insert(key.to_owned());
        }
    }

    pub(crate) fn everything(&self) {
        lock(&self.0).everything = true;
    }
}

impl State {
    /// This state, and a note of the keys that are read through the returned handle and the
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
        assert_eq!(noted(|state| state.add("s", 1)), [false; 3]);
    }

    #[test]
    fn keys_are_noted_by_name_unless_the_view_set_them_itself() {
        let (tracked, reads) = State::from_iter([("a", serde_json::json!(1))]).with_read_tracking();
        let view = tracked.with_delta_tracking();
        view.set("own", 1);
        view.add("b", 1);
        for key in ["a", "own", "b", "absent", "a"] {
            view.get::<u32>(key);
        }
        assert_eq!(reads.keys(), ["a", "absent", "b", "derived:absent"]);
        assert!(!reads.is_everything());
    }

    #[test]
    fn a_key_that_is_read_from_its_computed_variable_notes_both() {
        let (tracked, reads) =
            State::from_iter([("derived:risk", serde_json::json!(1))]).with_read_tracking();
        assert_eq!(tracked.get("risk"), Some(1));
        assert_eq!(reads.keys(), ["derived:risk", "risk"]);
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
