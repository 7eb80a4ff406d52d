//! Delta views: what they show, what they commit.

use serde_json::{Value, json};
use sessile_state::{Change, Delta, State};

fn state_of<const N: usize>(entries: [(&str, i32); N]) -> State {
    let state = State::new();
    state.update(entries);
    state
}

#[test]
fn removals_are_changes_too() {
    let state = State::from_iter([("a", json!(1)), ("b", json!(2))]);
    let view = state.with_delta_tracking();
    assert_eq!(view.remove("a"), Some(json!(1)));
    assert!(!view.contains("a") && state.contains("a"));
    assert_eq!(view.keys(), ["b"]);
    assert_eq!(view.delta().get("a"), Some(&Change::Remove));
    view.commit();
    assert!(!state.contains("a"));
    assert!(!view.has_delta());
}

#[test]
fn a_removal_counts_whatever_happens_below() {
    let state = State::new();
    let view = state.with_delta_tracking();
    assert_eq!(view.remove("never_there"), None);
    assert!(!view.has_delta(), "removing nothing changes nothing");
    view.set("new", 1);
    assert_eq!(view.remove("new"), Some(json!(1)));
    state.set("new", 2);
    assert!(!view.contains("new"), "what was removed in the view stays removed in it");
    view.commit();
    assert!(!state.contains("new"));

    let mut delta = Delta::new();
    delta.remove("later");
    view.apply(&delta);
    state.set("later", 1);
    assert_eq!(view.delta(), delta);
    assert!(!view.contains("later"));
}

#[test]
fn every_read_sees_base_and_delta_merged() {
    let state = State::from_iter([("app:a", json!(1)), ("app:b", json!(2)), ("plain", json!(3))]);
    let view = state.with_delta_tracking();
    view.set("app:c", 4);
    view.set("app:a", 10);
    view.remove("app:b");
    assert_eq!(view.app().keys(), ["a", "c"]);
    assert_eq!(Value::from(view.app().to_map()), json!({"a": 10, "c": 4}));
    assert_eq!(view.keys(), ["app:a", "app:c", "plain"]);
    assert_eq!(view.pick(&["app:a", "app:b", "plain"]).keys(), ["app:a", "plain"]);
    assert_eq!(view.snapshot_values(&["app:a"])["app:a"], json!(10));
    assert_eq!(view.modify("app:a", 0, |n: i32| n + 1), 11);
    assert_eq!(state.app().get::<u32>("a"), Some(1), "nothing leaks into the base");
    state.set("later", true);
    assert!(view.contains("later"), "a view shows the state below as it is now");
}

#[test]
fn writes_of_several_keys_are_pending_too() {
    let state = state_of([("turn:a", 1), ("turn:b", 2), ("old", 3)]);
    let before = state.to_map();
    let view = state.with_delta_tracking();
    assert_eq!(view.clear_prefix("turn:"), 2);
    assert!(view.rename("old", "new"));
    view.update([("u", 1)]);
    view.merge(&state_of([("m", 1)]));
    assert_eq!(view.set_default("d", 5), 5);
    assert_eq!(view.keys(), ["d", "m", "new", "u"]);
    assert_eq!(state.to_map(), before);
    view.rollback();
    assert_eq!(view.to_map(), before);
    assert!(!view.has_delta());
}

#[test]
fn views_on_views_commit_one_step_down() {
    let state = state_of([("a", 1)]);
    let outer = state.with_delta_tracking();
    let inner = outer.with_delta_tracking();
    inner.set("b", 2);
    inner.remove("a");
    inner.commit();
    assert_eq!(
        (state.keys(), outer.keys(), inner.keys()),
        (vec!["a".to_owned()], vec!["b".to_owned()], vec!["b".to_owned()])
    );
    outer.commit();
    assert_eq!(state.keys(), ["b"]);
}

