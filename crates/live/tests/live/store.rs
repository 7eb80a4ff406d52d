//! A live session as a stored one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use sessile_conformance::{Between, Call};
use sessile_live::{LiveEvent, LiveTool, LiveToolContext, Phase, PhaseTrigger, Scheduling, Script};
use sessile_session::{
    BoxError, Commit, CreateSession, Event, EventActions, EventWindow, MemoryStore, OnOverwrite,
    SessionError, SessionKey, SessionService,
};
use sessile_sqlite::SqliteStore;

use crate::common::{call, connect, said, spoke, turn_complete, wrote};

fn key() -> SessionKey {
    SessionKey::new("desk", "ada", "s1").unwrap()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn order() -> LiveTool {
    LiveTool::function("order", "", async |_: Nothing, ctx: LiveToolContext| {
        ctx.state().set("order", 7);
        ctx.state().set("user:orders", 1);
        ctx.state().set("temp:scratch", 1);
        ctx.state().set("turn:noted", 1);
        ctx.state().remove("cart");
        Ok(json!({"number": 7}))
    })
}

fn handle(name: &str) -> Value {
    json!({"sessionResumptionUpdate": {"newHandle": name, "resumable": true}})
}

scenarios! {
    async fn a_turn_becomes_ordinary_events_with_what_changed() {
        let service = SessionService::new(MemoryStore::new());
        let new = CreateSession::new("desk", "ada").with_id("s1").with_state([("cart", json!([1]))]);
        service.create(new).await.unwrap();
        let script = Script::new()
            .send(said("I want "))
            .send(said("this"))
            .send(call("c1", "order", json!({})))
            .wait_for("toolResponse")
            .send(spoke("Ordered."))
            .send(turn_complete());
        let mut session = connect(script, |live| {
            live.name("desk_voice").tool(order()).session(service.clone(), key()).computed("x", ["order"], |_| Some(1))
        })
        .await;
        session.turn().await;
        let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
        let events: Vec<Value> = stored.events().iter().map(|event| serde_json::to_value(&*event.event).unwrap()).collect();
        let told: Vec<_> = events.iter().map(|event| (event["author"].as_str().unwrap(), event["content"].clone())).collect();
        assert_eq!(told, [
            ("user", json!({"role": "user", "parts": [{"text": "I want this"}]})),
            ("desk_voice", json!({"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "order", "args": {}}}]})),
            ("desk_voice", json!({"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "order", "response": {"number": 7}}}]})),
            ("desk_voice", json!({"role": "model", "parts": [{"text": "Ordered."}]})),
        ]);
        assert_eq!(events[3]["turnComplete"], true);
        assert_eq!(events[3]["actions"]["stateDelta"], json!({"cart": null, "live:turn_count": 1, "order": 7, "user:orders": 1}));
        let keys: Vec<_> = stored.state().keys().collect();
        assert_eq!(keys, ["live:turn_count", "order", "user:orders"]); // nothing of session:, turn:, derived:, temp:
        assert!(events.iter().all(|event| event["invocationId"] == events[0]["invocationId"]));
    }

    async fn reopening_restores_state_phase_turns_and_the_resume_handle() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:///{}", folder.path().join("live.db").display());
        let script = Script::new().send(handle("h-1")).send(call("c1", "order", json!({}))).wait_for("toolResponse").send(turn_complete());
        let phases = |live: sessile_live::LiveBuilder| {
            live.phase(Phase::new("ask").with_transition("done", |state| state.contains("order")).on_enter(|state| async move {
                state.modify("entered", 0, |n| n + 1);
            }))
            .phase(Phase::new("done").with_instruction("Say goodbye."))
        };
        {
            let service = SessionService::new(SqliteStore::open_url(&url).await.unwrap());
            let mut session = connect(script, |live| phases(live.tool(order()).session(service, key()).greeting("Hi"))).await;
            session.turn().await;
            session.handle.disconnect().await;
        }
        let service = SessionService::new(SqliteStore::open_url(&url).await.unwrap());
        let mut session = connect(Script::new().wait_for("clientContent").send(turn_complete()), |live| phases(live.session(service, key()).greeting("Hi"))).await;
        assert_eq!(session.state().get::<u32>("order"), Some(7));
        assert_eq!(session.state().get::<u32>("session:turn_count"), Some(1));
        assert_eq!(session.state().get::<u32>("entered"), Some(1)); // it was not entered again
        assert_eq!(session.handle.phase().as_deref(), Some("done"));
        assert_eq!(session.handle.phase_history()[0].trigger, PhaseTrigger::Restored);
        let setup = &session.sent(0, "setup")[0];
        assert_eq!(setup["sessionResumption"], json!({"handle": "h-1"}));
        assert_eq!(setup["systemInstruction"]["parts"][0]["text"], "Say goodbye.");
        assert!(session.sent(0, "clientContent").is_empty()); // no second greeting
        session.handle.send_text("go on").await.unwrap();
        session.turn().await;
        assert_eq!(session.state().get::<u32>("session:turn_count"), Some(2));
    }

    async fn app_and_user_keys_are_shared_with_other_sessions_in_both_directions() {
        let service = SessionService::new(MemoryStore::new());
        let script = Script::new().wait_for("clientContent").send(wrote("ok")).send(turn_complete()).again();
        let mut session = connect(script, |live| live.session(service.clone(), key())).await;
        session.state().set("user:name", "Ada");
        session.handle.send_text("one").await.unwrap();
        session.turn().await;
        assert_eq!(service.user_state("desk", "ada").await.unwrap()["name"], json!("Ada"));
        let mut other = service.create(CreateSession::new("desk", "ada")).await.unwrap();
        let mut event = Event::new("user");
        event.actions = EventActions::from_delta([("user:name", json!("Grace")), ("app:open", json!(true))]);
        service.append(&mut other, event).await.unwrap();
        session.handle.send_text("two").await.unwrap();
        session.turn().await;
        assert_eq!(session.state().get::<String>("user:name").as_deref(), Some("Grace"));
        assert_eq!(session.state().get::<bool>("app:open"), Some(true));
        assert_eq!(service.user_state("desk", "ada").await.unwrap()["name"], json!("Grace"));
    }

    async fn of_two_sessions_that_compute_one_shared_key_in_the_same_turn_the_second_is_refused_if_it_asks_for_that() {
        let service = SessionService::new(MemoryStore::new());
        let script = || Script::new().wait_for("clientContent").send(wrote("ok")).send(turn_complete()).again();
        let other_key = SessionKey::new("desk", "ada", "s2").unwrap();
        let mut first = connect(script(), |live| live.session(service.clone(), key())).await;
        let mut second = connect(script(), |live| live.session(service.clone(), other_key.clone()).on_overwrite(OnOverwrite::Refuse)).await;
        first.state().modify("user:visits", 0, |visits: u32| visits + 1);
        second.state().modify("user:visits", 0, |visits: u32| visits + 5);
        second.state().set("user:name", "Ada");
        second.state().set("own", true);
        first.handle.send_text("hi").await.unwrap();
        first.turn().await;
        second.handle.send_text("hi").await.unwrap();
        let conflict = second.until(|event| matches!(event, LiveEvent::Conflict { .. })).await;
        let LiveEvent::Conflict { key: name, own, stored } = conflict else { unreachable!("it was waited for") };
        assert_eq!((&*name, own.unwrap().as_u64(), stored.unwrap().as_u64()), ("user:visits", Some(5), Some(1)));
        let error = second.error().await;
        assert!(error.contains("\"user:visits\"") && error.contains("transact"), "{error}");
        second.turn().await;
        let shared = service.user_state("desk", "ada").await.unwrap();
        assert_eq!((&shared["visits"], &shared["name"]), (&json!(1).into(), &json!("Ada").into()), "only the one key is left out");
        let stored = service.get(&other_key, EventWindow::ALL).await.unwrap().unwrap();
        assert_eq!(stored.state().get::<bool>("own"), Some(true));
        assert_eq!(stored.events().iter().map(|event| event.text()).collect::<Vec<_>>(), ["hi", "ok"]);
        // From here on it counts from the value that is stored.
        assert_eq!(second.state().modify("user:visits", 0, |visits: u32| visits + 5), 6);
        second.handle.send_text("again").await.unwrap();
        second.turn().await;
        assert_eq!(service.user_state("desk", "ada").await.unwrap()["visits"], json!(6));
        assert_eq!(second.state().get::<u64>("session:error_count"), Some(1));
    }

    async fn a_key_that_is_changed_by_hand_and_in_the_conversation_is_a_conflict() {
        let service = SessionService::new(MemoryStore::new());
        let script = Script::new().wait_for("clientContent").send(turn_complete()).again();
        let mut session =
            connect(script, |live| live.session(service.clone(), key()).on_overwrite(OnOverwrite::Refuse)).await;
        let mut event = Event::new("user");
        event.actions = EventActions::from_delta([("note", json!("by hand")), ("same", json!(1)), ("blind", json!(1))]);
        service.append_to(&key(), event).await.unwrap();
        assert!(!session.state().contains("note"));
        session.state().set("note", "by voice");
        session.state().set("same", 1);
        session.state().set("blind", 2);
        session.handle.send_text("hi").await.unwrap();
        assert!(session.error().await.contains("\"note\""));
        session.turn().await;
        assert_eq!(session.state().get::<String>("note").as_deref(), Some("by hand"));
        let stored = service.get(&key(), EventWindow::NONE).await.unwrap().unwrap();
        assert_eq!(stored.state().get::<String>("note").as_deref(), Some("by hand"));
        assert_eq!(stored.state().get::<u32>("blind"), Some(2), "what was set without a read is simply set");
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(1), "who agrees does not collide");
    }

    async fn what_several_sessions_count_in_transactions_loses_nothing() {
        let service = SessionService::new(MemoryStore::new());
        let mut sessions = Vec::new();
        for number in 0..4 {
            let key = SessionKey::new("desk", "ada", &format!("s{number}")).unwrap();
            let (counting, own) = (service.clone(), key.clone());
            let count = LiveTool::function("count", "", move |_: Nothing, _| {
                let (service, key) = (counting.clone(), own.clone());
                async move {
                    let (calls, _) = service.transact(&key, |state| Ok(state.try_modify("app:calls", 0, |calls: u32| calls + 1)?)).await?;
                    Ok(json!({ "calls": calls }))
                }
            });
            let script = (0..5).fold(Script::new(), |script, turn| {
                script.send(call(&format!("c{turn}"), "count", json!({}))).wait_for("toolResponse").send(turn_complete())
            });
            sessions.push(connect(script, |live| live.tool(count).session(service.clone(), key)).await);
        }
        for session in &mut sessions {
            session.until(|event| matches!(event, LiveEvent::TurnEnd(turn) if turn.number == 5)).await;
            assert_eq!(session.state().get::<u64>("session:error_count"), Some(0));
        }
        assert_eq!(service.app_state("desk").await.unwrap()["calls"], json!(20));
    }

    async fn what_is_left_of_a_turn_is_stored_when_the_session_ends() {
        let service = SessionService::new(MemoryStore::new());
        let script = Script::new().send(said("I was cut")).send(call("c", "never", json!({})));
        let mut session = connect(script, |live| {
            live.session(service.clone(), key()).tool(LiveTool::function("never", "", async |_: Nothing, _| {
                std::future::pending::<Result<(), BoxError>>().await
            }))
        })
        .await;
        session.until(|event| matches!(event, LiveEvent::ToolCall(_))).await;
        session.state().set("kept", 1);
        session.handle.disconnect().await;
        let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
        assert_eq!(stored.state().get::<u32>("kept"), Some(1));
        let answers: Vec<_> = stored.events().iter().flat_map(|event| event.event.function_responses()).cloned().collect();
        assert!(answers[0].response.as_ref().unwrap()["error"].as_str().unwrap().contains("the session ended"));
    }

    async fn what_was_said_is_stored_when_a_callback_panics_at_the_end_of_the_turn() {
        let service = SessionService::new(MemoryStore::new());
        let script = Script::new().send(said("Remember this")).send(spoke("I will.")).send(turn_complete());
        let session = connect(script, |live| {
            live.session(service.clone(), key()).on_turn_complete(|_, state| async move {
                state.set("noted", true);
                panic!("oh no")
            })
        })
        .await;
        assert!(session.handle.closed().await.unwrap().contains("panicked"));
        let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
        let texts: Vec<String> = stored.events().iter().map(|event| event.text()).collect();
        assert_eq!(texts, ["Remember this", "I will."]);
        assert_eq!(stored.events()[1].turn_complete, Some(true));
        assert_eq!(stored.state().get::<bool>("noted"), Some(true));
        assert_eq!(stored.state().get::<u32>("live:turn_count"), Some(1));
    }

    async fn every_call_is_stored_with_an_answer_when_a_callback_panics() {
        let service = SessionService::new(MemoryStore::new());
        let calls = json!({"toolCall": {"functionCalls": [{"id": "bg", "name": "never"}, {"id": "fg", "name": "order"}]}});
        let session = connect(Script::new().send(said("Order it")).send(calls), |live| {
            let never = LiveTool::function("never", "", async |_: Nothing, _| {
                std::future::pending::<Result<(), BoxError>>().await
            });
            live.session(service.clone(), key())
                .tool(never.background(Scheduling::WhenIdle))
                .tool(order())
                .before_tool_response(|_, _| async { panic!("oh no") })
        })
        .await;
        assert!(session.handle.closed().await.unwrap().contains("panicked"));
        let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
        assert_eq!(stored.events()[0].text(), "Order it");
        let answers: Vec<_> = stored.events().iter().flat_map(|event| event.event.function_responses()).cloned().collect();
        let answer = |id: &str| answers.iter().find(|answer| answer.id.as_deref() == Some(id)).unwrap().response.clone().unwrap();
        assert_eq!(answers.len(), 2);
        assert_eq!(answer("fg")["number"], json!(7));
        assert!(answer("bg")["error"].as_str().unwrap().contains("the session ended"));
        assert_eq!(stored.state().get::<u32>("order"), Some(7)); // it was done, so it is kept
    }

    async fn a_key_that_cannot_be_stored_is_an_error_that_names_it_and_the_rest_is_stored() {
        let service = SessionService::new(MemoryStore::new());
        let script = Script::new().wait_for("clientContent").send(turn_complete()).again();
        let mut session = connect(script, |live| live.session(service.clone(), key())).await;
        session.state().set("app:app:x", 1);
        session.state().set("good", 1);
        session.handle.send_text("hi").await.unwrap();
        assert!(session.error().await.contains("app:app:x"));
        session.turn().await;
        let stored = service.get(&key(), EventWindow::NONE).await.unwrap().unwrap();
        assert_eq!(stored.state().get::<u32>("good"), Some(1));
        assert_eq!(session.state().get::<u32>("app:app:x"), Some(1)); // it is still there while the session lasts
    }

    async fn a_value_that_exceeds_the_limit_of_its_scope_keeps_nothing_else_from_being_stored() {
        let service = SessionService::new(MemoryStore::new()).with_max_scope_bytes(1_000);
        let script = Script::new().wait_for("clientContent").send(wrote("ok")).send(turn_complete()).again();
        let mut session = connect(script, |live| live.session(service.clone(), key())).await;
        session.state().set("large", "x".repeat(2_000));
        session.state().set("small", "y".repeat(100));
        session.state().set("user:name", "Ada");
        session.handle.send_text("hi").await.unwrap();
        let error = session.error().await;
        assert!(error.contains("\"large\"") && error.contains("at most 1000"), "{error}");
        session.turn().await;
        session.state().set("later", 1);
        session.handle.send_text("again").await.unwrap();
        session.turn().await;
        let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
        let keys: Vec<_> = stored.state().keys().collect();
        assert_eq!(keys, ["later", "live:turn_count", "small", "user:name"]);
        assert_eq!(stored.events().iter().map(|event| event.text()).collect::<Vec<_>>(), ["hi", "ok", "again", "ok"]);
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(1), "it is told once");
    }

    async fn a_session_that_was_deleted_and_created_again_is_not_written_to() {
        let service = SessionService::new(MemoryStore::new());
        let script = Script::new().wait_for("clientContent").send(wrote("ok")).send(turn_complete()).again();
        let mut session = connect(script, |live| live.session(service.clone(), key())).await;
        session.state().set("own", 1);
        session.handle.send_text("one").await.unwrap();
        session.turn().await;
        service.delete(&key()).await.unwrap();
        let new = CreateSession::new("desk", "ada").with_id("s1").with_state([("new", json!(1))]);
        service.create(new).await.unwrap();
        for text in ["two", "three"] {
            session.state().modify("own", 0, |n: u32| n + 1);
            session.handle.send_text(text).await.unwrap();
            let error = session.error().await;
            assert!(error.contains("deleted and created again"), "{error}");
            session.turn().await;
        }
        let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
        assert_eq!(json!(stored.state().to_map()), json!({"new": 1}));
        assert!(stored.events().is_empty());
        assert!(!session.state().contains("new"), "nor is the other session's state taken in");
    }

    async fn a_store_that_fails_is_an_error_and_the_turn_is_stored_with_the_next() {
        let fails = Arc::<AtomicBool>::default();
        let service = SessionService::new(flaky(fails.clone()));
        let script = Script::new().wait_for("clientContent").send(wrote("ok")).send(turn_complete()).again();
        let mut session = connect(script, |live| live.session(service.clone(), key())).await;
        fails.store(true, Ordering::SeqCst);
        session.state().set("a", 1);
        session.handle.send_text("one").await.unwrap();
        assert!(session.error().await.contains("tried again"));
        session.turn().await;
        fails.store(false, Ordering::SeqCst);
        session.state().set("b", 2);
        session.handle.send_text("two").await.unwrap();
        session.turn().await;
        let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
        let texts: Vec<_> = stored
            .events()
            .iter()
            .filter_map(|event| event.event.content.as_ref()?.parts().first()?.text.clone())
            .collect();
        assert_eq!(texts, ["one", "ok", "two", "ok"]);
        assert_eq!((stored.state().get::<u32>("a"), stored.state().get::<u32>("b")), (Some(1), Some(2)));
    }

    async fn a_state_that_was_changed_by_hand_over_http_is_taken_in() {
        let service = SessionService::new(MemoryStore::new());
        let script = Script::new().wait_for("clientContent").send(turn_complete()).again();
        let mut session = connect(script, |live| live.session(service.clone(), key())).await;
        let mut event = Event::new("user");
        event.actions = EventActions::from_delta([("note", json!("by hand"))]);
        service.append_to(&key(), event).await.unwrap();
        session.handle.send_text("hi").await.unwrap();
        session.turn().await;
        assert_eq!(session.state().get::<String>("note").as_deref(), Some("by hand"));
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    text: String,
}

scenarios! {
    async fn what_cannot_be_stored_keeps_nothing_else_from_being_stored() {
        let service = SessionService::new(flaky(Arc::default()));
        service.create(CreateSession::new("desk", "ada").with_id("s1")).await.unwrap();
        let note = LiveTool::function("note", "", async |note: Note, ctx: LiveToolContext| {
            ctx.state().set("note", note.text);
            ctx.state().modify("notes", 0, |count: u32| count + 1);
            Ok(json!({}))
        });
        let turn = |script: Script, text: &str, spoken: &str| {
            script
                .send(call(&format!("c-{spoken}"), "note", json!({ "text": text })))
                .wait_for("toolResponse")
                .send(spoke(spoken))
                .send(turn_complete())
        };
        let script = turn(Script::new(), "ok", "one");
        let script = turn(script.wait_for("clientContent"), "a\0b", "two \0");
        let script = turn(script.wait_for("clientContent"), "fine", "three");
        let mut session = connect(script, |live| live.tool(note).session(service.clone(), key())).await;
        let notes = async || {
            let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
            (stored.state().get::<String>("note").unwrap(), stored.state().get::<u32>("notes").unwrap())
        };
        session.turn().await;
        assert_eq!(notes().await, ("ok".to_owned(), 1));
        session.handle.send_text("next").await.unwrap();
        session.turn().await;
        assert_eq!(notes().await, ("ok".to_owned(), 2), "the refused value is not stored, and removes nothing");
        session.handle.send_text("next").await.unwrap();
        session.turn().await;
        assert_eq!(notes().await, ("fine".to_owned(), 3), "a value that can be stored is stored again");
        let stored = service.get(&key(), EventWindow::ALL).await.unwrap().unwrap();
        let times: Vec<f64> = stored.events().iter().map(|event| event.time()).collect();
        assert!(times.is_sorted_by(|before, after| before < after), "google-adk orders by time: {times:?}");
        let texts: Vec<String> = stored.events().iter().map(|event| event.text()).collect();
        assert!(texts.contains(&"one".to_owned()) && texts.contains(&"three".to_owned()), "{texts:?}");
    }
}

/// A store that can be switched to refuse appends, and that refuses U+0000 as PostgreSQL does.
fn flaky(fails: Arc<AtomicBool>) -> Between {
    Between::new(move |call| {
        let refused = match call {
            Call::Append(_) if fails.load(Ordering::SeqCst) => {
                Some(SessionError::Backend { action: "append", source: "the disk is gone".into() })
            }
            Call::Append(commit) => holding_zero(commit),
            _ => None,
        };
        async move { refused.map_or(Ok(()), Err) }
    })
}

fn holding_zero(commit: &Commit) -> Option<SessionError> {
    let reason = "it contains U+0000".to_owned();
    let holds_zero = |text: &str| text.contains("\\u0000");
    let delta = &commit.event.actions.state_delta;
    if let Some((key, _)) = delta.values().find(|(_, value)| holds_zero(&value.to_string())) {
        return Some(SessionError::InvalidState { key: key.to_owned(), reason });
    }
    let id = commit.event.id.clone();
    holds_zero(&commit.event.to_stored_json().unwrap()).then_some(SessionError::InvalidEvent { id, reason })
}
