//! The Rust snippets of the state documentation that Sessile implements, one test each, with
//! only the crate's name changed. Live sessions are another crate's.

use serde_json::json;
use sessile_state::{State, StateKey};

#[test]
fn reading_and_writing() {
    let state = State::new();

    state.set("customer_name", "Alice");
    state.set("turn_count", 5u32);
    state.set("scores", vec![0.8, 0.9, 0.7]);

    let name: Option<String> = state.get("customer_name");
    let count: Option<u32> = state.get("turn_count");
    assert_eq!(name.as_deref(), Some("Alice"));
    assert_eq!(count, Some(5));

    let count: u32 = state.get("turn_count").unwrap_or(0);
    assert_eq!(count, 5);
    assert_eq!(state.get("absent").unwrap_or(0), 0);

    assert!(state.contains("customer_name"));

    let removed: Option<serde_json::Value> = state.remove("customer_name");
    assert_eq!(removed, Some(json!("Alice")));
    assert!(!state.contains("customer_name"));
    assert_eq!(state.get::<Vec<f64>>("scores"), Some(vec![0.8, 0.9, 0.7]));
}

#[test]
fn zero_copy_reads() {
    let state = State::new();
    state.set("customer_name", "Alice");

    let len = state.with("customer_name", |v| v.as_str().unwrap().len());
    assert_eq!(len, Some(5));
    assert_eq!(state.with("absent", |_| ()), None);
    assert_eq!(state.get_raw("customer_name").map(|v| v.as_str().unwrap().len()), Some(5));
}

#[test]
fn prefixes_are_a_convention_and_bare_keys_are_fine() {
    let state = State::new();
    for key in [
        "session:is_user_speaking",
        "derived:sentiment_score",
        "turn:transcript",
        "app:order_total",
        "user:name",
        "bg:search_failed",
        "temp:scratch",
        "customer_name",
    ] {
        state.set(key, key);
        assert_eq!(state.get::<String>(key).as_deref(), Some(key));
    }
}

#[test]
fn scoped_accessors() {
    let state = State::new();
    state.set("app:flag", true);
    assert_eq!(state.app().get::<bool>("flag"), Some(true));
    state.app().set("flag", false);
    assert_eq!(state.get::<bool>("app:flag"), Some(false));

    let flag: Option<bool> = state.app().get("flag");
    assert_eq!(flag, Some(false));

    let app_keys: Vec<String> = state.app().keys();
    assert_eq!(app_keys, ["flag"]);

    state.session().set("turn_count", 5);
    state.user().set("name", "Alice");
    state.turn().set("transcript", "hello");
    state.bg().set("task_id", "abc-123");
    state.temp().set("scratch", 42);
    state.set("derived:sentiment_score", 0.25);
    let score: Option<f64> = state.derived().get("sentiment_score");
    assert_eq!(score, Some(0.25));
    assert_eq!(
        state.keys(),
        [
            "app:flag",
            "bg:task_id",
            "derived:sentiment_score",
            "session:turn_count",
            "temp:scratch",
            "turn:transcript",
            "user:name"
        ]
    );
}

#[test]
fn atomic_modify() {
    let state = State::new();
    let new_score = 2.5;

    let new_count = state.modify("turn_count", 0u32, |n| n + 1);
    assert_eq!(new_count, 1);

    state.modify("muted", false, |b| !b);
    assert_eq!(state.get::<bool>("muted"), Some(true));

    state.modify("app:total_score", 0.0f64, |total| total + new_score);
    state.modify("app:total_score", 0.0f64, |total| total + new_score);
    assert_eq!(state.get::<f64>("app:total_score"), Some(5.0));
}

#[test]
fn derived_fallback() {
    let state = State::new();
    state.set("derived:risk_level", "high");

    let risk: Option<String> = state.get("derived:risk_level");
    assert_eq!(risk.as_deref(), Some("high"));
    let risk: Option<String> = state.get("risk_level");
    assert_eq!(risk.as_deref(), Some("high"));

    state.set("score", 1.0);
    state.set("derived:score", 0.5);
    let score: f64 = state.get("score").unwrap();
    assert_eq!(score, 1.0);

    state.set("derived:risk", "low");
    assert_eq!(state.get::<String>("app:risk"), None);
}

#[test]
fn state_key() {
    const TURN_COUNT: StateKey<u32> = StateKey::new("session:turn_count");
    const SENTIMENT: StateKey<f64> = StateKey::new("derived:sentiment_score");
    const USER_NAME: StateKey<String> = StateKey::new("user:name");
    let state = State::new();

    state.set_key(&TURN_COUNT, 5);
    let count: Option<u32> = state.get_key(&TURN_COUNT);
    assert_eq!(count, Some(5));

    let val = state.with_key(&TURN_COUNT, |v| v.as_u64().unwrap());
    assert_eq!(val, Some(5));

    assert_eq!(state.get::<u32>("session:turn_count"), Some(5));
    assert_eq!(state.modify_key(&TURN_COUNT, 0, |n| n + 1), 6);
    assert_eq!(state.get_key(&SENTIMENT), None);
    assert_eq!(state.get_key(&USER_NAME), None);
}

#[test]
fn delta_tracking() {
    let state = State::new();
    state.set("committed_key", "original");

    let tracked = state.with_delta_tracking();

    tracked.set("new_key", "pending");
    assert!(tracked.contains("new_key"));
    assert!(!state.contains("new_key"));

    let val: String = tracked.get("committed_key").unwrap();
    assert_eq!(val, "original");

    tracked.commit();
    assert!(state.contains("new_key"));

    tracked.set("unwanted", 1);
    tracked.rollback();
    assert!(!tracked.contains("unwanted"));
    assert!(!state.contains("unwanted"));
}

#[test]
fn reading_session_signals() {
    let state = State::new();
    state.session().set("elapsed_ms", 1200u64);

    let speaking: bool = state.session().get("is_user_speaking").unwrap_or(false);
    let elapsed: u64 = state.session().get("elapsed_ms").unwrap_or(0);
    let budget: u64 = state.session().get("remaining_budget_ms").unwrap_or(0);
    assert_eq!((speaking, elapsed, budget), (false, 1200, 0));
}

#[test]
fn utility_methods() {
    let state = State::new();
    state.set("score", 1);
    state.set("mood", "calm");
    state.set("name", "Ada");
    state.set("turn:text", "hello");
    let other_state = State::new();
    other_state.set("name", "Grace");

    let snap = state.snapshot_values(&["score", "mood"]);
    state.set("score", 99);
    let diffs = state.diff_values(&snap, &["score", "mood"]);
    assert_eq!(diffs, [("score".to_owned(), Some(json!(1).into()), Some(json!(99).into()))]);

    let subset = state.pick(&["name", "score"]);
    assert_eq!(subset.keys(), ["name", "score"]);
    subset.set("name", "changed in the copy only");
    assert_eq!(state.get::<String>("name").as_deref(), Some("Ada"));

    state.merge(&other_state);
    assert_eq!(state.get::<String>("name").as_deref(), Some("Grace"));

    state.set("old_key", true);
    state.rename("old_key", "new_key");
    assert_eq!((state.contains("old_key"), state.get::<bool>("new_key")), (false, Some(true)));

    state.clear_prefix("turn:");
    assert_eq!(state.keys(), ["mood", "name", "new_key", "score"]);
}
