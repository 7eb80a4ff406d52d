//! One run at a time in each session.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sessile_agent::{CallbackContext, FunctionTool, LlmAgent, RunError, Runner, ToolContext, WhenBusy};
use sessile_session::{BoxError, SessionService};
use tokio::sync::Semaphore;

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A runner whose first turn calls a tool that waits at a gate, and whose others answer at once.
fn gated(sessions: &SessionService, when_busy: WhenBusy) -> (Runner, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opens = gate.clone();
    let wait = FunctionTool::new("wait", "", move |_: Nothing, ctx: ToolContext| {
        let gate = gate.clone();
        async move {
            ctx.state().set("waited", true);
            gate.acquire().await?.forget();
            Ok::<_, BoxError>(())
        }
    });
    let agent = agent([call("wait", json!({})), reply("first"), reply("second")]).tool(wait).build().unwrap();
    (Runner::builder("app", agent, sessions.clone()).when_busy(when_busy).build().unwrap(), opens)
}

#[tokio::test(start_paused = true)]
async fn a_second_run_waits_for_its_turn() {
    let sessions = sessions().await;
    let (runner, gate) = gated(&sessions, WhenBusy::Queue);
    let first = tokio::spawn(runner.run(says("one")).collect());
    until(&sessions, 2).await;
    let second = tokio::spawn(runner.run(says("two")).collect());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(log(&sessions).await, ["user: one", "agent: calls wait"]);

    gate.add_permits(1);
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();

    assert_eq!(
        log(&sessions).await,
        [
            "user: one",
            "agent: calls wait",
            r#"agent: wait -> {"result":null}"#,
            "agent: first",
            "user: two",
            "agent: second"
        ]
    );
}

#[tokio::test]
async fn a_second_run_is_refused_if_the_runner_says_so_and_other_sessions_are_not() {
    let sessions = sessions().await;
    sessions.create(sessile_session::CreateSession::new("app", "ada").with_id("s2")).await.unwrap();
    let (runner, gate) = gated(&sessions, WhenBusy::Reject);
    let first = tokio::spawn(runner.run(says("one")).collect());
    until(&sessions, 2).await;

    let error = runner.run(says("two")).collect().await.unwrap_err();
    assert!(matches!(&error, RunError::Busy { key: busy } if *busy == key()), "{error}");
    let other = sessile_agent::RunRequest::new("ada", "s2").with_text("hello");
    runner.run(other).collect().await.unwrap();

    gate.add_permits(1);
    first.await.unwrap().unwrap();
    assert_eq!(log(&sessions).await.len(), 4, "nothing of the refused run is stored");
}

#[tokio::test]
async fn a_newer_run_takes_the_place_of_one_in_progress_which_writes_nothing_more() {
    let sessions = sessions().await;
    let (runner, gate) = gated(&sessions, WhenBusy::CancelPrevious);
    let first = tokio::spawn(runner.run(says("one")).collect());
    until(&sessions, 2).await;

    let second = runner.run(says("two")).collect().await.unwrap();
    gate.add_permits(1);
    let error = first.await.unwrap().unwrap_err();

    assert!(matches!(error, RunError::Cancelled { .. }), "{error}");
    assert_eq!(text(&second[0]), "first", "the script goes on");
    let log = log(&sessions).await;
    assert_eq!(log.len(), 5, "{log:?}");
    assert!(log[2].contains("interrupted") && log[2].ends_with("!INVOCATION_ABORTED"), "{log:?}");
    assert_eq!(log[3..], ["user: two", "agent: first"]);
    assert_eq!(state(&sessions).await, json!({}), "what the tool wrote went with it");
}

