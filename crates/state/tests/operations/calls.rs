//! Every call, and what it refuses.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sessile_state::{
    Change, Delta, Operation, Operations, SharedValue, State, StateError, StateKey, StateSchema,
};

fn text(state: &State, key: &str) -> Option<String> {
    state.get_raw(key).map(|value| value.to_string())
}

fn value(text: &str) -> SharedValue {
    SharedValue::from_json(text).expect("JSON")
}

#[test]
fn operations_change_a_state_at_once() {
    let state = State::new();
    state.add("n", 2);
    state.add("n", -5_i64);
    state.add("float", 0.1);
    state.add("float", 0.2_f64);
    state.append("list", ["a"]);
    state.append("list", vec!["b".to_owned(), "a".to_owned()]);
    state.append("list", json!([]));
    state.union("set", [1, 2, 1]);
    state.union("set", json!([2.0, 3]));
    state.union("map", json!({"a": 1, "b": 1}));
    state.union("map", BTreeMap::from([("b", 2)]));
    for (key, expected) in [
        ("n", "-3"),
        ("float", "0.30000000000000004"),
        ("list", r#"["a","b","a"]"#),
        ("set", "[1,2,3]"),
        ("map", r#"{"a":1,"b":2}"#),
    ] {
        assert_eq!(text(&state, key).as_deref(), Some(expected), "{key}");
    }
    assert_eq!(state.keys(), ["float", "list", "map", "n", "set"]);
}

#[test]
fn operations_of_views_are_made_where_they_are_committed() {
    let state = State::from_iter([("n", json!(10)), ("list", json!(["base"]))]);
    let (one, other) = (state.with_delta_tracking(), state.with_delta_tracking());
    one.add("n", 1);
    one.append("list", ["one"]);
    other.add("n", 5);
    other.append("list", ["other"]);
    assert_eq!((one.get("n"), other.get("n"), state.get("n")), (Some(11), Some(15), Some(10)));
    one.commit();
    assert_eq!(other.get("n"), Some(16), "a view shows what is below it now, and its own operations");
    assert_eq!(text(&other, "list").as_deref(), Some(r#"["base","one","other"]"#));
    state.set("n", 100);
    other.commit();
    assert_eq!(state.get("n"), Some(105));
    assert_eq!(text(&state, "list").as_deref(), Some(r#"["base","one","other"]"#));
}

#[test]
fn a_view_holds_operations_until_something_replaces_them() {
    let state = State::from_iter([("n", json!(1)), ("m", json!(1))]);
    let view = state.with_delta_tracking();
    view.add("n", 1);
    view.add("n", 2);
    view.operate("n", Operation::add(-1).at_least(0));
    let delta = view.delta();
    let Some(Change::Operate(operations)) = delta.get("n") else { panic!("{delta:?}") };
    assert_eq!(operations.iter().count(), 3);
    view.set("n", 7);
    view.add("n", 1);
    assert_eq!(view.delta().get("n"), Some(&Change::Set(json!(8).into())));
    view.remove("m");
    view.append("m", [1]);
    assert_eq!(view.delta().get("m"), Some(&Change::Set(json!([1]).into())));
    view.remove("m");
    assert_eq!(view.delta().get("m"), Some(&Change::Remove));
    view.rollback();
    assert!(!view.has_delta());
    view.add("fresh", 1);
    view.rollback();
    view.commit();
    assert!(!state.contains("fresh"));
}

#[test]
fn modify_after_an_operation_sees_it_and_replaces_it() {
    let state = State::from_iter([("n", json!(1))]);
    let view = state.with_delta_tracking();
    view.add("n", 4);
    assert_eq!(view.modify("n", 0, |n: i64| n * 2), 10);
    assert_eq!(view.delta().get("n"), Some(&Change::Set(json!(10).into())));
    view.add("n", 1);
    assert_eq!(view.set_default("n", 0), 11);
    assert_eq!(view.remove("n"), Some(json!(11)));
    view.add("n", 3);
    state.set("n", 50);
    view.commit();
    assert_eq!(state.get("n"), Some(3), "what was removed counts as absent");
}

#[test]
fn nested_views_hand_operations_down() {
    let state = State::from_iter([("n", json!(1)), ("text", json!("t"))]);
    let outer = state.with_delta_tracking();
    let inner = outer.with_delta_tracking();
    outer.add("n", 10);
    inner.add("n", 100);
    assert_eq!((inner.get("n"), outer.get("n")), (Some(111), Some(11)));
    inner.commit();
    assert!(!inner.has_delta());
    assert!(
        matches!(outer.delta().get("n"), Some(Change::Operate(operations)) if operations.iter().count() == 2)
    );
    state.set("n", 2);
    outer.commit();
    assert_eq!(state.get("n"), Some(112));

    // Below is set to something else meanwhile: the inner commit is refused, and stays pending.
    inner.append("list", [1]);
    inner.set("other", 1);
    outer.set("list", "no list");
    let refused = inner.try_commit().unwrap_err();
    assert!(matches!(&refused, StateError::Operation { key, .. } if key == "list"), "{refused}");
    assert!(!outer.contains("other") && inner.has_delta());
    outer.remove("list");
    inner.commit();
    assert_eq!(text(&outer, "list").as_deref(), Some("[1]"));
}

#[test]
fn scopes_and_typed_keys_have_the_same_operations() {
    const POINTS: StateKey<u32> = StateKey::new("user:points");
    const RATE: StateKey<f64> = StateKey::new("app:rate");
    const LOG: StateKey<Vec<String>> = StateKey::new("log");
    let state = State::new();
    state.add_key(&POINTS, 3);
    state.user().add("points", 4);
    state.add_key(&RATE, 0.5);
    assert!(state.try_add_key(&RATE, f64::NAN).is_err());
    state.append_key(&LOG, ["a".to_owned()]);
    state.union_key(&LOG, ["a".to_owned(), "b".to_owned()]);
    state.try_append_key(&LOG, ["c".to_owned()]).unwrap();
    state.try_union_key(&LOG, ["c".to_owned()]).unwrap();
    assert_eq!((state.get_key(&POINTS), state.get_key(&RATE)), (Some(7), Some(0.5)));
    assert_eq!(state.get_key(&LOG).unwrap(), ["a", "b", "c"]);

    state.app().append("list", [1]);
    state.app().union("list", [1, 2]);
    state.temp().operate("n", Operation::add(5).at_most(5));
    assert!(state.temp().try_operate("n", Operation::add(1).at_most(5)).is_err());
    assert!(state.app().try_add("list", 1).is_err());
    assert!(state.app().try_append("rate", [1]).is_err());
    assert!(state.app().try_union("rate", [1]).is_err());
    assert_eq!(text(&state, "app:list").as_deref(), Some("[1,2]"));
    assert_eq!(state.get("temp:n"), Some(5));
}

#[test]
fn refusals_say_what_is_there_and_what_to_do() {
    let state = State::from_iter([
        ("text", json!("t")),
        ("n", json!(1)),
        ("map", json!({"a": 1})),
        ("list", json!([1])),
        ("null", json!(null)),
        ("max", json!(u64::MAX)),
    ]);
    let before = state.to_map();
    let refused = |result: Result<(), StateError>, expected: &str| {
        assert_eq!(result.unwrap_err().to_string(), expected);
    };
    for view in [state.clone(), state.with_delta_tracking()] {
        refused(
            view.try_add("text", 1),
            "cannot change state key `text`: it holds a string, and `add` needs a number; set it to a number first, or replace the whole value",
        );
        refused(
            view.try_append("map", [1]),
            "cannot change state key `map`: it holds an object, and `append` needs a list; set it to a list first, or replace the whole value",
        );
        refused(
            view.try_union("n", [1]),
            "cannot change state key `n`: it holds a number, and `union` needs a list; set it to a list first, or replace the whole value",
        );
        refused(
            view.try_union("list", json!({"a": 1})),
            "cannot change state key `list`: it holds an array, and `union` needs an object; set it to an object first, or replace the whole value",
        );
        refused(
            view.try_add("null", 1),
            "cannot change state key `null`: it holds null, and `add` needs a number; set it to a number first, or replace the whole value",
        );
        refused(
            view.try_add("max", 1),
            "cannot change state key `max`: the sum is beyond what 64-bit integers can hold; replace the whole value",
        );
        refused(
            view.try_operate("n", Operation::add(5).at_most(2.5)),
            "cannot change state key `n`: the sum would be 6, which is above the maximum 2.5",
        );
        refused(
            view.try_append("list", 1),
            "cannot store state key `list`: `append` takes a list, not a number; put the item in a list",
        );
        refused(
            view.try_union("list", "x"),
            "cannot store state key `list`: `union` takes a list or an object, not a string",
        );
        refused(
            view.try_append("list", [f64::NAN]),
            "cannot store state key `list`: NaN has no JSON form; store null or a string instead (at [0])",
        );
        assert!(view.try_add("n", f64::INFINITY).is_err());
        assert!(!view.has_delta());
    }
    assert_eq!(state.to_map(), before);
}

#[test]
#[should_panic(expected = "cannot change state key `name`: it holds a string")]
fn the_short_forms_panic_with_the_text_of_the_error() {
    State::from_iter([("name", json!("Ada"))]).add("name", 1);
}

#[test]
fn a_schema_checks_what_becomes_of_a_value() {
    let schema = StateSchema::new().key::<u8>("count").key::<Vec<String>>("tags").key::<Vec<u8>>("app:bytes");
    for state in
        [State::new().with_schema(schema.clone()), State::new().with_delta_tracking().with_schema(schema)]
    {
        state.add("count", 255);
        let refused = state.try_add("count", 1).unwrap_err();
        assert!(matches!(refused, StateError::Schema(_)), "{refused}");
        assert_eq!(state.get("count"), Some(255));
        assert!(matches!(state.try_add("count", -0.5), Err(StateError::Schema(_))));
        state.append("tags", ["a"]);
        assert!(matches!(state.try_append("tags", [1]), Err(StateError::Schema(_))));
        assert!(matches!(state.try_union("tags", json!([null])), Err(StateError::Schema(_))));
        assert!(matches!(state.try_add("cuont", 1), Err(StateError::Schema(_))));
        assert!(matches!(state.app().try_append("bytes", [256]), Err(StateError::Schema(_))));
        state.app().union("bytes", [255]);
        let mut delta = Delta::new();
        delta.append("tags", [json!("b")]);
        delta.add("count", 1);
        assert!(matches!(state.try_apply(&delta), Err(StateError::Schema(_))), "all of a delta or nothing");
        assert_eq!(state.get::<Vec<String>>("tags").unwrap(), ["a"]);
        delta.remove("count");
        state.apply(&delta);
        assert_eq!(state.get::<Vec<String>>("tags").unwrap(), ["a", "b"]);
        assert!(!state.contains("count"));
    }
}

#[test]
fn operations_of_many_threads_lose_nothing() {
    let state = State::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let state = state.clone();
            scope.spawn(move || {
                for n in 0..200 {
                    match n % 2 {
                        0 => {
                            state.add("n", 1);
                            state.append("list", [thread]);
                        }
                        _ => {
                            let view = state.with_delta_tracking();
                            view.add("n", 1);
                            view.append("list", [thread]);
                            view.commit();
                        }
                    }
                    state.modify("modified", 0, |n: u32| n + 1);
                    state.add("modified", 1);
                }
            });
        }
    });
    assert_eq!(state.get("n"), Some(800));
    assert_eq!(state.get("modified"), Some(1600));
    let list: Vec<u32> = state.get("list").unwrap();
    assert!((0..4).all(|thread| list.iter().filter(|item| **item == thread).count() == 200));
}

#[test]
fn an_operation_waits_for_a_modify_and_refuses_to_be_inside_of_it() {
    let state = State::from_iter([("n", json!(1))]);
    let inside = state.try_modify("n", 0, |n: i64| {
        assert!(matches!(state.try_add("n", 1), Err(StateError::Reentrant { .. })));
        state.add("other", 1);
        n + 1
    });
    assert_eq!(inside.unwrap(), 2);
    assert_eq!(state.get("other"), Some(1));
}

#[test]
fn integers_beyond_64_bits_are_not_added_to() {
    for (held, by, expected) in [
        ("18446744073709551616", json!(1), None),
        ("-9223372036854775809", json!(0.5), None),
        ("1e30", json!(1), Some("1e+30")),
        ("123456789.123456789123456789", json!(1), Some("123456790.12345679")),
        ("-0", json!(1), Some("1")),
        ("-0.0", json!(0), Some("0.0")),
    ] {
        let Value::Number(by) = by else { panic!("a number") };
        let sum = Operation::add(by).apply(Some(&value(held)));
        let sum = sum.ok().map(|sum| sum.to_string());
        assert_eq!(sum.as_deref(), expected, "{held}");
    }
    assert!(Operation::try_add(f64::NAN).is_err() && Operation::try_add(f32::INFINITY).is_err());
    assert_eq!(Operation::add(f32::MAX).apply(None).unwrap().to_string(), "3.4028234663852886e+38");
}

#[test]
fn a_field_that_is_given_twice_is_set_once() {
    let twice = Operation::union_fields([("a", json!(1)), ("b", json!(2)), ("a", json!(3))]);
    assert_eq!(serde_json::to_string(&twice).unwrap(), r#"{"union":{"a":3,"b":2}}"#);
    let read: Operation = serde_json::from_str(r#"{"union": {"a": 1, "b": 2, "a": 3}}"#).unwrap();
    assert_eq!(read, twice);
    // Objects with large numbers keep their text, where a name may be there twice.
    let held = value(r#"{"b": 123456789012345678901234567890, "a": 1, "a": 2}"#);
    let set = Operation::union_fields([("a", json!(3))]).apply(Some(&held)).unwrap();
    assert_eq!(set.to_string(), r#"{"b":123456789012345678901234567890,"a":3}"#);
}

#[test]
fn what_is_no_operation_is_told_so() {
    for (given, expected) in [
        ("1", "a number is not an operation"),
        ("[]", "the list is empty"),
        ("[[]]", "an array is not an operation"),
        ("{}", "unknown operation []"),
        (r#"{"sub": 1}"#, r#"unknown operation ["sub"]"#),
        (r#"{"Add": 1}"#, r#"unknown operation ["Add"]"#),
        (r#"{"add": "1"}"#, "`add` must be a number, not a string"),
        (r#"{"add": null}"#, "`add` must be a number, not null"),
        (r#"{"add": 18446744073709551616}"#, "`add` is beyond 64-bit integers"),
        (r#"{"add": 1, "min": []}"#, "`min` must be a number, not an array"),
        (r#"{"add": 1, "floor": 0}"#, r#"`add` has no field "floor""#),
        (r#"{"add": 1, "append": [1]}"#, r#"`add` has no field "append""#),
        (r#"{"append": 1}"#, "`append` takes a list, not a number"),
        (r#"{"append": [1], "min": 0}"#, r#"`append` has no field "min""#),
        (r#"{"union": "x"}"#, "`union` takes a list or an object, not a string"),
        (r#"[{"add": 1}, {"add": 1, "max": "x"}]"#, "`max` must be a number, not a string"),
    ] {
        let refused = serde_json::from_str::<Operations>(given).unwrap_err().to_string();
        assert!(refused.contains(expected), "{given}: {refused}");
    }
    for given in [r#"{"set": {"a": 1}, "remove": ["a"]}"#, r#"{"set": {"a": 1}, "ops": {"a": {"add": 1}}}"#] {
        let refused = serde_json::from_str::<Delta>(given).unwrap_err().to_string();
        assert!(refused.contains(r#"the key "a" is changed twice"#), "{refused}");
    }
    assert!(serde_json::from_str::<Delta>(r#"{"sets": {}}"#).is_err());
}
