//! Random sequences of calls, compared with a plain map as the model: a state and its view always
//! show the same as the map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use sessile_state::{Change, Delta, Scope, State, extract_state_delta, merge_scopes};

type Model = BTreeMap<String, Value>;

#[derive(Debug, Clone)]
enum Call {
    Set(String, Value),
    Remove(String),
    Rename(String, String),
    Modify(String),
    SetDefault(String, i64),
    ClearPrefix(String),
    Update(Vec<(String, Value)>),
    Merge(Vec<(String, Value)>),
    MergeSelf,
}

/// Few different keys, so that calls meet; some with prefixes, some that fall back.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "a",
            "b",
            "risk",
            "derived:risk",
            "derived:a",
            "app:a",
            "app:b",
            "user:a",
            "temp:x",
            ""
        ])
        .prop_map(str::to_owned),
        "[ab:]{0,3}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..3).prop_map(Value::from),
        "[a-c]{1}".prop_map(|field| json!({ field: 1 })),
    ]
}

fn entries() -> impl Strategy<Value = Vec<(String, Value)>> {
    prop::collection::vec((key(), value()), 0..4)
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => (key(), value()).prop_map(|(key, value)| Call::Set(key, value)),
        2 => key().prop_map(Call::Remove),
        1 => (key(), key()).prop_map(|(from, to)| Call::Rename(from, to)),
        2 => key().prop_map(Call::Modify),
        1 => (key(), any::<i64>()).prop_map(|(key, default)| Call::SetDefault(key, default)),
        1 => prop::sample::select(vec!["app:", "a", "derived:", ""]).prop_map(|p| Call::ClearPrefix(p.to_owned())),
        1 => entries().prop_map(Call::Update),
        1 => entries().prop_map(Call::Merge),
        1 => Just(Call::MergeSelf),
    ]
}

fn make(state: &State, call: &Call) {
    match call.clone() {
        Call::Set(key, value) => state.set(key, value),
        Call::Remove(key) => drop(state.remove(&key)),
        Call::Rename(from, to) => drop(state.rename(&from, &to)),
        Call::Modify(key) => drop(state.modify(&key, Value::Null, modified)),
        Call::SetDefault(key, default) => drop(state.set_default(&key, json!(default))),
        Call::ClearPrefix(prefix) => drop(state.clear_prefix(&prefix)),
        Call::Update(entries) => state.update(entries),
        Call::Merge(entries) => state.merge(&entries.into_iter().collect()),
        Call::MergeSelf => state.merge(&state.with_delta_tracking()),
    }
}

fn expect(model: &mut Model, call: &Call) {
    match call.clone() {
        Call::Set(key, value) => drop(model.insert(key, value)),
        Call::Remove(key) => drop(model.remove(&key)),
        Call::Rename(from, to) => {
            if let Some(value) = model.remove(&from) {
                model.insert(to, value);
            }
        }
        Call::Modify(key) => {
            let old = model.get(&key).cloned().unwrap_or(Value::Null);
            model.insert(key, modified(old));
        }
        Call::SetDefault(key, default) => drop(model.entry(key).or_insert(json!(default))),
        Call::ClearPrefix(prefix) => model.retain(|key, _| !key.starts_with(&prefix)),
        Call::Update(entries) | Call::Merge(entries) => model.extend(entries),
        Call::MergeSelf => {}
    }
}

fn modified(value: Value) -> Value {
    json!([value.as_array().map_or(0, Vec::len), "modified"])
}

/// Compares every way of reading.
fn shows(state: &State, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(&state.to_map().into_iter().collect::<Model>(), model);
    prop_assert_eq!(state.keys(), model.keys().cloned().collect::<Vec<_>>());
    prop_assert_eq!(state.len(), model.len());
    let snapshot = state.snapshot();
    for key in model.keys().map(String::as_str).chain(["a", "b", "risk", "x", "app:risk", "derived:zz"]) {
        let fallback = (!key.contains(':')).then(|| model.get(&format!("derived:{key}"))).flatten();
        let expected = model.get(key).or(fallback).cloned();
        prop_assert_eq!(state.get_raw(key).map(Value::from), expected.clone());
        prop_assert_eq!(state.contains(key), expected.is_some());
        prop_assert_eq!(state.get::<Value>(key), expected.clone());
        prop_assert_eq!(state.with(key, Value::clone), expected.clone());
        prop_assert_eq!(snapshot.get_raw(key).map(Value::from), expected.clone());
        prop_assert_eq!(state.pick(&[key]).get_raw(key).map(Value::from), expected);
    }
    let of_app: Vec<_> = model.keys().filter_map(|key| key.strip_prefix("app:")).map(str::to_owned).collect();
    prop_assert_eq!(state.app().keys(), of_app);
    Ok(())
}

