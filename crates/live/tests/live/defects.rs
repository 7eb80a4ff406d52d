//! One test for each defect that is known of other libraries of this kind, named after what must
//! not happen. `s` is state, `w` the wire, `l` the live session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sessile_live::{
    Extractor, KeyWatch, LiveEvent, LiveTool, LiveToolContext, LiveTurn, Phase, Scheduling, Script,
    TurnExtractor, WirePhase,
};
use sessile_session::{BoxError, EventWindow, MemoryStore, SessionKey, SessionService};
use sessile_state::{State, StateError};

use crate::common::{call, connect, connect_to, said, spoke, turn_complete, wrote};

#[test]
fn s1_modify_loses_no_update() {
    let state = State::new();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..2000).for_each(|_| drop(state.modify("n", 0u32, |n| n + 1).to_string())));
        }
    });
    assert_eq!(state.get::<u32>("n"), Some(16_000));
}

#[test]
fn s2_removals_in_a_view_do_not_touch_the_base() {
    let state = State::new();
    state.set("a", 1);
    state.set("turn:b", 2);
    let view = state.with_delta_tracking();
    view.remove("a");
    view.clear_prefix("turn:");
    view.rename("turn:b", "c");
    assert_eq!(state.keys(), ["a", "turn:b"]);
    view.rollback();
    assert_eq!(view.keys(), ["a", "turn:b"]);
}

#[test]
fn s3_a_value_without_json_is_an_error_of_try_set() {
    let state = State::new();
    let error = state.try_set("bad", HashMap::from([(vec![1], 2)])).unwrap_err();
    assert!(matches!(error, StateError::NotJson { .. }));
    assert!(state.try_set("nan", f64::NAN).is_err());
    assert!(state.is_empty());
}

#[test]
fn s4_a_state_can_be_merged_into_itself() {
    let state = State::new();
    state.set("a", 1);
    state.merge(&state.clone());
    state.merge(&state.with_delta_tracking());
    assert_eq!(state.keys(), ["a"]);
}

#[test]
fn s5_closures_may_use_the_state() {
    let state = State::new();
    state.set("a", 1);
    state.with("a", |_| state.set("a", 2));
    assert_eq!(state.modify("b", 0, |n| n + state.get::<i32>("a").unwrap()), 2);
    let error = state.try_modify("a", 0, |n: i32| state.try_set("a", 9).map(|()| n).unwrap_or(-1));
    assert_eq!(error.unwrap(), -1);
}

#[test]
fn s6_contains_agrees_with_get() {
    let state = State::new();
    state.set("derived:risk", 1);
    assert!(state.contains("risk") && state.get::<i32>("risk").is_some());
}

#[test]
fn s7_modify_of_another_type_is_an_error_and_keeps_the_value() {
    let state = State::new();
    state.set("key", "text");
    assert!(matches!(state.try_modify("key", 0, |n: i32| n + 1), Err(StateError::WrongType { .. })));
    assert_eq!(state.get::<String>("key").as_deref(), Some("text"));
}

#[test]
fn s10_writers_of_different_keys_do_not_wait_for_each_other() {
    let state = State::new();
    state.modify("slow", 0, |n| {
        let other = state.clone();
        std::thread::spawn(move || other.set("quick", 1)).join().unwrap();
        n + 1
    });
    assert_eq!(state.get::<i32>("quick"), Some(1));
}

#[test]
fn s12_a_null_is_a_value_and_absence_is_none() {
    let state = State::new();
    let before = state.snapshot_values(&["a"]);
    state.set("a", Value::Null);
    assert_eq!(state.diff_values(&before, &["a"]), [("a".to_owned(), None, Some(Value::Null.into()))]);
}

#[test]
fn s13_s14_scopes_and_large_values_are_read_without_copies() {
    let state = State::new();
    (0..1000).for_each(|n| state.set(format!("k{n}"), n));
    state.app().set("one", 1);
    assert_eq!(state.app().keys(), ["one"]);
    state.set("large", vec![0; 1000]);
    let (one, other) = (state.get_raw("large").unwrap(), state.get_raw("large").unwrap());
    assert!(std::ptr::eq::<Value>(&*one, &*other));
}

