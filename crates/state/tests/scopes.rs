//! Every operation of the scoped accessors, and of typed keys.

use serde_json::json;
use sessile_state::{State, StateKey};

fn state_of<const N: usize>(entries: [(&str, i32); N]) -> State {
    let state = State::new();
    state.update(entries);
    state
}

#[test]
fn each_scope_has_every_operation() {
    let state = State::new();
    state.set("outside", 1);
    for (scope, prefix) in [
        (state.app(), "app:"),
        (state.user(), "user:"),
        (state.temp(), "temp:"),
        (state.session(), "session:"),
        (state.turn(), "turn:"),
        (state.bg(), "bg:"),
    ] {
        scope.set("a", 1);
        scope.try_set("b", 2).unwrap();
        assert_eq!(scope.set_default("c", 3), 3);
        scope.update([("d", 4), ("e", 5)]);
        assert_eq!(scope.modify("a", 0, |n| n + 10), 11);
        assert_eq!(scope.try_modify("n", 0, |n| n + 1).unwrap(), 1);
        assert_eq!(scope.get::<u32>("a"), Some(11));
        assert_eq!(scope.try_get::<u32>("absent").unwrap(), None);
        assert_eq!(scope.get_raw("b").unwrap(), json!(2));
        assert_eq!(scope.with("b", |value| value.as_u64()), Some(Some(2)));
        assert!(scope.contains("c") && !scope.contains("outside"));
        assert_eq!(scope.remove("n"), Some(json!(1)));
        assert!(scope.rename("e", "f"));
        assert_eq!(scope.keys(), ["a", "b", "c", "d", "f"]);
        assert_eq!(scope.to_map().into_iter().next_back(), Some(("f".to_owned(), json!(5))));
        assert_eq!(state.get::<u32>(&format!("{prefix}f")), Some(5));
        scope.merge(&state_of([("x1", 1), ("x2", 2)]));
        scope.set_raw("x3", json!([1]));
        scope.try_set_raw("x3", json!([2])).unwrap();
        scope.try_merge(&state_of([("x1", 3)])).unwrap();
        scope.try_update([("x2", 4)]).unwrap();
        assert_eq!(scope.try_set_default("x1", 0).unwrap(), 3);
        assert_eq!(scope.try_remove("x3").unwrap(), Some(json!([2])));
        assert!(!scope.try_rename("x3", "x4").unwrap());
        assert_eq!(scope.try_clear_prefix("none").unwrap(), 0);
        assert_eq!(scope.clear_prefix("x"), 2);
        assert_eq!(scope.clear_prefix(""), 5);
        assert!(scope.keys().is_empty());
    }
    assert_eq!(state.keys(), ["outside"]);
}

#[test]
fn a_scope_ends_where_its_prefix_does() {
    let state = State::new();
    for key in ["app", "app9", "app:", "app:a", "app:z", "app;", "apq:x", "user:a"] {
        state.set(key, 0);
    }
    assert_eq!(state.app().keys(), ["", "a", "z"]);
    assert_eq!(state.clear_prefix("app:"), 3);
    assert_eq!(state.keys(), ["app", "app9", "app;", "apq:x", "user:a"]);
}

#[test]
fn derived_reads_only_itself() {
    let state = State::new();
    state.set("derived:x", 1);
    state.set("y", 2);
    assert_eq!(state.derived().keys(), ["x"]);
    assert_eq!(state.derived().get::<u32>("x"), Some(1));
    assert!(!state.derived().contains("y"));
}

#[test]
fn writes_do_not_fall_back_to_computed_variables() {
    let state = State::new();
    state.set("derived:risk", 7);
    assert_eq!(state.modify("risk", 0, |n| n + 1), 1, "modify starts from the default");
    assert_eq!(state.remove("risk"), Some(json!(1)));
    assert_eq!(state.remove("risk"), None, "remove leaves the computed variable alone");
    assert_eq!(state.get::<u32>("risk"), Some(7));
    assert_eq!(state.set_default("risk", 3), 3);
    assert!(!state.rename("other", "risk2"));
}

#[test]
fn typed_keys_report_wrong_types() {
    const COUNT: StateKey<u32> = StateKey::new("count");
    let state = State::new();
    state.try_set_key(&COUNT, 1).unwrap();
    assert_eq!(state.try_get_key(&COUNT).unwrap(), Some(1));
    assert_eq!(state.try_modify_key(&COUNT, 0, |n| n + 1).unwrap(), 2);
    state.set("count", "text");
    assert!(state.try_get_key(&COUNT).is_err() && state.try_modify_key(&COUNT, 0, |n| n).is_err());
    assert_eq!((COUNT.key(), format!("{COUNT:?}").as_str()), ("count", "StateKey(\"count\")"));
}
