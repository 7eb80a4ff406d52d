//! Schemas: which keys and types a handle lets in.

use serde::Deserialize;
use serde_json::json;
use sessile_state::{
    Change, Delta, Operation, SchemaError, State, StateError, StateKey, StateSchema, ValueType,
};

#[derive(Deserialize)]
struct Address {
    #[expect(dead_code, reason = "only its type is checked")]
    city: String,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only its type is checked")]
#[serde(deny_unknown_fields)]
struct Person {
    name: String,
    age: u8,
    home: Option<Address>,
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

/// The schema's error about one operation; empty if it is admitted.
fn refused(schema: &StateSchema, key: &str, operation: Operation) -> String {
    let mut delta = Delta::new();
    delta.operate(key, operation);
    schema.admit(&delta).err().map_or_else(String::new, |error| error.to_string())
}

/// The JSON of the one change that a schema admits.
fn admitted(schema: &StateSchema, key: &str, operations: impl IntoIterator<Item = Operation>) -> String {
    let mut delta = Delta::new();
    operations.into_iter().for_each(|operation| delta.operate(key, operation));
    let admitted = schema.admit(&delta).expect("it is admitted");
    match admitted.get(key) {
        Some(Change::Operate(operations)) => serde_json::to_string(operations).expect("it is JSON"),
        other => panic!("no operation: {other:?}"),
    }
}

#[test]
fn types_of_run_time_let_in_what_they_say() {
    let types = [
        ("any", ValueType::any(), vec![json!(null), json!(1), json!([1])], vec![]),
        ("string", ValueType::string(), vec![json!("a")], vec![json!(1), json!(null)]),
        ("boolean", ValueType::boolean(), vec![json!(true)], vec![json!(0)]),
        ("integer", ValueType::integer(), vec![json!(-1), json!(u64::MAX)], vec![json!(1.0), json!("1")]),
        ("number", ValueType::number(), vec![json!(1), json!(0.5)], vec![json!("1")]),
        ("object", ValueType::object(), vec![json!({"a": 1})], vec![json!([])]),
        (
            "list of integer",
            ValueType::list(ValueType::integer()),
            vec![json!([]), json!([1, 2])],
            vec![json!([1, "2"]), json!({})],
        ),
        ("string or null", ValueType::string().or_null(), vec![json!(null), json!("")], vec![json!(1)]),
    ];
    for (name, value_type, good, bad) in types {
        assert_eq!(value_type.to_string(), name);
        let schema = StateSchema::new().declare("k", value_type);
        for value in good {
            assert!(schema.check("k", &value).is_ok(), "{name} and {value}");
        }
        for value in bad {
            let error = schema.check("k", &value).expect_err("another type").to_string();
            assert!(
                error.starts_with(&format!("state key `k` is declared as `{name}` and cannot hold")),
                "{error}"
            );
        }
    }
    let schema = StateSchema::new().declare("k", ValueType::list(ValueType::integer()));
    assert_eq!(
        schema.check("k", &json!([1, "2"])).unwrap_err().to_string(),
        "state key `k` is declared as `list of integer` and cannot hold an array: item 1 is a string"
    );
}

#[test]
fn operands_are_checked_by_the_type_that_they_are_added_to() {
    let schema = StateSchema::new()
        .key::<u8>("small")
        .key::<f64>("rate")
        .key::<Vec<String>>("tags")
        .key::<Person>("who")
        .key::<String>("name")
        .declare("points", ValueType::integer())
        .declare("sum", ValueType::number())
        .declare("list", ValueType::list(ValueType::integer()))
        .declare("map", ValueType::object())
        .declare("free", ValueType::any());
    for (key, operation) in [
        ("small", Operation::add(-5)),
        ("small", Operation::add(300)),
        ("rate", Operation::add(0.5)),
        ("rate", Operation::add(-1)),
        ("points", Operation::add(-1)),
        ("sum", Operation::add(0.5)),
        ("free", Operation::add(0.5)),
        ("free", Operation::append([json!(1), json!("2")])),
        ("tags", Operation::append([json!("a")])),
        ("tags", Operation::union([json!("a")])),
        ("list", Operation::union([json!(1)])),
        ("map", Operation::union_fields([("a", json!(1))])),
        ("who", Operation::union_fields([("age", json!(3))])),
        ("who", Operation::union_fields([("home", json!({"city": "Oslo"}))])),
        ("temp:anything", Operation::add(1)),
    ] {
        assert_eq!(refused(&schema, key, operation.clone()), "", "{key} and {operation:?}");
    }
    for (key, operation, said) in [
        ("small", Operation::add(0.5), "is declared as `u8` and cannot take this `add`: 0.5 has a fraction"),
        (
            "points",
            Operation::add(1.0),
            "is declared as `integer` and cannot take this `add`: 1.0 has a fraction",
        ),
        ("name", Operation::add(1), "is declared as `String` and cannot take this `add`: 1 is a number"),
        ("tags", Operation::add(1), "`Vec<String>` and cannot take this `add`"),
        ("tags", Operation::append([json!(1)]), "`Vec<String>` and cannot take this `append`: invalid type"),
        ("list", Operation::append([json!(1), json!("2")]), "cannot take this `append`: item 1 is a string"),
        (
            "list",
            Operation::union([json!(0.5)]),
            "cannot take this `union`: item 0 is a number (it has a fraction",
        ),
        ("points", Operation::append([json!(1)]), "it adds items, and only lists have them"),
        ("list", Operation::union_fields([("a", json!(1))]), "it sets fields, and only objects have them"),
        ("who", Operation::union_fields([("age", json!("old"))]), "invalid type: string"),
        ("who", Operation::union_fields([("agee", json!(3))]), "unknown field"),
        ("who", Operation::union_fields([("home", json!({"town": 1}))]), "missing field"),
        ("nope", Operation::add(1), "state key `nope` (an addition) is not declared"),
    ] {
        let error = refused(&schema, key, operation);
        assert!(error.contains(said), "{key}: {error}");
    }
}

#[test]
fn bounds_hold_for_values_and_travel_with_additions() {
    let schema = StateSchema::new()
        .declare("points", ValueType::integer().at_least(0).at_most(100))
        .declare("share", ValueType::number().at_most(1))
        .declare("list", ValueType::list(ValueType::integer().at_least(0)))
        .declare("few", ValueType::of::<u8>().at_least(5))
        .key::<u32>("count")
        .key::<i64>("signed")
        .key::<std::num::NonZeroU16>("nonzero")
        .key::<Option<i8>>("tiny")
        .key::<f64>("rate");
    for (key, value) in
        [("points", json!(101)), ("share", json!(1.5)), ("list", json!([-1])), ("few", json!(4))]
    {
        let error = schema.check(key, &value).expect_err("out of bounds");
        assert!(matches!(&error, SchemaError::OutOfBounds { key: of, .. } if of == key), "{error}");
    }
    assert!(
        refused(&schema, "list", Operation::append([json!(-1)]))
            .ends_with("-1, which is below the minimum 0")
    );

    let one = |key: &str| admitted(&schema, key, [Operation::add(1)]);
    assert_eq!(one("points"), r#"{"add":1,"min":0,"max":100}"#);
    assert_eq!(one("few"), r#"{"add":1,"min":5,"max":255}"#);
    assert_eq!(one("count"), r#"{"add":1,"min":0,"max":4294967295}"#, "the range of a Rust type bounds it");
    assert_eq!(one("signed"), r#"{"add":1,"max":9223372036854775807}"#);
    assert_eq!(one("nonzero"), r#"{"add":1,"min":1,"max":65535}"#);
    assert_eq!(one("tiny"), r#"{"add":1,"min":-128,"max":127}"#);
    assert_eq!(one("rate"), r#"{"add":1}"#);
    let tighter = Operation::add(1).at_least(-5).at_most(10);
    assert_eq!(
        admitted(&schema, "points", [tighter]),
        r#"{"add":1,"min":0,"max":10}"#,
        "the tighter bound wins"
    );
    let both = admitted(&schema, "points", [Operation::add(-5), Operation::add(5)]);
    assert_eq!(both, r#"[{"add":-5},{"add":5,"min":0,"max":100}]"#, "only what they come to is bounded");
}

#[test]
fn a_handle_with_a_schema_keeps_its_bounds() {
    let state =
        State::new().with_schema(StateSchema::new().declare("points", ValueType::integer().at_least(0)));
    state.set("points", 2);
    assert!(
        refusal(state.try_operate("points", Operation::add(-3)))
            .ends_with("-1, which is below the minimum 0")
    );
    assert!(refusal(state.try_add("points", 0.5)).contains("it has a fraction"));
    assert!(refusal(state.try_set("points", -1)).ends_with("below the minimum 0"));
    state.add("points", -2);
    assert_eq!(state.get("points"), Some(0));
    assert_eq!(state.remove("points"), Some(json!(0)), "a declared key may go");
}
