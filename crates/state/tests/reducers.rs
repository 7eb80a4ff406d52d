//! Keys with a reducer: however they are written through a view, what is committed is an operation.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use sessile_state::{Change, Operation, Reducer, Reducers, State, StateKey};

fn reducers() -> Arc<Reducers> {
    let all = [
        ("n", Reducer::Add),
        ("user:log", Reducer::Append),
        ("tags", Reducer::Union),
        ("last", Reducer::Last),
    ];
    Arc::new(all.into_iter().map(|(key, reducer)| (key.to_owned(), reducer)).collect())
}

/// A view of a state with these values.
fn view(values: Value) -> State {
    let Value::Object(values) = values else { unreachable!("the tests give objects") };
    State::from(values).with_reducers(reducers()).with_delta_tracking()
}

/// What the pending change of a key is.
fn pending(view: &State, key: &str) -> Option<Change> {
    view.delta().get(key).cloned()
}

fn operation(operation: Operation) -> Option<Change> {
    Some(Change::Operate(operation.into()))
}

#[test]
fn every_way_to_set_a_key_becomes_the_operation_that_leads_there() {
    let writes: [fn(&State); 7] = [
        |view| view.set("n", 6),
        |view| view.set_raw("n", json!(6)),
        |view| assert_eq!(view.modify("n", 0, |n: i64| n + 1), 6),
        |view| view.update([("n", 6)]),
        |view| view.apply(&json!({"n": 6}).into()),
        |view| view.merge(&State::from_iter([("n", json!(6))])),
        |view| view.set_key(&StateKey::<i64>::new("n"), 6),
    ];
    for write in writes {
        let view = view(json!({"n": 5}));
        write(&view);
        assert_eq!(view.get("n"), Some(6));
        assert_eq!(pending(&view, "n"), operation(Operation::add(1)));
    }
}

#[test]
fn lists_and_objects_become_what_was_added_to_them() {
    let lists = view(json!({"user:log": ["a"], "tags": ["x", "y"]}));
    lists.user().set("log", ["a", "b", "c"]);
    lists.set("tags", ["z", "y", "x"]);
    assert_eq!(pending(&lists, "user:log"), operation(Operation::append(["b", "c"].map(Value::from))));
    assert_eq!(pending(&lists, "tags"), operation(Operation::union(["z"].map(Value::from))));

    let fields = view(json!({"tags": {"a": 1, "b": 2}}));
    fields.set("tags", json!({"b": 3, "a": 1.0, "c": 4}));
    let changed = Operation::union_fields([("b", json!(3)), ("c", json!(4))]);
    assert_eq!(pending(&fields, "tags"), operation(changed));
}

#[test]
fn a_value_that_does_not_change_is_no_change() {
    let view = view(json!({"n": 5, "user:log": ["a"], "tags": ["x"]}));
    view.set("n", 5.0);
    view.set("user:log", ["a"]);
    view.set("tags", ["x"]);
    assert!(!view.has_delta());
}

#[test]
fn what_a_reducer_cannot_express_is_an_error_that_names_replace() {
    let view = view(json!({"n": 5, "user:log": ["a", "b"], "tags": {"a": 1}}));
    let refused: [(&str, Value); 7] = [
        ("n", json!("six")),
        ("n", json!(null)),
        ("user:log", json!(["a"])),
        ("user:log", json!(["b", "a"])),
        ("user:log", json!("a text")),
        ("tags", json!({})),
        ("tags", json!(["a"])),
    ];
    for (key, value) in refused {
        let error = view.try_set(key, &value).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("`replace`"), "{value}: {error}");
    }
    assert!(view.try_remove("n").unwrap_err().to_string().contains("the removal of the key"));
    assert!(view.try_rename("n", "m").is_err() && view.try_rename("other", "n").is_err());
    assert!(view.try_clear_prefix("user:").is_err());
    assert!(!view.has_delta(), "a refused write changes nothing");
    assert_eq!(
        view.try_set("user:log", json!([])).unwrap_err().to_string(),
        "state key `user:log` has the reducer `Append`, which cannot express anything but new items at the end of the \
         list; call `replace` to overwrite the key, ignoring concurrent writes",
    );
}

#[test]
fn replace_sets_and_what_follows_builds_on_it() {
    let view = view(json!({"n": 5}));
    view.replace("n", 100);
    view.modify("n", 0, |n: i64| n + 1);
    assert_eq!(pending(&view, "n"), Some(Change::Set(json!(101).into())));
    view.replace("n", "a text");
    view.user().replace("log", json!([]));
    view.replace_key(&StateKey::<Vec<String>>::new("tags"), Vec::new());
    assert_eq!(view.delta().values().count(), 3);
}

#[test]
fn a_default_is_a_plain_write_because_two_writers_must_not_both_add_it() {
    let view = view(json!({}));
    assert_eq!(view.set_default("n", 100), 100);
    assert_eq!(pending(&view, "n"), Some(Change::Set(json!(100).into())));
}

#[test]
fn keys_with_the_reducer_last_and_states_without_a_view_are_written_plainly() {
    let view = view(json!({"last": 1}));
    view.set("last", 2);
    assert_eq!(pending(&view, "last"), Some(Change::Set(json!(2).into())));

    let base = State::new().with_reducers(reducers());
    base.set("user:log", ["a", "b"]);
    base.set("user:log", ["c"]);
    assert_eq!(base.get_raw("user:log").unwrap(), json!(["c"]));
    assert!(base.remove("user:log").is_some());
}

proptest! {
    /// Writers that each see the same state, and set or modify it: all of them count, in any order
    /// of commits.
    #[test]
    fn writers_side_by_side_all_count(
        start in -100..100_i64,
        writers in prop::collection::vec(prop::collection::vec((any::<bool>(), -9..9_i64), 0..4), 0..5),
        order in any::<prop::sample::Index>(),
    ) {
        let state = State::from_iter([("n", json!(start))]);
        let views: Vec<State> = writers.iter().map(|writes| {
            let view = state.with_reducers(reducers()).with_read_tracking();
            for (sets, by) in writes {
                match sets {
                    true => { let now: i64 = view.get("n").unwrap(); view.set("n", now + by); }
                    false => assert_eq!(view.modify("n", 0, |n: i64| n + by), view.get::<i64>("n").unwrap()),
                }
                let mut log: Vec<i64> = view.get("user:log").unwrap_or_default();
                log.push(*by);
                view.set("user:log", log);
            }
            view
        }).collect();
        let first = order.index(views.len().max(1));
        for view in views.iter().skip(first).chain(views.iter().take(first)) {
            view.commit();
        }
        let all: Vec<i64> = writers.iter().flatten().map(|(_, by)| *by).collect();
        prop_assert_eq!(state.get("n"), Some(start + all.iter().sum::<i64>()));
        let mut log: Vec<i64> = state.get("user:log").unwrap_or_default();
        log.sort_unstable();
        let mut expected = all;
        expected.sort_unstable();
        prop_assert_eq!(log, expected);
    }
}
