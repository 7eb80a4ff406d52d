//! Undoing changes of shared state gives back what was there before.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sessile_session::{
    ChangedBy, Event, ScopeChange, ScopeKey, ScopeWrite, SessionError, StateMap, apply, evaluate_scope,
};
use sessile_state::{Change, Delta, Operation, SharedValue};

/// Few keys, so that changes meet.
fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", ""]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = SharedValue> {
    let leaf = prop::sample::select(vec![
        "null",
        "true",
        "0",
        "1",
        "1.0",
        "-7",
        "0.1",
        "18446744073709551615",
        "123456789012345678901234567890",
        "\"x\"",
        "\"\"",
    ])
    .prop_map(str::to_owned);
    let nested = leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::btree_map("[a-c]", inner, 0..3).prop_map(|fields| {
                let fields: Vec<_> =
                    fields.iter().map(|(name, field)| format!("{}:{field}", json!(name))).collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    });
    nested.prop_map(|text| SharedValue::from_json(&text).expect("JSON"))
}

fn operation() -> impl Strategy<Value = Operation> {
    let items = || prop::collection::vec(value(), 0..3);
    prop_oneof![
        (-5_i64..5).prop_map(Operation::add),
        (-5_i32..5).prop_map(|n| Operation::add(f64::from(n) / 4.0)),
        items().prop_map(Operation::append),
        items().prop_map(Operation::union),
        prop::collection::btree_map("[a-c]", value(), 0..3).prop_map(Operation::union_fields),
    ]
}

fn delta() -> impl Strategy<Value = Delta> {
    let change = prop_oneof![
        2 => value().prop_map(Change::Set),
        1 => Just(Change::Remove),
        6 => operation().prop_map(|operation| Change::Operate(operation.into())),
    ];
    prop::collection::vec((key(), change), 1..4).prop_map(|changes| {
        let mut delta = Delta::new();
        for (key, change) in changes {
            match change {
                Change::Set(value) => delta.set(key, value),
                Change::Remove => delta.remove(key),
                // One that cannot follow a set of the same delta is left out.
                Change::Operate(operations) => drop(delta.try_operate(key, operations)),
            }
        }
        delta
    })
}

/// Makes a change as stores do; `None` if it is refused, and then nothing changed.
fn make(state: &mut StateMap, version: u64, delta: Delta) -> Option<ScopeChange> {
    let write = ScopeWrite::unconditional(ScopeKey::App("shop".to_owned()), delta, 1.5);
    let evaluated = match evaluate_scope(&write, &|name| state.get(name).cloned()) {
        Ok(evaluated) => evaluated,
        Err(SessionError::Operation { .. }) => return None,
        Err(other) => panic!("{other}"),
    };
    apply(state, &evaluated.results);
    let by = ChangedBy::Request { request: format!("r{version}"), principal: None };
    Some(ScopeChange {
        version,
        time: 1.5,
        by,
        change: write.delta,
        undo: evaluated.undo,
        overwrote: evaluated.overwrote,
    })
}

/// As it is stored, bit by bit, but for the order of fields and for spaces.
fn text(state: &StateMap) -> String {
    in_order(&serde_json::to_string(state).expect("state is JSON"))
}

fn in_order(text: &str) -> String {
    match text.as_bytes().first() {
        Some(b'{') => {
            let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).expect("an object");
            let field = |(name, value): (&String, &&RawValue)| format!("{name:?}:{}", in_order(value.get()));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).expect("a list");
            format!("[{}]", items.iter().map(|item| in_order(item.get())).collect::<Vec<_>>().join(","))
        }
        _ => text.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn undo_inverts_every_change(deltas in prop::collection::vec(delta(), 1..12)) {
        let (mut state, mut seen, mut changes) = (StateMap::new(), Vec::new(), Vec::new());
        for (version, delta) in (1..).zip(deltas) {
            let before = state.clone();
            match make(&mut state, version, delta) {
                Some(change) => {
                    seen.push(before);
                    changes.push(change);
                }
                None => prop_assert_eq!(&state, &before),
            }
        }
        while let (Some(change), Some(before)) = (changes.pop(), seen.pop()) {
            // Histories are stored as JSON.
            let stored = serde_json::to_string(&change).unwrap();
            let change: ScopeChange = serde_json::from_str(&stored).unwrap();
            change.undo(&mut state).unwrap();
            prop_assert_eq!(text(&state), text(&before), "{}", stored);
        }
        prop_assert!(state.is_empty());
    }

    #[test]
    fn a_change_comes_back_from_json(deltas in prop::collection::vec(delta(), 1..6)) {
        let mut state = StateMap::new();
        for change in (1..).zip(deltas).filter_map(|(version, delta)| make(&mut state, version, delta)) {
            let json = serde_json::to_string(&change).unwrap();
            let again: ScopeChange = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&again.change, &change.change, "{}", json);
            prop_assert_eq!((again.version, again.time, &again.by), (change.version, change.time, &change.by));
            prop_assert_eq!(serde_json::to_string(&again).unwrap(), json);
        }
    }
}

