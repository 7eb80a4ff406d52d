//! What a state takes, what it refuses, and what the errors say.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sessile_state::{Scope, State, StateError};

fn refusal(state: &State, key: &str, value: impl Serialize) -> String {
    state.set(key, "what was there");
    let error = state.try_set(key, value).expect_err("the value has no JSON form");
    assert_eq!(
        state.get::<String>(key).as_deref(),
        Some("what was there"),
        "a refused write changes nothing"
    );
    error.to_string()
}

#[test]
fn values_without_json_form_are_refused_with_key_and_place() {
    let state = State::new();
    assert_eq!(
        refusal(&state, "score", f64::NAN),
        "cannot store state key `score`: NaN has no JSON form; store null or a string instead"
    );
    assert_eq!(
        refusal(&state, "user:scores", json_like(vec![1.0, f64::INFINITY])),
        "cannot store state key `user:scores`: inf has no JSON form; store null or a string instead \
         (at .scores[1])"
    );
    assert!(refusal(&state, "f32", f32::NEG_INFINITY).contains("-inf has no JSON form"));
    let numbered = HashMap::from([(7, "seven")]);
    assert_eq!(
        refusal(&state, "by_number", &numbered),
        "cannot store state key `by_number`: it is a map with the key 7, and keys of JSON objects are strings; \
         convert its keys to strings"
    );
    let pairs = BTreeMap::from([((1, 2), 3)]);
    assert!(refusal(&state, "pairs", &pairs).contains("a map with the key [1,2]"));
}

#[derive(Serialize)]
struct Scores {
    scores: Vec<f64>,
}

fn json_like(scores: Vec<f64>) -> Scores {
    Scores { scores }
}

#[test]
#[should_panic(expected = "cannot store state key `score`: NaN has no JSON form")]
fn set_panics_where_try_set_fails() {
    State::new().set("score", f64::NAN);
}

#[test]
fn values_nested_too_deep_are_refused() {
    let nested = |levels: usize| (0..levels).fold(json!(1), |value, _| json!([value]));
    let state = State::new();
    state.set("deep", nested(200));
    assert!(refusal(&state, "deeper", nested(201)).contains("nested deeper than 200 levels"));
}

#[test]
fn every_shape_of_rust_value_comes_back() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All {
        unit: (),
        tuple: (u8, char),
        none: Option<u8>,
        some: Option<u8>,
        enums: Vec<Kind>,
        map: BTreeMap<String, i64>,
        by_char: BTreeMap<char, u8>,
        bytes: Vec<u8>,
        big: u64,
        small: i64,
        float: f64,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Kind {
        Plain,
        New(u8),
        Tuple(u8, u8),
        Struct { x: u8 },
    }
    let all = || All {
        unit: (),
        tuple: (1, 'é'),
        none: None,
        some: Some(2),
        enums: vec![Kind::Plain, Kind::New(1), Kind::Tuple(1, 2), Kind::Struct { x: 3 }],
        map: BTreeMap::from([("a".to_owned(), -1)]),
        by_char: BTreeMap::from([('k', 1)]),
        bytes: vec![0, 255],
        big: u64::MAX,
        small: i64::MIN,
        float: 0.1 + 0.2,
    };
    let state = State::new();
    state.set("all", all());
    assert_eq!(state.get::<All>("all"), Some(all()));
    assert_eq!(*state.get_raw("all").unwrap(), serde_json::to_value(all()).unwrap());
}

#[test]
fn integers_beyond_64_bits_are_refused_unless_json_numbers_are_exact() {
    let state = State::new();
    match state.try_set("wide", u128::MAX) {
        Ok(()) => assert_eq!(state.get::<u128>("wide"), Some(u128::MAX)),
        Err(error) => assert!(error.to_string().contains("`wide`"), "{error}"),
    }
}

#[test]
fn null_is_a_value_and_not_absence() {
    let state = State::new();
    state.set("nothing", ());
    assert!(state.contains("nothing"));
    assert_eq!(*state.get_raw("nothing").unwrap(), Value::Null);
    assert_eq!(state.get::<Option<u8>>("nothing"), Some(None));
    assert_eq!(state.get::<Option<u8>>("absent"), None);
    assert_eq!(state.set_default("nothing", Some(1)), None);
}

