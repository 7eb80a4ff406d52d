//! A run may be cut off anywhere; the session works afterwards.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::{Stream, future::poll_fn};
use serde_json::json;
use sessile_agent::{
    Agent, CallbackContext, FunctionTool, LlmAgent, ParallelAgent, Run, Runner, SequentialAgent, ToolContext,
};
use sessile_session::{BoxError, FunctionCall, MemoryStore, SessionService};
use sessile_sqlite::SqliteStore;

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A turn with everything in it that waits: callbacks, two tools at once, branches.
fn everything(script: &Script) -> Arc<dyn Agent> {
    let tool = |name: &'static str| {
        FunctionTool::new(name, "", async move |_: Nothing, ctx: ToolContext| {
            ctx.state().set("tool", 1);
            tokio::task::yield_now().await;
            ctx.state().set("tool", 2);
            Ok::<_, BoxError>(())
        })
    };
    let wait = async |ctx: CallbackContext| {
        ctx.state().set("callback", 1);
        tokio::task::yield_now().await;
        Ok(None)
    };
    let main = LlmAgent::builder("main")
        .model(script.clone())
        .tool(tool("one"))
        .tool(tool("two"))
        .before_agent(wait)
        .after_agent(wait)
        .output_key("answer")
        .build()
        .unwrap();
    let branch =
        |name: &str| LlmAgent::builder(name).model(Says("branch")).before_agent(wait).output_key("b").build();
    let branches = ParallelAgent::new("par", [branch("left").unwrap(), branch("right").unwrap()]).unwrap();
    let steps: [Arc<dyn Agent>; 2] = [Arc::new(main), Arc::new(branches)];
    Arc::new(SequentialAgent::new("all", steps).unwrap())
}

/// Polls the run at most so often. True if it is over by then.
async fn poll(run: Run, polls: usize) -> bool {
    let mut run = pin!(run);
    for _ in 0..polls {
        let next = poll_fn(|cx| Poll::Ready(run.as_mut().poll_next(cx))).await;
        match next {
            Poll::Ready(None) => return true,
            Poll::Ready(Some(event)) => drop(event.unwrap()),
            // Lets the store and the timers go on.
            Poll::Pending => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
        }
    }
    false
}

/// Cuts a run off after each possible number of polls, and uses the session again each time.
async fn cut_off_everywhere(new_sessions: impl AsyncFn() -> SessionService) -> usize {
    for polls in 0.. {
        let sessions = with_session(new_sessions().await, json!({})).await;
        let script = Script::new([calls([("one", json!({})), ("two", json!({}))]), reply("done")]);
        let runner = Runner::builder("app", everything(&script), sessions.clone()).build().unwrap();
        let over = poll(runner.run(says("first")), polls).await;
        script.now([reply("second answer")]);
        let events = runner.run(says("second")).collect().await;
        let events = events.unwrap_or_else(|error| panic!("after {polls} polls: {error}"));
        assert!(!events.is_empty(), "after {polls} polls");
        check(&sessions, polls).await;
        if over {
            return polls;
        }
    }
    unreachable!("a run ends")
}

/// Every call has exactly one answer after it, and every event is whole.
async fn check(sessions: &SessionService, polls: usize) {
    let session = session(sessions).await;
    let events = session.events();
    let calls: Vec<FunctionCall> = events.iter().flat_map(|event| event.function_calls().cloned()).collect();
    for call in calls {
        let answers =
            events.iter().flat_map(|event| event.function_responses()).filter(|answer| answer.id == call.id);
        assert_eq!(answers.count(), 1, "after {polls} polls: {:?}", log(sessions).await);
    }
    for (place, event) in events.iter().enumerate() {
        assert_eq!(event.version, place as u64 + 1);
    }
    // A tool's changes came whole or not at all.
    let tool = session.state().get::<u32>("tool");
    assert!(tool.is_none_or(|tool| tool == 2), "after {polls} polls");
}

#[tokio::test]
async fn a_run_cut_off_anywhere_leaves_a_session_that_works() {
    let polls = cut_off_everywhere(async || SessionService::new(MemoryStore::new())).await;
    assert!(polls > 10, "there were only {polls} places to cut at");
}

#[tokio::test]
async fn a_run_cut_off_anywhere_leaves_a_session_that_works_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::sync::atomic::AtomicUsize::new(0);
    let polls = cut_off_everywhere(async || {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = folder.path().join(format!("{number}.db"));
        SessionService::new(SqliteStore::open_url(&format!("sqlite:///{}", path.display())).await.unwrap())
    })
    .await;
    assert!(polls > 10, "there were only {polls} places to cut at");
}