proptest! {
    #[test]
    fn a_state_is_a_map(calls in prop::collection::vec(call(), 0..30)) {
        let (state, mut model) = (State::new(), Model::new());
        for call in &calls {
            make(&state, call);
            expect(&mut model, call);
            shows(&state, &model)?;
        }
    }

    #[test]
    fn a_view_is_a_map_over_a_map(
        below in prop::collection::vec(call(), 0..10),
        pending in prop::collection::vec(call(), 0..15),
        deeper in prop::collection::vec(call(), 0..10),
    ) {
        let (state, mut model) = (State::new(), Model::new());
        for call in &below {
            make(&state, call);
            expect(&mut model, call);
        }
        let untouched = model.clone();
        let view = state.with_delta_tracking();
        for call in &pending {
            make(&view, call);
            expect(&mut model, call);
            shows(&view, &model)?;
            shows(&state, &untouched)?;
        }
        let middle = model.clone();
        let inner = view.with_delta_tracking();
        for call in &deeper {
            make(&inner, call);
            expect(&mut model, call);
            shows(&inner, &model)?;
        }
        shows(&view, &middle)?;
        inner.commit();
        shows(&view, &model)?;
        shows(&state, &untouched)?;
        let delta = view.delta();
        view.commit();
        shows(&state, &model)?;
        prop_assert!(!view.has_delta() && !inner.has_delta());

        let replayed = State::from_iter(untouched);
        replayed.apply(&delta);
        shows(&replayed, &model)?;
    }

    #[test]
    fn rollback_leaves_no_trace(
        below in prop::collection::vec(call(), 0..10),
        pending in prop::collection::vec(call(), 0..15),
    ) {
        let (state, mut model) = (State::new(), Model::new());
        for call in &below {
            make(&state, call);
            expect(&mut model, call);
        }
        let view = state.with_delta_tracking();
        for call in &pending {
            make(&view, call);
        }
        view.rollback();
        prop_assert_eq!(view.delta(), Delta::new());
        shows(&view, &model)?;
        view.commit();
        shows(&state, &model)?;
    }

    #[test]
    fn differences_are_what_changed(
        before in prop::collection::vec(call(), 0..10),
        after in prop::collection::vec(call(), 0..10),
    ) {
        let keys = ["a", "b", "risk", "app:a", "user:a"];
        let state = State::new();
        before.iter().for_each(|call| make(&state, call));
        let old = state.snapshot_values(&keys);
        after.iter().for_each(|call| make(&state, call));
        let differences = state.diff_values(&old, &keys);
        for key in keys {
            let (was, is) = (old.get(key).cloned(), state.get_raw(key));
            let listed = differences.iter().find(|(changed, _, _)| changed == key);
            prop_assert_eq!(listed.is_some(), was != is);
            if let Some((_, old, new)) = listed {
                prop_assert_eq!((old, new), (&was, &is));
            }
        }
    }

    #[test]
    fn split_and_merge_are_inverse_but_for_temp(entries in prop::collection::btree_map("((app|user|temp|turn|x):)?[a-c]{0,2}", value(), 0..8)) {
        let scoped = extract_state_delta(entries.clone());
        let owned = |delta: &Delta| -> Vec<(String, Value)> {
            delta.values().map(|(name, value)| (name.to_owned(), Value::clone(value))).collect()
        };
        let combined = merge_scopes(owned(&scoped.app), owned(&scoped.user), owned(&scoped.session));
        let kept: Model = entries.into_iter().filter(|(key, _)| Scope::of(key).0 != Scope::Temp).collect();
        prop_assert_eq!(combined, kept);
    }

    #[test]
    fn a_delta_keeps_the_last_word_on_each_key(words in prop::collection::vec((key(), prop::option::of(value())), 0..20)) {
        let mut delta = Delta::new();
        let mut last = BTreeMap::new();
        for (key, value) in words {
            match &value {
                Some(value) => delta.set(&key, value.clone()),
                None => delta.remove(&key),
            }
            last.insert(key, value);
        }
        prop_assert_eq!(delta.len(), last.len());
        let mut merged = Delta::from_iter([("a", json!("before"))]);
        merged.merge(&delta).unwrap();
        prop_assert_eq!(merged.get("risk"), delta.get("risk"));
        prop_assert!(merged.get("a").is_some());
        merged.retain(|key| last.contains_key(key));
        prop_assert_eq!(&merged, &delta);
        for (key, change) in delta.iter() {
            let expected = last[key].clone().map_or(Change::Remove, |value| Change::Set(value.into()));
            prop_assert_eq!(change, &expected);
        }
    }
}
