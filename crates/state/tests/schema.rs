//! Schemas: which keys and types a handle lets in.

use serde::Deserialize;
use serde_json::json;
use sessile_state::{SchemaError, State, StateError, StateKey, StateSchema};

#[derive(Deserialize)]
struct Address {
    #[expect(dead_code, reason = "only its type is checked")]
    city: String,
}

fn schema() -> StateSchema {
    const NAME: StateKey<String> = StateKey::new("user:name");
    StateSchema::new()
        .key::<u32>("count")
        .key::<Option<Vec<String>>>("tags")
        .key::<Address>("address")
        .key::<f64>("app:rate")
        .typed_key(&NAME)
}

fn refusal(result: Result<(), StateError>) -> String {
    match result.expect_err("the schema refuses") {
        StateError::Schema(error) => error.to_string(),
        other => panic!("not the schema's refusal: {other}"),
    }
}

#[test]
fn declared_types_are_let_in() {
    let state = State::new().with_schema(schema());
    state.set("count", 3);
    state.set("tags", ["a", "b"]);
    state.set("tags", ());
    state.set("address", json!({"city": "Oslo"}));
    state.app().set("rate", 1);
    state.user().set("name", "Ada");
    assert!(schema().check_all(&state).is_empty());
}

#[test]
fn refusals_name_the_key_and_both_types() {
    let state = State::new().with_schema(schema());
    assert!(
        refusal(state.try_set("count", -1))
            .starts_with("state key `count` is declared as `u32` and cannot hold a number: invalid")
    );
    assert!(
        refusal(state.try_set("tags", [1]))
            .starts_with("state key `tags` is declared as `Option<Vec<String>>` and cannot hold an array")
    );
    assert!(refusal(state.try_set("address", json!({"town": "Oslo"}))).starts_with(
        "state key `address` is declared as `Address` and cannot hold an object: missing field"
    ));
    assert!(
        refusal(state.try_set("user:name", 5))
            .starts_with("state key `user:name` is declared as `String` and cannot")
    );
    assert_eq!(
        refusal(state.try_set("cuont", 5)),
        "state key `cuont` (a number) is not declared in the schema; did you mean `count`?"
    );
    assert_eq!(
        refusal(state.try_set("something_else", 5)),
        "state key `something_else` (a number) is not declared in the schema; declare it, or check its spelling"
    );
    assert!(state.is_empty());
}

#[test]
#[should_panic(expected = "state key `count` is declared as `u32`")]
fn set_panics_with_the_refusal() {
    State::new().with_schema(schema()).set("count", "three");
}

#[test]
fn a_prefix_is_free_until_a_key_with_it_is_declared() {
    let state = State::new().with_schema(schema());
    state.set("temp:anything", 1);
    state.set("derived:risk", 1);
    state.set("custom:x", 1);
    assert!(refusal(state.try_set("app:other", 1)).contains("`app:other`"));
    assert!(refusal(state.try_set("user:other", 1)).contains("`user:other`"));
}

#[test]
fn every_write_is_checked_and_a_refused_one_changes_nothing() {
    let state = State::new();
    state.set("loose", "text");
    let checked = state.with_schema(schema());
    let before = state.to_map();
    assert!(checked.try_update([("count", json!(1)), ("nope", json!(1))]).is_err());
    assert!(checked.try_merge(&State::from_iter([("count", json!("x"))])).is_err());
    assert!(checked.try_rename("loose", "count").is_err());
    assert!(checked.try_set_default("count", "x".to_owned()).is_err());
    assert!(checked.try_modify("nope", 0, |n: u32| n + 1).is_err());
    assert!(checked.try_set_raw("count", json!([])).is_err());
    assert!(checked.with_delta_tracking().try_set("nope", 1).is_err(), "views inherit the schema");
    let view = state.with_delta_tracking();
    view.set("nope", 1);
    assert!(
        view.with_schema(schema()).try_commit().is_err(),
        "what another handle made is checked at the commit"
    );
    assert_eq!(state.to_map(), before);

    checked.set("count", 1);
    assert_eq!(checked.modify("count", 0u32, |n| n + 1), 2, "a refused write leaves no claim behind");
    assert!(checked.rename("count", "count"));
    assert_eq!(checked.remove("loose"), Some(json!("text")), "what is there already may go");
}

#[test]
fn other_handles_of_the_state_stay_unchecked() {
    let state = State::new();
    let checked = state.with_schema(schema());
    state.set("undeclared", 1);
    assert!(checked.contains("undeclared"));
    let problems = schema().check_all(&checked);
    assert!(matches!(problems.as_slice(), [SchemaError::Undeclared { key, .. }] if key == "undeclared"));
}
