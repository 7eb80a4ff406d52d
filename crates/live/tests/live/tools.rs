//! Every call is answered exactly once, whatever happens to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sessile_live::{
    LiveEvent, LiveTool, LiveToolContext, Phase, Scheduling, Script, ToolOutcome, ToolResponse,
};
use sessile_session::{EventWindow, MemoryStore, SessionKey, SessionService};

use crate::common::{Session, call, connect, connect_to, eventually, turn_complete};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn quick(name: &str) -> LiveTool {
    LiveTool::function(name, "Answers at once", async |_: Nothing, ctx: LiveToolContext| {
        ctx.state().try_modify("runs", 0, |n| n + 1)?;
        Ok(json!({"done": ctx.call().id}))
    })
}

fn slow(name: &str) -> LiveTool {
    LiveTool::function(name, "Never ends", async |_: Nothing, ctx: LiveToolContext| {
        ctx.state().set("half_done", true);
        std::future::pending::<()>().await;
        Ok(json!({}))
    })
}

fn calls(calls: &[(&str, &str)]) -> Value {
    let calls: Vec<_> = calls.iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
    json!({"toolCall": {"functionCalls": calls}})
}

/// Waits until every one of these ids is answered, and checks that each is answered once.
async fn answers(session: &Session, ids: &[&str]) -> Vec<Value> {
    let all = || -> Vec<Value> {
        let frames = session.sent(0, "toolResponse");
        frames.iter().flat_map(|frame| frame["functionResponses"].as_array().unwrap().clone()).collect()
    };
    eventually("all are answered", || all().len() >= ids.len()).await;
    tokio::time::sleep(Duration::from_millis(50)).await; // a second answer would have come by now
    let answers = all();
    let mut answered: Vec<_> = answers.iter().map(|answer| answer["id"].as_str().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, ids);
    answers
}

fn answer<'a>(answers: &'a [Value], id: &str) -> &'a Value {
    &answers.iter().find(|answer| answer["id"] == id).unwrap()["response"]
}

