//! The methods of the Python and TypeScript `State` classes, by their names there. In those,
//! a state holds a committed `value` and a pending `delta`; here that is a delta view.

use serde_json::{Value, json};
use sessile_state::{Delta, State, extract_state_delta, merge_scopes};

/// `State(value=…, delta=…)`.
fn state(value: Value, delta: Value) -> State {
    let Value::Object(value) = value else { panic!("value is an object") };
    let Value::Object(delta) = delta else { panic!("delta is an object") };
    let state = State::from(value).with_delta_tracking();
    state.apply(&Delta::from(delta));
    state
}

#[test]
fn getitem_reads_the_delta_first() {
    let plain = state(json!({"name": "Alice"}), json!({}));
    assert_eq!(plain.get::<String>("name").as_deref(), Some("Alice"));
    let changed = state(json!({"name": "Alice"}), json!({"name": "Bob"}));
    assert_eq!(changed.get::<String>("name").as_deref(), Some("Bob"));
}

#[test]
fn setitem_adds_to_the_delta() {
    let state = state(json!({}), json!({}));
    state.set("name", "Alice");
    assert_eq!(state.get::<String>("name").as_deref(), Some("Alice"));
    assert_eq!(state.delta(), Delta::from_iter([("name", json!("Alice"))]));
}

#[test]
fn contains_looks_in_value_and_delta() {
    let state = state(json!({"name": "Alice"}), json!({"age": 1}));
    assert!(state.contains("name") && state.contains("age") && !state.contains("email"));
}

#[test]
fn get_with_a_default() {
    let state = state(json!({"name": "Alice"}), json!({}));
    assert_eq!(state.get("name").unwrap_or("Unknown".to_owned()), "Alice");
    assert_eq!(state.get("age").unwrap_or(0), 0);
}

#[test]
fn setdefault_sets_once() {
    let state = state(json!({}), json!({}));
    assert_eq!(state.set_default("name", "Alice".to_owned()), "Alice");
    assert_eq!(state.set_default("age", 0), 0);
    assert_eq!(state.set_default("name", "Bob".to_owned()), "Alice");
}

#[test]
fn update_sets_many() {
    let state = state(json!({}), json!({}));
    state.update([("name", json!("Alice")), ("age", json!(30))]);
    assert_eq!(state.delta(), Delta::from_iter([("name", json!("Alice")), ("age", json!(30))]));
}

#[test]
fn has_delta_after_a_write() {
    let state = state(json!({}), json!({}));
    assert!(!state.has_delta());
    state.set("name", "Alice");
    assert!(state.has_delta());
}

#[test]
fn to_dict_is_value_and_delta_together() {
    let state = state(json!({"name": "Alice"}), json!({"age": 30}));
    assert_eq!(Value::from(state.to_map()), json!({"name": "Alice", "age": 30}));
}

#[test]
fn delta_in_action() {
    let state = state(json!({"name": "Alice", "age": 25}), json!({}));
    assert_eq!(state.get::<String>("name").as_deref(), Some("Alice"));
    state.set("age", 26);
    assert_eq!(state.delta(), Delta::from_iter([("age", json!(26))]));
    assert_eq!(state.get::<u32>("age"), Some(26));
    state.set("name", "Bob");
    assert_eq!(state.get::<String>("name").as_deref(), Some("Bob"));
    assert!(state.has_delta());
    assert_eq!(Value::from(state.to_map()), json!({"name": "Bob", "age": 26}));
}

#[test]
fn delta_flow_commits_and_starts_anew() {
    let state = state(json!({"count": 10, "name": "Alice"}), json!({}));
    state.set("count", 15);
    state.set("name", "Bob");
    assert_eq!(state.delta(), Delta::from_iter([("count", json!(15)), ("name", json!("Bob"))]));
    state.commit();
    assert!(!state.has_delta());
    state.set("count", 20);
    assert_eq!(state.delta(), Delta::from_iter([("count", json!(20))]));
    assert_eq!(Value::from(state.to_map()), json!({"count": 20, "name": "Bob"}));
}

#[test]
fn prefix_constants() {
    assert_eq!((State::APP_PREFIX, State::USER_PREFIX, State::TEMP_PREFIX), ("app:", "user:", "temp:"));
    let state = State::new();
    state.set(format!("{}feature_flags", State::APP_PREFIX), ["a"]);
    state.set(format!("{}theme", State::USER_PREFIX), "dark");
    state.set(format!("{}calculation_result", State::TEMP_PREFIX), 7);
    assert!(state.app().contains("feature_flags") && state.user().contains("theme"));
    assert!(state.temp().contains("calculation_result"));
}

#[test]
fn extract_state_delta_separates_scopes() {
    let deltas = extract_state_delta([
        ("app:version", json!("1.0.0")),
        ("user:language", json!("en")),
        ("session_id", json!("session1")),
        ("temp:scratch", json!("dropped")),
        ("app:", json!("the empty name")),
    ]);
    assert_eq!(deltas.app, Delta::from_iter([("version", json!("1.0.0")), ("", json!("the empty name"))]));
    assert_eq!(deltas.user, Delta::from_iter([("language", json!("en"))]));
    assert_eq!(deltas.session, Delta::from_iter([("session_id", json!("session1"))]));
}

#[test]
fn merged_scopes_override_a_session_key_of_the_same_name() {
    let combined = merge_scopes([("x", 1)], [("x", 2)], [("app:x", 3), ("x", 4)]);
    assert_eq!(
        combined.into_iter().collect::<Vec<_>>(),
        [("app:x".to_owned(), 1), ("user:x".to_owned(), 2), ("x".to_owned(), 4)]
    );
}

#[test]
fn names_written_by_hand_with_their_prefix_are_not_prefixed_twice() {
    let combined = merge_scopes([("app:x", 1)], [("user:y", 2), ("y", 3)], []);
    assert_eq!(combined.into_iter().collect::<Vec<_>>(), [("app:x".to_owned(), 1), ("user:y".to_owned(), 3)]);
}

#[test]
fn typescript_has_delete_and_get_all() {
    let state = State::new();
    state.set("user:preferences", json!({"theme": "dark"}));
    state.set("temp:calculation_result", 1);
    assert!(state.contains("user:preferences")); // has
    assert_eq!(state.remove("temp:calculation_result"), Some(json!(1))); // delete
    assert_eq!(Value::from(state.to_map()), json!({"user:preferences": {"theme": "dark"}})); // getAll
    state.update([
        ("step", json!("payment")),
        ("user:last_action", json!("checkout")),
        ("temp:validation_results", json!({"valid": true})),
    ]);
    assert_eq!(state.len(), 4);
}