#[test]
fn try_get_tells_absent_from_wrong_type() {
    let state = State::new();
    state.set("name", "Ada");
    assert_eq!(state.get::<u32>("name"), None);
    assert!(state.try_get::<u32>("absent").unwrap().is_none());
    let error = state.try_get::<u32>("name").unwrap_err();
    assert!(matches!(error, StateError::WrongType { .. }));
    assert_eq!(
        error.to_string(),
        "state key `name` holds a string, which does not read as `u32`: invalid type: string \"…\", expected u32"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_never_overwritten_by_modify_or_set_default() {
    let state = State::new();
    state.set("name", "Ada");
    assert!(matches!(state.try_modify("name", 0, |n: i32| n + 1), Err(StateError::WrongType { .. })));
    assert!(matches!(state.try_set_default("name", 0), Err(StateError::WrongType { .. })));
    assert!(state.try_modify("name", String::new(), |_| "Grace".to_owned()).is_ok());
    assert_eq!(state.get::<String>("name").as_deref(), Some("Grace"));
}

#[test]
fn update_sets_all_or_nothing() {
    let state = State::new();
    let error = state.try_update([("a", 1.0), ("b", f64::NAN)]).unwrap_err();
    assert!(error.to_string().contains("`b`"));
    assert!(state.is_empty());
}

#[test]
fn unicode_empty_and_long_keys_are_keys() {
    let state = State::new();
    let long = "k".repeat(10_000);
    for key in ["", "ключ", "🦀", "a\u{0}b", " ", ":", &long] {
        state.set(key, key);
        state.app().set(key, "scoped");
    }
    for key in ["", "ключ", "🦀", "a\u{0}b", " ", ":", &long] {
        assert_eq!(state.get::<String>(key).as_deref(), Some(key));
        assert_eq!(state.app().get::<String>(key).as_deref(), Some("scoped"));
    }
    assert_eq!(state.get::<String>("app:").as_deref(), Some("scoped"), "the empty name in the app scope");
}

#[test]
fn unknown_scopes_are_named() {
    assert_eq!("user".parse::<Scope>(), Ok(Scope::User));
    assert_eq!(
        "team".parse::<Scope>().unwrap_err().to_string(),
        "`team` is not a scope; the scopes are app, user, session and temp, in lower case"
    );
    for scope in Scope::ALL {
        assert_eq!(scope.to_string().parse(), Ok(scope));
        assert_eq!(Scope::of(&scope.key("name")), (scope, "name"));
    }
}

#[test]
fn debug_output_holds_no_values() {
    let state = State::new();
    state.set("temp:token", "s3cret");
    assert_eq!(format!("{state:?}"), "State { keys: 1, pending: 0 }");
    assert_eq!(format!("{:?}", state.snapshot()), "{\"temp:token\"}");
}

#[test]
fn errors_do_not_carry_what_is_stored() {
    let state = State::new();
    state.set("temp:token", "s3cret".repeat(50_000));
    let error = state.try_get::<u32>("temp:token").unwrap_err().to_string();
    assert!(!error.contains("s3cret") && error.len() < 300, "{error}");
    assert!(matches!(
        state.try_get::<Option<Vec<String>>>("temp:token"),
        Err(StateError::WrongType { expected, .. }) if expected == "Option<Vec<String>>"
    ));
}

#[test]
fn variants_count_as_the_levels_they_make() {
    #[derive(Serialize)]
    enum Nested {
        Tuple(Box<Nested>, u8),
        End,
    }
    let nested = |levels: usize| (0..levels).fold(Nested::End, |inner, _| Nested::Tuple(Box::new(inner), 0));
    let state = State::new();
    assert!(state.try_set("fits", nested(100)).is_ok());
    assert!(refusal(&state, "deeper", nested(101)).contains("nested deeper than 200 levels"));
}

#[test]
fn two_fields_of_one_name_are_refused() {
    #[derive(Serialize)]
    struct Flat {
        a: u8,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }
    let state = State::new();
    let flat = Flat { a: 1, rest: BTreeMap::from([("a".to_owned(), 2)]) };
    assert!(refusal(&state, "flat", flat).contains("two fields named \"a\""));
}

#[test]
fn raw_json_is_taken_if_nothing_of_it_is_lost() {
    use serde_json::value::RawValue;
    let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
    let state = State::new();
    state.set("raw", raw(r#"{"a": [1, 2.5]}"#));
    assert_eq!(state.get_raw("raw").unwrap(), json!({"a": [1, 2.5]}));
    assert!(refusal(&state, "wide", raw("123456789012345678901234567890")).contains("would be rounded"));
    assert!(refusal(&state, "deep", raw(&("[".repeat(201) + &"]".repeat(201)))).contains("nested deeper"));

    let wide = sessile_state::SharedValue::from_json("[123456789012345678901234567890]").unwrap();
    state.set_raw("wide", wide);
    assert_eq!(state.get::<Vec<u128>>("wide"), Some(vec![123_456_789_012_345_678_901_234_567_890]));
    let copy = State::new();
    copy.merge(&state.with_delta_tracking());
    assert_eq!(copy.get_raw("wide").unwrap().to_string(), "[123456789012345678901234567890]");
    assert_eq!(
        serde_json::to_string(&copy.pick(&["wide"])).unwrap(),
        r#"{"wide":[123456789012345678901234567890]}"#
    );
}