scenarios! {
    async fn run_rejected_overridden_unknown_failed_panicked_and_late_calls_are_all_answered() {
        let script = Script::new().send(calls(&[
            ("a", "quick"), ("b", "forbidden"), ("c", "overridden"), ("d", "unknown"), ("e", "fails"), ("f", "panics"), ("g", "late"),
        ]));
        let mut session = connect(script, |live| {
            live.tool(quick("quick"))
                .tool(quick("forbidden"))
                .tool(quick("overridden"))
                .tool(LiveTool::function("fails", "", async |_: Nothing, ctx: LiveToolContext| {
                    ctx.state().set("failed_write", 1);
                    Err::<(), _>("no luck".into())
                }))
                .tool(LiveTool::function("panics", "", async |_: Nothing, _| -> Result<(), _> { panic!("oh no") }))
                .tool(slow("late").with_timeout(Duration::from_millis(50)))
                .phase(Phase::new("only").with_tools(["quick", "overridden", "fails", "panics", "late"]))
                .on_tool_call(|calls, _| async move {
                    let chosen = calls.iter().find(|call| call.name == "overridden")?;
                    Some(vec![ToolResponse::new(chosen, json!({"by": "the application"}))])
                })
        })
        .await;
        let answers = answers(&session, &["a", "b", "c", "d", "e", "f", "g"]).await;
        assert_eq!(answer(&answers, "a"), &json!({"done": "a"}));
        assert!(answer(&answers, "b")["error"].as_str().unwrap().contains("in the phase \"only\""));
        assert_eq!(answer(&answers, "c"), &json!({"by": "the application"}));
        assert!(answer(&answers, "d")["error"].as_str().unwrap().contains("cannot be used"));
        assert_eq!(answer(&answers, "e"), &json!({"error": "no luck"}));
        assert_eq!(answer(&answers, "f"), &json!({"error": "the tool panicked"}));
        assert!(answer(&answers, "g")["error"].as_str().unwrap().contains("within 50ms"));
        assert_eq!(session.state().get::<u32>("runs"), Some(1));
        assert!(!session.state().contains("failed_write") && !session.state().contains("half_done"));
        let mut outcomes = Vec::new();
        while let Ok(event) = session.events.try_recv() {
            if let LiveEvent::ToolAnswered { response, outcome } = event {
                outcomes.push((response.id.clone(), outcome));
            }
        }
        outcomes.sort_by(|one, other| one.0.cmp(&other.0));
        let outcomes: Vec<_> = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
        assert_eq!(outcomes, [
            ToolOutcome::Completed, ToolOutcome::Rejected, ToolOutcome::Overridden, ToolOutcome::Rejected,
            ToolOutcome::Failed, ToolOutcome::Failed, ToolOutcome::TimedOut,
        ]);
    }

    async fn an_unknown_tool_is_answered() {
        let session = connect(Script::new().send(call("x", "nobody", json!({}))), |live| live).await;
        let answers = answers(&session, &["x"]).await;
        assert_eq!(answer(&answers, "x"), &json!({"error": "there is no tool \"nobody\""}));
    }

    async fn calls_of_one_message_run_at_the_same_time() {
        let meet = Arc::new(tokio::sync::Barrier::new(2));
        let session = connect(Script::new().send(calls(&[("a", "meets"), ("b", "meets")])), move |live| {
            live.tool(LiveTool::function("meets", "", move |_: Nothing, _| {
                let meet = meet.clone();
                async move {
                    meet.wait().await;
                    Ok("met")
                }
            }))
        })
        .await;
        let answers = answers(&session, &["a", "b"]).await;
        assert_eq!(answer(&answers, "a"), &json!({"result": "met"}));
    }

    async fn a_cancelled_call_is_stopped_leaves_nothing_and_is_answered_once() {
        let script = Script::new()
            .send(calls(&[("a", "slow"), ("b", "quick")]))
            .pause(Duration::from_millis(50))
            .send(json!({"toolCallCancellation": {"ids": ["a", "never heard of"]}}));
        let session = connect(script, |live| live.tool(slow("slow")).tool(quick("quick"))).await;
        let answers = answers(&session, &["a", "b"]).await;
        assert_eq!(answer(&answers, "a"), &json!({"error": "the call was cancelled"}));
        assert!(!session.state().contains("half_done"));
        assert_eq!(session.state().get::<u32>("runs"), Some(1));
    }

    async fn a_background_tool_lets_the_conversation_go_on_and_answers_with_scheduling() {
        let release = Arc::new(tokio::sync::Notify::new());
        let gate = release.clone();
        let script = Script::new().send(call("s", "search", json!({}))).send(turn_complete()).wait_for("toolResponse").send(turn_complete());
        let mut session = connect(script, move |live| {
            let gate = gate.clone();
            live.tool(
                LiveTool::function("search", "", move |_: Nothing, _| {
                    let gate = gate.clone();
                    async move {
                        gate.notified().await;
                        Ok(json!({"hits": 3}))
                    }
                })
                .background(Scheduling::Interrupt),
            )
        })
        .await;
        session.turn().await; // although the tool still runs
        let bg = session.state().clone();
        assert_eq!(bg.bg().get::<String>("search_task_id").as_deref(), Some("s"));
        assert_eq!(bg.bg().get::<bool>("search_running"), Some(true));
        release.notify_one();
        session.turn().await;
        let frames = session.sent(0, "toolResponse");
        assert_eq!(frames[0]["functionResponses"][0]["scheduling"], "INTERRUPT");
        assert_eq!(bg.bg().get::<bool>("search_running"), Some(false));
        assert_eq!(bg.bg().get::<bool>("search_failed"), Some(false));
        assert_eq!(bg.bg().get::<Value>("search_result"), Some(json!({"hits": 3})));
    }

    async fn a_background_tool_that_fails_says_so_in_its_keys() {
        let session = connect(Script::new().send(call("s", "search", json!({}))), |live| {
            let search = LiveTool::function("search", "", async |_: Nothing, _| Err::<(), _>("offline".into()));
            live.tool(search.background(Scheduling::Silent))
        })
        .await;
        session.holds("bg:search_failed", true).await;
        session.holds("bg:search_error", "offline").await;
        session.holds("bg:search_running", false).await;
    }

    async fn a_callback_that_drops_invents_or_doubles_answers_changes_no_count() {
        let script = Script::new().send(calls(&[("a", "quick"), ("b", "quick")]));
        let mut session = connect(script, |live| {
            live.tool(quick("quick")).before_tool_response(|responses, _| async move {
                let mut changed = responses[0].clone();
                changed.response = json!({"changed": true});
                let invented = ToolResponse { id: "z".to_owned(), ..changed.clone() };
                vec![changed.clone(), changed, invented]
            })
        })
        .await;
        let answers = answers(&session, &["a", "b"]).await;
        assert!(answers.iter().any(|answer| answer["response"] == json!({"changed": true})));
        assert!(session.error().await.contains("was left out"));
    }

    async fn arguments_that_do_not_fit_are_answered_with_what_is_wrong() {
        #[derive(serde::Deserialize, schemars::JsonSchema)]
        struct Args {
            #[expect(dead_code, reason = "it is never read")]
            count: u32,
        }
        let session = connect(Script::new().send(call("a", "f", json!({"count": "many"}))), |live| {
            live.tool(LiveTool::function("f", "", async |_: Args, _| Ok(())))
        })
        .await;
        let answers = answers(&session, &["a"]).await;
        assert!(answer(&answers, "a")["error"].as_str().unwrap().contains("do not fit"));
    }

    async fn a_new_conversation_is_not_sent_answers_to_calls_of_the_old_one() {
        let started = Arc::new(AtomicUsize::new(0));
        let count = started.clone();
        let first = Script::new().send(call("old", "slow", json!({}))).pause(Duration::from_millis(60)).cut();
        let second = Script::new().send(call("new", "quick", json!({}))).wait_for("toolResponse").send(turn_complete());
        let mut session = connect_to([first, second], move |live| {
            live.tool(LiveTool::function("slow", "", move |_: Nothing, _| {
                count.fetch_add(1, Ordering::SeqCst);
                async { std::future::pending::<Result<(), _>>().await }
            }))
            .tool(quick("quick"))
        })
        .await;
        let lost = session.until(|event| matches!(event, LiveEvent::ToolAnswered { .. })).await;
        assert!(matches!(lost, LiveEvent::ToolAnswered { outcome: ToolOutcome::Cancelled, .. }));
        session.turn().await;
        assert_eq!(started.load(Ordering::SeqCst), 1);
        let frames = session.sent(1, "toolResponse");
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0]["functionResponses"][0]["id"], "new");
    }

    async fn an_answer_that_is_ready_only_after_the_conversation_began_anew_is_left_out_and_it_is_said() {
        let first = Script::new().send(call("old", "quick", json!({}))).pause(Duration::from_millis(60)).cut();
        let mut session = answered_after_reconnecting(first).await;
        assert!(session.error().await.contains("lost"));
        assert!(session.error().await.contains("an answer of a tool was left out"));
        session.handle.send_text("still there?").await.unwrap();
        session.server_got(1, "clientContent", 1).await;
        assert!(session.sent(1, "toolResponse").is_empty());
    }

    async fn an_answer_that_is_ready_only_after_the_conversation_was_resumed_is_sent() {
        let handle = json!({"sessionResumptionUpdate": {"newHandle": "h", "resumable": true}});
        let first = Script::new().send(handle).send(call("old", "quick", json!({}))).pause(Duration::from_millis(60)).cut();
        let session = answered_after_reconnecting(first).await;
        let frames = session.server_got(1, "toolResponse", 1).await;
        assert_eq!(frames[0]["functionResponses"][0]["id"], "old");
    }

    async fn the_result_of_a_tool_that_a_lost_connection_stopped_is_reported_and_stored_as_lost() {
        let service = SessionService::new(MemoryStore::new());
        let key = SessionKey::new("desk", "ada", "s1").unwrap();
        let first = Script::new().send(call("old", "slow", json!({}))).pause(Duration::from_millis(60)).cut();
        let second = Script::new().send(turn_complete());
        let mut session = connect_to([first, second], |live| {
            live.tool(slow("slow").background(Scheduling::WhenIdle)).session(service.clone(), key.clone())
        })
        .await;
        let lost = session.until(|event| matches!(event, LiveEvent::ToolAnswered { .. })).await;
        let LiveEvent::ToolAnswered { response, outcome } = lost else { unreachable!("it was waited for") };
        assert_eq!(outcome, ToolOutcome::Cancelled);
        let reason = "the connection was lost before the tool answered";
        assert_eq!(response.response, json!({ "error": reason }));
        session.turn().await;
        assert!(!session.state().contains("half_done"));
        assert_eq!(session.state().get::<bool>("bg:slow_running"), Some(false));
        assert_eq!(session.state().get::<String>("bg:slow_error").as_deref(), Some(reason));
        let stored = service.get(&key, EventWindow::ALL).await.unwrap().unwrap();
        let answers: Vec<_> = stored.events().iter().flat_map(|event| event.event.function_responses()).cloned().collect();
        assert_eq!(answers.len(), 1);
        assert_eq!(answers[0].id.as_deref(), Some("old"));
        assert_eq!(answers[0].response.as_ref().unwrap()["error"], json!(reason));
        assert!(session.sent(1, "toolResponse").is_empty());
    }
}

/// A session whose answer to the first connection's call is held back until there is a second
/// connection.
async fn answered_after_reconnecting(first: Script) -> Session {
    let again = Arc::new(tokio::sync::Notify::new());
    let (seen, connections) = (again.clone(), AtomicUsize::new(0));
    connect_to([first, Script::new()], move |live| {
        live.tool(quick("quick"))
            .on_event(move |event| {
                if matches!(event, LiveEvent::Connected { .. })
                    && connections.fetch_add(1, Ordering::SeqCst) == 1
                {
                    seen.notify_one();
                }
            })
            .before_tool_response(move |responses, _| {
                let again = again.clone();
                async move {
                    again.notified().await;
                    responses
                }
            })
    })
    .await
}
