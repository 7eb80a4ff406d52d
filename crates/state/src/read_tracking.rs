//! Views that track what is read through them.

use std::sync::Arc;

use crate::node::Node;
use crate::overlay::Overlay;
use crate::reads::Reads;
use crate::state::State;
use crate::value::SharedValue;

/// Views that track what is read through them.
impl State {
    /// A view like [`with_delta_tracking`](Self::with_delta_tracking) that also tracks which keys
    /// were read through it, and their values. A key that the view set or removed before it was
    /// read does not count, because the value came from the view itself.
    ///
    /// Reads are repeatable: once a key was read, the view shows that value until it is committed
    /// or rolled back, even if the state below changes. So the value that [`reads`](Self::reads)
    /// returns is the one that the caller computed from.
    ///
    /// ```
    /// use sessile_state::State;
    ///
    /// let state = State::new();
    /// state.set("points", 5);
    /// let view = state.with_read_tracking();
    /// view.modify("points", 0, |n| n + 1);
    /// view.set("name", "Ada");
    ///
    /// assert_eq!(view.reads().get("points").unwrap().unwrap(), &serde_json::json!(5));
    /// assert!(view.reads().get("name").is_none(), "it was set without being read");
    /// ```
    ///
    /// # Panics
    ///
    /// If more than a hundred views are stacked.
    #[track_caller]
    pub fn with_read_tracking(&self) -> Self {
        Self { node: Arc::new(Node::Overlay(Overlay::new(self.node.clone(), true))), ..self.clone() }
    }

    /// A view like [`with_read_tracking`](Self::with_read_tracking) whose reads are not repeatable:
    /// they show the state below as it is now, and the last value that was read counts. For
    /// long-running tasks that wait for other writers.
    ///
    /// # Panics
    ///
    /// If more than a hundred views are stacked.
    #[track_caller]
    pub fn with_latest_read_tracking(&self) -> Self {
        let overlay = Overlay::new(self.node.clone(), true).with_latest_reads();
        Self { node: Arc::new(Node::Overlay(overlay)), ..self.clone() }
    }

    /// What was read through this view; empty if it does not track reads.
    pub fn reads(&self) -> Reads {
        match &*self.node {
            Node::Base(_) => Reads::default(),
            Node::Overlay(overlay) => overlay.reads(),
        }
    }

    /// Counts a key as read with this value, in place of what was read before: for a caller that
    /// got the value in another way, such as from the response to a commit. Does nothing on a state
    /// that does not track reads.
    pub fn mark_read(&self, key: &str, value: Option<SharedValue>) {
        if let Node::Overlay(overlay) = &*self.node {
            overlay.mark_read(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scope::Scope;

    /// The scopes that `read` reads, app, user and session.
    fn noted<T>(read: impl FnOnce(&State) -> T) -> [bool; 3] {
        let state = State::new();
        state.update([("app:a", 1), ("user:u", 1), ("s", 1)]);
        let view = state.with_read_tracking();
        view.set("app:unread", 1);
        read(&view);
        let reads = view.reads();
        [Scope::App, Scope::User, Scope::Session].map(|scope| reads.contains(scope))
    }

    fn keys(reads: &Reads) -> Vec<&str> {
        reads.iter().map(|(key, _)| key).collect()
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
        let view = State::from_iter([("a", json!(1))]).with_read_tracking();
        view.set("own", 1);
        view.add("b", 1);
        for key in ["a", "own", "b", "absent", "a"] {
            view.get::<u32>(key);
        }
        assert_eq!(keys(&view.reads()), ["a", "absent", "b", "derived:absent"]);
        assert!(!view.reads().is_everything());
    }

    #[test]
    fn the_value_is_that_below_the_view_when_it_was_first_read() {
        let state = State::from_iter([("n", json!(5))]);
        let view = state.with_read_tracking();
        view.add("n", 1);
        assert_eq!(view.get("n"), Some(6), "base and operations together");
        state.set("n", 50);
        assert_eq!(view.get("n"), Some(6), "reads repeat");
        assert_eq!(view.modify("n", 0, |n| n * 2), 12);
        assert_eq!(view.reads().get("n"), Some(Some(&json!(5).into())));

        view.mark_read("n", None);
        assert_eq!(view.reads().get("n"), Some(None));
        view.rollback();
        assert_eq!(view.reads(), Reads::default());
        assert_eq!(view.get("n"), Some(50));
    }

    #[test]
    fn reads_that_do_not_repeat_count_with_their_last_value() {
        let state = State::from_iter([("n", json!(5))]);
        let view = state.with_latest_read_tracking();
        assert_eq!(view.get("n"), Some(5));
        state.set("n", 7);
        view.add("n", 1);
        assert_eq!(view.get("n"), Some(8));
        state.set("n", 9);
        view.set("n", 1);
        assert_eq!(view.reads().get("n"), Some(Some(&json!(7).into())));
        assert_eq!(view.try_commit_unchanged().expect("nothing is in the way"), ["n"]);
    }

    #[test]
    fn a_view_on_the_view_reads_through_it() {
        let view = State::from_iter([("a", json!(1)), ("b", json!(1))]).with_read_tracking();
        view.set("b", 2);
        let upper = view.with_delta_tracking();
        upper.set("c", 3);
        for key in ["a", "b", "c"] {
            upper.get::<u32>(key);
        }
        assert_eq!(keys(&view.reads()), ["a"], "the others are pending changes");
        upper.keys();
        assert!(view.reads().is_everything());
    }

    #[test]
    fn a_key_that_is_read_from_its_computed_variable_notes_both() {
        let view = State::from_iter([("derived:risk", json!(1))]).with_read_tracking();
        assert_eq!(view.get("risk"), Some(1));
        assert_eq!(keys(&view.reads()), ["derived:risk", "risk"]);
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