#[tokio::test]
async fn a_run_that_lost_its_turn_while_its_stream_is_not_read_writes_nothing() {
    let sessions = sessions().await;
    let (runner, gate) = gated(&sessions, WhenBusy::CancelPrevious);
    let mut first = runner.run(says("one"));
    first.next().await.unwrap().unwrap();
    // The first run is in the middle and is not read from here on.
    runner.run(says("two")).collect().await.unwrap();
    gate.add_permits(1);
    let before = log(&sessions).await;

    let error = first.next().await.unwrap().unwrap_err();

    assert!(matches!(error, RunError::Cancelled { .. }), "{error}");
    assert!(first.next().await.is_none());
    assert_eq!(log(&sessions).await, before);
}

#[tokio::test]
async fn a_run_can_be_cancelled_by_its_session() {
    let sessions = sessions().await;
    let (runner, _gate) = gated(&sessions, WhenBusy::Queue);
    assert!(!runner.cancel(&key()), "nothing runs yet");
    let first = tokio::spawn(runner.run(says("one")).collect());
    until(&sessions, 2).await;

    assert!(runner.cancel(&key()));

    assert!(matches!(first.await.unwrap(), Err(RunError::Cancelled { .. })));
    assert!(!runner.cancel(&key()));
    let events = runner.run(says("two")).collect().await.unwrap();
    assert_eq!(text(&events[0]), "first", "the session works again");
}

#[tokio::test]
async fn dropping_the_stream_ends_the_run_and_frees_the_session() {
    let sessions = sessions().await;
    let (runner, _gate) = gated(&sessions, WhenBusy::Queue);
    let mut first = runner.run(says("one"));
    first.next().await.unwrap().unwrap();
    drop(first);

    let events = runner.run(says("two")).collect().await.unwrap();

    assert_eq!(text(&events[0]), "first");
    let asked_again = log(&sessions).await;
    assert!(asked_again[2].contains("wait -> ") && asked_again[2].contains("interrupted"), "{asked_again:?}");
}

#[tokio::test(start_paused = true)]
async fn agents_do_not_run_ahead_of_who_reads() {
    let sessions = sessions().await;
    let agent = LlmAgent::builder("agent")
        .model(Says("hi"))
        .after_agent(async |ctx: CallbackContext| {
            ctx.state().set("after", true);
            Ok(None)
        })
        .build()
        .unwrap();
    let mut events = runner(agent, &sessions).run(says("hello"));
    events.next().await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(state(&sessions).await, json!({}), "the rest waits for the reader");
    while events.next().await.is_some() {}
    assert_eq!(state(&sessions).await, json!({"after": true}));
}

/// Waits until a session has so many events.
async fn until(sessions: &SessionService, events: u64) {
    while session(sessions).await.version() < events {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Two processes on one database do not see each other's turns.
#[tokio::test]
async fn runs_of_two_runners_in_one_session_lose_nothing_and_the_real_answer_of_a_tool_counts() {
    let sessions = sessions().await;
    let (one, gate) = gated(&sessions, WhenBusy::Queue);
    let first = tokio::spawn(one.run(says("one")).collect());
    until(&sessions, 2).await;

    let script = Script::new([reply("meanwhile"), reply("at last")]);
    let other = runner(LlmAgent::builder("agent").model(script.clone()).build().unwrap(), &sessions);
    other.run(says("two")).collect().await.unwrap();
    gate.add_permits(1);
    first.await.unwrap().unwrap();
    other.run(says("three")).collect().await.unwrap();

    let log = log(&sessions).await;
    assert!(log[2].contains("interrupted"), "the other runner cannot know that the call goes on: {log:?}");
    let after = [
        "user: two",
        "agent: meanwhile",
        r#"agent: wait -> {"result":null}"#,
        "agent: first",
        "user: three",
        "agent: at last",
    ];
    assert_eq!(log[3..], after);
    assert_eq!(state(&sessions).await, json!({ "waited": true }));
    let asked = serde_json::to_string(&script.last_asked().contents).unwrap();
    assert_eq!(asked.matches("functionResponse").count(), 1, "{asked}");
    assert!(!asked.contains("interrupted"), "{asked}");
}
