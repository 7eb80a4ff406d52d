//! The page that teaches state in live sessions, from top to bottom.

use serde_json::json;
use sessile_live::{KeyWatch, LiveTool, Script};
use sessile_state::{State, StateKey};

use crate::common::{call, connect, turn_complete};

#[test]
fn reading_and_writing() {
    let state = State::new();
    state.set("customer_name", "Alice");
    state.set("turn_count", 5u32);
    state.set("scores", vec![0.8, 0.9, 0.7]);
    let name: Option<String> = state.get("customer_name");
    assert_eq!(name.as_deref(), Some("Alice"));
    let count: u32 = state.get("turn_count").unwrap_or(0);
    assert_eq!(count, 5);
    assert!(state.contains("customer_name"));
    assert_eq!(state.with("customer_name", |value| value.as_str().unwrap().len()), Some(5));
    let removed: Option<serde_json::Value> = state.remove("customer_name");
    assert_eq!(removed, Some(json!("Alice")));
}

#[test]
fn prefixes_and_their_accessors() {
    let state = State::new();
    state.app().set("flag", true);
    assert_eq!(state.get::<bool>("app:flag"), Some(true));
    assert_eq!(state.app().keys(), ["flag"]);
    state.session().set("turn_count", 5);
    state.user().set("name", "Alice");
    state.turn().set("transcript", "hello");
    state.bg().set("task_id", "abc-123");
    state.temp().set("scratch", 42);
    let keys = state.keys();
    assert_eq!(
        keys,
        ["app:flag", "bg:task_id", "session:turn_count", "temp:scratch", "turn:transcript", "user:name"]
    );
    assert_eq!(state.derived().get::<f64>("sentiment_score"), None);
}

#[test]
fn atomic_modify() {
    let state = State::new();
    assert_eq!(state.modify("turn_count", 0u32, |n| n + 1), 1);
    state.modify("muted", false, |muted| !muted);
    assert_eq!(state.get::<bool>("muted"), Some(true));
    state.modify("app:total_score", 0.0f64, |total| total + 2.5);
    assert_eq!(state.app().get::<f64>("total_score"), Some(2.5));
}

#[test]
fn derived_fallback() {
    let state = State::new();
    state.set("derived:risk_level", "high");
    assert_eq!(state.get::<String>("risk_level").as_deref(), Some("high"));
    state.set("score", 1.0);
    state.set("derived:score", 0.5);
    assert_eq!(state.get::<f64>("score"), Some(1.0));
    state.set("derived:risk", 1);
    assert_eq!(state.get::<i32>("app:risk"), None);
}

#[test]
fn typed_keys() {
    const TURN_COUNT: StateKey<u32> = StateKey::new("session:turn_count");
    let state = State::new();
    state.set_key(&TURN_COUNT, 5);
    assert_eq!(state.get_key(&TURN_COUNT), Some(5));
    assert_eq!(state.with_key(&TURN_COUNT, |value| value.as_u64().unwrap()), Some(5));
    assert_eq!(state.get::<u32>("session:turn_count"), Some(5));
}

#[test]
fn delta_tracking() {
    let state = State::new();
    state.set("committed_key", "original");
    let tracked = state.with_delta_tracking();
    tracked.set("new_key", "pending");
    assert!(tracked.contains("new_key"));
    assert!(!state.contains("new_key"));
    assert_eq!(tracked.get::<String>("committed_key").unwrap(), "original");
    tracked.commit();
    assert!(state.contains("new_key"));
    tracked.rollback();
    assert!(state.contains("new_key"));
}

#[test]
fn utility_methods() {
    let state = State::new();
    state.set("name", "Alice");
    state.set("score", 1);
    let before = state.snapshot_values(&["score", "mood"]);
    state.set("score", 99);
    let changed = state.diff_values(&before, &["score", "mood"]);
    assert_eq!(changed, [("score".to_owned(), Some(json!(1).into()), Some(json!(99).into()))]);
    assert_eq!(state.pick(&["name", "score"]).keys(), ["name", "score"]);
    let other = State::new();
    other.set("name", "Bob");
    state.merge(&other);
    assert_eq!(state.get::<String>("name").as_deref(), Some("Bob"));
    state.rename("name", "customer");
    assert_eq!(state.keys(), ["customer", "score"]);
    state.set("turn:x", 1);
    state.clear_prefix("turn:");
    assert!(!state.contains("turn:x"));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

scenarios! {
    /// What `before_tool_response` promotes to state, watches and phases react to.
    async fn state_in_tool_calls() {
        let script = Script::new().send(call("c1", "verify_identity", json!({}))).wait_for("toolResponse").send(turn_complete());
        let mut session = connect(script, |live| {
            live.tool(LiveTool::function("verify_identity", "Verifies", async |_: Nothing, _| {
                Ok(json!({"verified": true}))
            }))
            .on_tool_call(|_calls, _state| async move {
                None // returning None means "auto-dispatch"
            })
            .before_tool_response(|responses, state| async move {
                for r in &responses {
                    if r.name == "verify_identity" && r.response.get("verified") == Some(&json!(true)) {
                        state.set("identity_verified", true);
                    }
                }
                responses
            })
            .watch(KeyWatch::on("identity_verified").became_true().then(|change| async move {
                change.state.set("watched", true);
            }))
        })
        .await;
        session.turn().await;
        assert_eq!(session.state().get::<bool>("watched"), Some(true));
        let speaking: bool = session.state().session().get("is_user_speaking").unwrap_or(true);
        assert!(!speaking);
    }
}
