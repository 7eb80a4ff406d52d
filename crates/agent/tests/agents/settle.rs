//! A commit that has begun ends before the next run begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::json;
use sessile_agent::{Agent, AgentError, InvocationContext, RunError, Runner, WhenBusy};
use sessile_conformance::{Between, Call};
use sessile_session::{Event, SessionService};
use tokio::sync::Semaphore;

use crate::support::*;

/// Where appends wait before they are made, as they would for a network.
struct Gate {
    gate: Semaphore,
    waiting: AtomicUsize,
}

impl Gate {
    async fn pass(self: Arc<Self>) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let pass = self.gate.acquire().await;
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        pass.expect("the gate is never closed").forget();
    }
}

/// A gate, and sessions behind it.
async fn behind_a_gate() -> (SessionService, Arc<Gate>) {
    let gate = Arc::new(Gate { gate: Semaphore::new(0), waiting: AtomicUsize::new(0) });
    let gates = gate.clone();
    let store = Between::new(move |call| {
        let gate = matches!(call, Call::Append(_)).then(|| gates.clone());
        async move {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            Ok(())
        }
    });
    (with_session(SessionService::new(store), json!({})).await, gate)
}

async fn gated(when_busy: WhenBusy) -> (Runner, SessionService, Arc<Gate>) {
    let (sessions, gate) = behind_a_gate().await;
    let agent = sessile_agent::LlmAgent::builder("agent").model(Says("hi")).build().unwrap();
    let runner = Runner::builder("app", agent, sessions.clone()).when_busy(when_busy).build().unwrap();
    (runner, sessions, gate)
}

#[tokio::test(start_paused = true)]
async fn the_next_run_waits_for_the_commit_of_one_that_was_dropped() {
    let (runner, sessions, gate) = gated(WhenBusy::Queue).await;
    let mut first = runner.run(says("one"));
    assert!(first.next().now_or_never().is_none(), "its message is on its way to the store");
    drop(first);

    let second = tokio::spawn(runner.run(says("two")).collect());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(gate.waiting.load(Ordering::SeqCst), 1, "only the first run's commit is there");
    gate.gate.add_permits(10);
    second.await.unwrap().unwrap();

    assert_eq!(log(&sessions).await, ["user: one", "user: two", "agent: hi"]);
}

#[tokio::test(start_paused = true)]
async fn a_newer_run_finishes_the_commit_of_a_run_whose_stream_is_not_read() {
    let (runner, sessions, gate) = gated(WhenBusy::CancelPrevious).await;
    let mut first = runner.run(says("one"));
    assert!(first.next().now_or_never().is_none());

    // The first stream is held, and never polled again until the end.
    let second = tokio::spawn(runner.run(says("two")).collect());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(gate.waiting.load(Ordering::SeqCst), 1);
    gate.gate.add_permits(10);
    second.await.unwrap().unwrap();

    assert_eq!(log(&sessions).await, ["user: one", "user: two", "agent: hi"]);
    assert!(matches!(first.next().await, Some(Err(RunError::Cancelled { .. }))));
    assert_eq!(log(&sessions).await.len(), 3);
}

#[tokio::test]
async fn a_run_that_is_dropped_before_its_commit_begins_writes_nothing() {
    let (runner, sessions, gate) = gated(WhenBusy::Queue).await;
    drop(runner.run(says("never polled")));
    gate.gate.add_permits(10);
    runner.run(says("two")).collect().await.unwrap();
    assert_eq!(log(&sessions).await, ["user: two", "agent: hi"]);
}

/// Does not wait for its first event to be stored, and then looks whether its state has it.
struct Impatient(Arc<Gate>);

#[async_trait]
impl Agent for Impatient {
    fn name(&self) -> &str {
        "impatient"
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        let changes = ctx.changes();
        changes.state().set("written", 1);
        changes.state().set("temp:written", 1);
        changes.escalate();
        let given_up = ctx.emit_with(Event::new("impatient"), changes).now_or_never();
        assert!(given_up.is_none(), "the event is on its way to the store");
        self.0.gate.add_permits(10);

        let changes = ctx.changes();
        changes.state().set("next", 2);
        ctx.emit_with(Event::new("impatient"), changes).await?;
        assert_eq!(json!(ctx.state().to_map()), json!({"written": 1, "temp:written": 1, "next": 2}));
        assert!(ctx.has_escalated());
        Ok(())
    }
}

#[tokio::test]
async fn an_agent_that_does_not_wait_for_a_commit_sees_its_changes_all_the_same() {
    let (_, sessions, gate) = gated(WhenBusy::Queue).await;
    gate.gate.add_permits(1); // for the message
    run(Impatient(gate), &sessions, "go").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"written": 1, "next": 2}));
}