#[test]
fn commit_and_rollback_twice_or_on_a_plain_state_are_harmless() {
    let state = state_of([("a", 1)]);
    let view = state.with_delta_tracking();
    view.set("a", 2);
    view.commit();
    state.set("a", 3);
    view.commit();
    assert_eq!(state.get::<u32>("a"), Some(3), "the second commit has nothing to write");
    view.rollback();
    view.rollback();
    state.commit();
    state.rollback();
    assert_eq!(state.get::<u32>("a"), Some(3));
    assert!(!state.is_tracking_delta() && view.is_tracking_delta() && !state.has_delta());
}

#[test]
fn computed_variables_show_through_views() {
    let state = state_of([("derived:risk", 1)]);
    let view = state.with_delta_tracking();
    assert_eq!(view.get::<u32>("risk"), Some(1));
    view.set("derived:risk", 2);
    assert_eq!(view.get::<u32>("risk"), Some(2));
    view.set("risk", 3);
    assert_eq!(view.get::<u32>("risk"), Some(3));
    view.remove("risk");
    assert_eq!(view.get::<u32>("risk"), Some(2));
    view.remove("derived:risk");
    assert_eq!(view.get::<u32>("risk"), None);
    assert_eq!(state.get::<u32>("risk"), Some(1));
}

#[test]
fn a_delta_applies_sets_and_removals_at_once() {
    let state = state_of([("a", 1), ("b", 2)]);
    let mut delta = Delta::new();
    delta.set("c", json!(3));
    delta.remove("a");
    state.apply(&delta);
    assert_eq!(state.keys(), ["b", "c"]);
    assert_eq!(delta.values().count(), 1);
    assert_eq!(delta.len(), 2);
}

#[test]
fn a_view_outlives_the_handle_it_was_made_from() {
    let view = state_of([("a", 1)]).with_delta_tracking();
    view.set("b", 2);
    view.commit();
    assert_eq!(view.keys(), ["a", "b"]);
}

#[test]
fn snapshots_do_not_move() {
    let state = State::from_iter([("a", json!({"deep": [1, 2]})), ("derived:d", json!(1))]);
    let view = state.with_delta_tracking();
    view.set("pending", 1);
    let (of_state, of_view) = (state.snapshot(), view.snapshot());
    state.set("a", 0);
    state.set("new", 0);
    state.remove("derived:d");
    view.remove("pending");
    assert_eq!(of_state.keys().collect::<Vec<_>>(), ["a", "derived:d"]);
    assert_eq!(of_view.keys().collect::<Vec<_>>(), ["a", "derived:d", "pending"]);
    assert_eq!(of_state.get_raw("a").unwrap()["deep"][1], json!(2));
    assert!(of_state.contains("d"));
    assert_eq!(Value::from(of_view.to_map()), json!({"a": {"deep": [1, 2]}, "derived:d": 1, "pending": 1}));
}

#[test]
fn merging_a_view_into_what_it_stands_on_copies_only_what_is_pending() {
    let state = state_of([("a", 1), ("b", 2)]);
    let outer = state.with_delta_tracking();
    outer.set("c", 3);
    outer.remove("b");
    let inner = outer.with_delta_tracking();
    inner.set("c", 30);
    inner.set("d", 4);
    state.merge(&inner);
    assert_eq!(Value::from(state.to_map()), json!({"a": 1, "b": 2, "c": 30, "d": 4}));
    let before = state.to_map();
    state.merge(&state);
    assert_eq!(state.to_map(), before);
}

#[test]
fn picked_computed_variables_stay_computed() {
    let state = state_of([("derived:risk", 1), ("plain", 2)]);
    let picked = state.pick(&["risk", "plain", "absent"]);
    assert_eq!(picked.keys(), ["derived:risk", "plain"]);
    assert_eq!(picked.get::<u32>("risk"), Some(1));
}

#[test]
#[should_panic(expected = "more than 100 delta views are stacked")]
fn views_do_not_stack_without_end() {
    (0..=100).fold(State::new(), |state, _| state.with_delta_tracking());
}