#[test]
fn s15_scopes_modify_and_many_keys_change_at_one_moment() {
    let state = State::new();
    assert_eq!(state.app().modify("total", 0, |n| n + 1), 1);
    state.update([("a", 1), ("b", 2)]);
    assert_eq!(state.keys(), ["a", "app:total", "b"]);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn sets(name: &'static str, key: &'static str) -> LiveTool {
    LiveTool::function(name, "", move |_: Nothing, ctx: LiveToolContext| async move {
        ctx.state().set(key, true);
        Ok(())
    })
}

fn notes(key: &'static str) -> KeyWatch {
    KeyWatch::on(key).then(move |change| async move { change.state.set(format!("seen_{key}"), true) })
}

/// An extractor that keeps what it was given.
struct Keep(Arc<Mutex<Vec<(String, String)>>>);

#[async_trait::async_trait]
impl TurnExtractor for Keep {
    async fn extract(&self, turns: &[Arc<LiveTurn>]) -> Result<Value, BoxError> {
        let last = turns.last().ok_or("no turn")?;
        self.0.lock().unwrap().push((last.user(), last.model()));
        Ok(json!({}))
    }
}

scenarios! {
    /// The old value of a watch is that of its own key, not of the computed variable behind it.
    async fn s8_a_first_write_of_a_shadowed_key_is_a_change() {
        let mut session = connect(Script::new().send(call("c", "set", json!({}))).wait_for("toolResponse").send(turn_complete()), |live| {
            live.computed("risk", ["seen_risk_base"], |_| Some(false))
                .tool(sets("set", "risk"))
                .watch(notes("risk"))
        })
        .await;
        session.turn().await;
        assert_eq!(session.state().get::<bool>("seen_risk"), Some(true));
    }

    async fn s9_a_change_that_is_rolled_back_is_not_seen_by_a_watch() {
        let mut session = connect(Script::new().send(call("c", "fails", json!({}))).wait_for("toolResponse").send(turn_complete()), |live| {
            live.watch(notes("key")).tool(LiveTool::function("fails", "", async |_: Nothing, ctx: LiveToolContext| {
                ctx.state().set("key", 1);
                Err::<(), _>("no".into())
            }))
        })
        .await;
        session.turn().await;
        assert!(!session.state().contains("seen_key") && !session.state().contains("key"));
    }

    /// However many writes come between two looks, the watch sees the change.
    async fn s11_no_change_is_missed_among_many_writes() {
        let mut session = connect(Script::new().send(call("c", "many", json!({}))).wait_for("toolResponse").send(turn_complete()), |live| {
            live.watch(notes("needle")).tool(LiveTool::function("many", "", async |_: Nothing, ctx: LiveToolContext| {
                ctx.state().set("needle", 1);
                (0..5000).for_each(|n| ctx.state().set(format!("hay{n}"), n));
                Ok(())
            }))
        })
        .await;
        session.turn().await;
        assert_eq!(session.state().get::<bool>("seen_needle"), Some(true));
    }

    async fn w1_a_tool_call_does_not_freeze_the_phase() {
        let script = Script::new()
            .send(call("c", "set", json!({})))
            .wait_for("toolResponse")
            .send(wrote("after "))
            .wait_for("clientContent")
            .send(wrote("the call"))
            .send(turn_complete());
        let mut session = connect(script, |live| live.tool(sets("set", "x"))).await;
        session.until(|event| matches!(event, LiveEvent::WirePhase(WirePhase::ToolCallPending))).await;
        session.until(|event| matches!(event, LiveEvent::WirePhase(WirePhase::ModelSpeaking))).await;
        session.holds("session:is_model_speaking", true).await;
        session.handle.send_text("go on").await.unwrap();
        let whole = session.until(|event| matches!(event, LiveEvent::TextComplete(_))).await;
        assert!(matches!(whole, LiveEvent::TextComplete(text) if &*text == "after the call"));
        session.turn().await;
        session.holds("session:phase", "Active").await;
    }

    async fn w2_a_call_without_arguments_is_a_call() {
        let script = Script::new().send(json!({"toolCall": {"functionCalls": [{"id": "c", "name": "set"}, {"id": "d", "name": "set", "args": null}]}}));
        let session = connect(script, |live| live.tool(sets("set", "x"))).await;
        let answers = session.server_got(0, "toolResponse", 1).await;
        assert_eq!(answers[0]["functionResponses"].as_array().unwrap().len(), 2);
        session.holds("x", true).await;
    }

    async fn w3_an_unknown_kind_of_part_costs_only_itself() {
        let script = Script::new().send(json!({"serverContent": {
            "modelTurn": {"parts": [{"fileData": {"fileUri": "gs://x"}}, {"text": "kept"}]}, "turnComplete": true
        }}));
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        assert_eq!(session.handle.turns(1)[0].model(), "kept");
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(0));
    }

    async fn w4_usage_counts_alone_and_beside_a_call() {
        let script = Script::new()
            .send(json!({"usageMetadata": {"totalTokenCount": 1}}))
            .wait_for("clientContent")
            .send(json!({"toolCall": {"functionCalls": [{"id": "c", "name": "set"}]}, "usageMetadata": {"totalTokenCount": 2}}));
        let session = connect(script, |live| live.tool(sets("set", "x"))).await;
        session.holds("session:total_token_count", 1).await;
        session.handle.send_text("go on").await.unwrap();
        session.holds("session:total_token_count", 2).await;
    }

    async fn w5_an_interruption_costs_nothing_of_its_frame() {
        let script = Script::new().send(spoke("I was ")).send(json!({
            "serverContent": {
                "interrupted": true, "inputTranscription": {"text": "stop"}, "outputTranscription": {"text": "saying"}, "turnComplete": true
            },
            "usageMetadata": {"totalTokenCount": 5}
        }));
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        let turn = session.handle.turns(1).remove(0);
        assert_eq!((turn.user().as_str(), turn.model().as_str(), turn.interrupted), ("stop", "I was saying", true));
        assert_eq!(session.state().get::<u32>("session:total_token_count"), Some(5));
    }

    async fn w6_go_away_does_not_cut_the_turn() {
        let first = Script::new()
            .send(json!({"sessionResumptionUpdate": {"newHandle": "h", "resumable": true}}))
            .send(json!({"goAway": {"timeLeft": "20s"}}))
            .wait_for("clientContent")
            .send(wrote("to the end"))
            .send(turn_complete());
        let mut session = connect_to([first, Script::new()], |live| live).await;
        session.until(|event| matches!(event, LiveEvent::GoAway { .. })).await;
        session.handle.send_text("go on").await.unwrap();
        session.turn().await;
        assert_eq!(session.handle.turns(1)[0].model(), "to the end");
        assert_eq!(session.sent(0, "clientContent").len(), 1); // it went to the connection that was there
    }

    async fn w7_a_reconnect_carries_the_handle() {
        let first = Script::new().send(json!({"sessionResumptionUpdate": {"newHandle": "h", "resumable": true}})).cut();
        let mut session = connect_to([first, Script::new()], |live| live).await;
        session.until(|event| matches!(event, LiveEvent::Connected { resumed: true })).await;
        assert_eq!(session.sent(1, "setup")[0]["sessionResumption"]["handle"], "h");
    }

    async fn w8_a_nested_key_does_not_misroute_a_frame() {
        let script = Script::new()
            .send(wrote(r#"say "toolCall" and "goAway" and "setupComplete""#))
            .send(json!({"serverContent": {"groundingMetadata": {"toolCall": {}, "goAway": {}}, "turnComplete": true}}));
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        assert_eq!(session.state().get::<bool>("session:go_away_received"), Some(false));
        assert!(session.handle.turns(1)[0].model().contains("toolCall"));
    }

    async fn w9_a_frame_that_cannot_be_read_is_an_event() {
        let mut session = connect(Script::new().send_text("{\"serverContent\": {"), |live| live).await;
        assert!(session.error().await.contains("not JSON"));
    }

    /// The session itself sees everything, however slow a reader is; a slow reader is told what it
    /// missed.
    async fn w10_a_slow_reader_costs_the_session_nothing() {
        let script = (0..5000).fold(Script::new().with_pace(Duration::ZERO).wait_for("clientContent"), |script, _| script.send(wrote("x")));
        let mut session = connect(script.send(turn_complete()), |live| live).await;
        let mut slow = session.handle.events();
        session.handle.send_text("go on").await.unwrap();
        session.turn().await;
        assert_eq!(session.handle.turns(1)[0].model().len(), 5000);
        assert!(matches!(slow.next().await, Some(LiveEvent::Missed(missed)) if missed > 0));
    }

    async fn w11_only_the_last_turns_are_kept() {
        let script = (0..60).fold(Script::new().with_pace(Duration::ZERO), |script, _| script.send(wrote("x")).send(turn_complete()));
        let mut session = connect(script, |live| live).await;
        for _ in 0..60 {
            session.turn().await;
        }
        let turns = session.handle.turns(1000);
        assert_eq!((turns.len(), turns[0].number), (50, 11));
    }

    async fn l_connected_is_heard_and_its_keys_are_there_every_time() {
        for _ in 0..20 {
            let heard = Arc::new(Mutex::new(0));
            let count = heard.clone();
            let session = connect(Script::new().with_pace(Duration::from_millis(1)), |live| {
                live.on_connected(move |_| {
                    *count.lock().unwrap() += 1;
                    async {}
                })
            })
            .await;
            assert_eq!(*heard.lock().unwrap(), 1);
            for key in ["interrupt_count", "error_count", "elapsed_ms", "remaining_budget_ms", "session_type", "resumable"] {
                assert!(session.state().session().contains(key), "{key}");
            }
        }
    }

    async fn l_turn_keys_are_there_for_everything_that_happens_at_the_end_of_their_turn() {
        let script = Script::new().send(said("hello")).send(call("c", "set", json!({}))).wait_for("toolResponse").send(turn_complete());
        let mut session = connect(script, |live| {
            live.tool(sets("set", "turn:flag"))
                .extract(Extractor::new("keep", Keep(Arc::default())).accept_if(|state| {
                    if state.contains("turn:flag") { Ok(()) } else { Err("it is gone".to_owned()) }
                }))
                .phase(Phase::new("a").with_transition("b", |state| {
                    state.get("session:turn_count") == Some(1) && state.contains("turn:flag")
                }))
                .phase(Phase::new("b"))
        })
        .await;
        session.until(|event| matches!(event, LiveEvent::Extraction { .. })).await;
        session.turn().await;
        assert_eq!(session.handle.phase().as_deref(), Some("b"));
    }

    async fn l_transcripts_are_not_overwritten_by_their_last_word() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let keep = Keep(kept.clone());
        let script = Script::new()
            .send(said("my name "))
            .send(said("is "))
            .send(said("Alice"))
            .send(spoke("Hello "))
            .send(spoke("Alice!"))
            .send(turn_complete())
            .send(spoke("Well?"))
            .send(turn_complete());
        let mut session = connect(script, |live| live.extract(Extractor::new("keep", keep))).await;
        session.turn().await;
        session.turn().await;
        let kept = kept.lock().unwrap().clone();
        assert_eq!(kept[0], ("my name is Alice".to_owned(), "Hello Alice!".to_owned()));
        assert_eq!(kept[1], (String::new(), "Well?".to_owned()));
    }

    async fn l_a_watch_sees_what_a_tool_a_callback_and_another_task_wrote() {
        let script = Script::new().send(call("c", "set", json!({}))).wait_for("toolResponse").send(turn_complete());
        let mut session = connect(script, |live| {
            live.tool(sets("set", "by_tool"))
                .before_tool_response(|responses, state| async move {
                    state.set("by_callback", true);
                    responses
                })
                .watch(notes("by_tool"))
                .watch(notes("by_callback"))
                .watch(notes("by_task"))
        })
        .await;
        session.state().set("by_task", true);
        session.turn().await;
        for key in ["seen_by_tool", "seen_by_callback", "seen_by_task"] {
            assert_eq!(session.state().get::<bool>(key), Some(true), "{key}");
        }
    }

    async fn l_a_computed_dependency_may_be_named_with_its_prefix() {
        let session = connect(Script::new(), |live| {
            live.computed("b", ["derived:a"], |state| Some(state.get::<i64>("a")? * 2)).computed("a", ["x"], |state| state.get::<i64>("x"))
        })
        .await;
        for (x, b) in [(5, 10), (10, 20)] {
            session.state().set("x", x);
            session.holds("derived:b", b).await;
        }
    }

    async fn l_a_computed_value_goes_when_its_inputs_go() {
        let session = connect(Script::new(), |live| live.computed("y", ["x"], |state| state.get::<i64>("x"))).await;
        session.state().set("x", 1);
        session.holds("y", 1).await;
        session.state().remove("x");
        crate::common::eventually("it is gone", || !session.handle.state().contains("y")).await;
    }

    async fn l_when_one_call_is_rejected_the_others_are_run() {
        let script = Script::new().send(json!({"toolCall": {"functionCalls": [{"id": "a", "name": "no"}, {"id": "b", "name": "yes"}]}}));
        let session = connect(script, |live| {
            live.tool(sets("no", "n")).tool(sets("yes", "y")).phase(Phase::new("p").with_tools(["yes"])).on_tool_call(|_, _| async { None })
        })
        .await;
        let answers = session.server_got(0, "toolResponse", 1).await;
        assert_eq!(answers[0]["functionResponses"].as_array().unwrap().len(), 2);
        session.holds("y", true).await;
        assert!(!session.state().contains("n"));
    }

    async fn l_scheduling_is_on_the_result_and_there_is_one_answer() {
        let script = Script::new().send(call("c", "set", json!({}))).wait_for("toolResponse").pause(Duration::from_millis(50)).send(turn_complete());
        let mut session = connect(script, |live| live.tool(sets("set", "x").background(Scheduling::Silent))).await;
        session.turn().await;
        let answers = session.sent(0, "toolResponse");
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0]["functionResponses"][0]["scheduling"], "SILENT");
        assert_eq!(answers[0]["functionResponses"][0]["response"], json!({"result": null}));
    }

    async fn l_two_calls_of_one_tool_keep_their_own_arguments() {
        let script = Script::new()
            .send(json!({"toolCall": {"functionCalls": [{"id": "a", "name": "echo", "args": {"n": 1}}, {"id": "b", "name": "echo", "args": {"n": 2}}]}}))
            .wait_for("toolResponse")
            .send(turn_complete());
        let mut session = connect(script, |live| live.tool(LiveTool::function("echo", "", async |args: Value, _| Ok(args)))).await;
        session.turn().await;
        let answers = session.sent(0, "toolResponse")[0]["functionResponses"].clone();
        for answer in answers.as_array().unwrap() {
            assert_eq!(answer["response"]["n"], if answer["id"] == "a" { 1 } else { 2 });
        }
    }

    async fn l_a_slow_tool_does_not_hold_up_the_conversation_and_can_be_cancelled() {
        let script = Script::new()
            .send(call("c", "slow", json!({})))
            .send(wrote("meanwhile"))
            .send(turn_complete())
            .send(json!({"toolCallCancellation": {"ids": ["c"]}}));
        let mut session = connect(script, |live| {
            live.tool(LiveTool::function("slow", "", async |_: Nothing, _| std::future::pending::<Result<(), BoxError>>().await))
        })
        .await;
        session.turn().await;
        let answers = session.server_got(0, "toolResponse", 1).await;
        assert_eq!(answers[0]["functionResponses"][0]["response"]["error"], "the call was cancelled");
    }

    async fn l_a_background_tool_writes_the_documented_keys() {
        let session = connect(Script::new().send(call("c", "set", json!({}))), |live| live.tool(sets("set", "x").background(Scheduling::WhenIdle))).await;
        session.holds("bg:set_running", false).await;
        session.holds("bg:set_failed", false).await;
        session.holds("bg:set_task_id", "c").await;
    }

    /// Saves are in order, and what was saved is loaded; an id cannot leave its place.
    async fn l_what_was_saved_is_loaded_in_the_order_of_the_turns() {
        let service = SessionService::new(MemoryStore::new());
        let key = SessionKey::new("app", "user", "../../etc/passwd").unwrap();
        let script = (1..=5).fold(Script::new().with_pace(Duration::ZERO), |script, n| script.send(wrote(&n.to_string())).send(turn_complete()));
        let mut session = connect(script, |live| live.session(service.clone(), key.clone())).await;
        for _ in 0..5 {
            session.turn().await;
        }
        session.handle.disconnect().await;
        let stored = service.get(&key, EventWindow::ALL).await.unwrap().unwrap();
        let texts: Vec<_> =
            stored.events().iter().filter_map(|event| event.event.content.as_ref()?.parts()[0].text.clone()).collect();
        assert_eq!(texts, ["1", "2", "3", "4", "5"]);
        let again = connect(Script::new(), |live| live.session(service, key)).await;
        assert_eq!(again.state().get::<u32>("session:turn_count"), Some(5));
    }
}