/// The size of what undoes a change follows the change, not the value.
#[test]
fn a_long_list_is_not_copied_into_its_history() {
    let list: Vec<Value> = (0..5000).map(|n| json!({ "n": n })).collect();
    let fields: serde_json::Map<String, Value> = (0..5000).map(|n| (format!("f{n}"), json!(n))).collect();
    let mut state: StateMap =
        [("list".to_owned(), Value::from(list).into()), ("map".to_owned(), Value::from(fields).into())]
            .into();
    let before = state.clone();
    let mut delta = Delta::new();
    delta.append("list", [json!(1)]);
    delta.union("list", [json!({"n": 7}), json!(2)]);
    delta.operate("map", Operation::union_fields([("f3", json!("changed")), ("new", json!(1))]));
    let change = make(&mut state, 1, delta).unwrap();
    let json = serde_json::to_value(&change).unwrap();
    assert_eq!(json["undo"], json!({"added": {"list": 2}, "fields": {"map": {"f3": 3}}}));
    assert!(json.to_string().len() < 500);
    change.undo(&mut state).unwrap();
    assert_eq!(state, before);
}

#[test]
fn changes_by_events_and_requests_are_told_apart() {
    let key = sessile_session::SessionKey::new("shop", "ada", "s").unwrap();
    for (by, expected) in [
        (
            ChangedBy::event(&key, &Event { id: "e1".into(), ..Event::new("clerk") }),
            json!({"user": "ada", "session": "s", "event": "e1", "author": "clerk"}),
        ),
        (ChangedBy::creation(&key), json!({"user": "ada", "session": "s", "event": ""})),
        (
            ChangedBy::Request { request: "r1".to_owned(), principal: Some("admin".to_owned()) },
            json!({"request": "r1", "principal": "admin"}),
        ),
        (ChangedBy::Request { request: "r1".to_owned(), principal: None }, json!({"request": "r1"})),
    ] {
        assert_eq!(serde_json::to_value(&by).unwrap(), expected);
        assert_eq!(serde_json::from_value::<ChangedBy>(expected).unwrap(), by);
        assert_eq!(by.is_request("r1"), matches!(by, ChangedBy::Request { .. }));
        assert!(!by.is_request("e1"));
    }
}

/// A state that another program wrote meanwhile.
#[test]
fn undoing_in_a_state_of_other_types_is_refused() {
    let before = [("list", json!([1, 2])), ("map", json!({"a": 1})), ("other", json!(1))];
    let mut state: StateMap = before.map(|(key, value)| (key.to_owned(), value.into())).into();
    let mut delta = Delta::from_iter([("other", json!(2))]);
    delta.append("list", [json!(3), json!(4)]);
    delta.operate("map", Operation::union_fields([("a", json!(2))]));
    let change = make(&mut state, 1, delta).unwrap();
    for (key, other) in
        [("list", json!("text")), ("list", json!({"a": 1})), ("map", json!([1])), ("map", json!(5))]
    {
        let mut state = state.clone();
        state.insert(key.to_owned(), other.into());
        let unchanged = state.clone();
        assert!(change.undo(&mut state).is_err());
        assert_eq!(state, unchanged);
    }
    state.insert("list".to_owned(), json!([3]).into());
    change.undo(&mut state).unwrap();
    assert_eq!(serde_json::to_value(&state).unwrap(), json!({"list": [], "map": {"a": 1}, "other": 1}));
}
