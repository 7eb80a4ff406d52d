//! A commit that has begun ends before the next run begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use serde_json::json;
use sessile_agent::{Agent, AgentError, InvocationContext, RunError, Runner, WhenBusy};
use sessile_session::{
    Address, Appended, Commit, Event, EventWindow, ListQuery, MemoryStore, NewSession, ScopeKey,
    SessionError, SessionKey, SessionService, StateMap, Store, StoredPage, StoredSession, Version,
};
use sessile_state::Delta;
use tokio::sync::Semaphore;

use crate::support::*;

/// A memory store whose appends wait at a gate before they are made, as one over a network would.
struct Gated {
    store: MemoryStore,
    gate: Semaphore,
    waiting: AtomicUsize,
}

#[async_trait]
impl Store for Gated {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        self.store.create(new).await
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        self.store.get(key, window).await
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        self.store.list(query).await
    }

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        self.store.delete(key, expect).await
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        self.store.addresses(after, limit).await
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let pass = self.gate.acquire().await;
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        pass.expect("the gate is never closed").forget();
        self.store.append(commit).await
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<StateMap, SessionError> {
        self.store.scope_state(scope).await
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, time: f64) -> Result<(), SessionError> {
        self.store.write_scope(scope, delta, time).await
    }
}

async fn gated(when_busy: WhenBusy) -> (Runner, SessionService, Arc<Gated>) {
    let store =
        Arc::new(Gated { store: MemoryStore::new(), gate: Semaphore::new(0), waiting: AtomicUsize::new(0) });
    let sessions = with_session(SessionService::over(store.clone()), json!({})).await;
    let agent = sessile_agent::LlmAgent::builder("agent").model(Says("hi")).build().unwrap();
    let runner = Runner::builder("app", agent, sessions.clone()).when_busy(when_busy).build().unwrap();
    (runner, sessions, store)
}

#[tokio::test]
async fn the_next_run_waits_for_the_commit_of_one_that_was_dropped() {
    let (runner, sessions, store) = gated(WhenBusy::Queue).await;
    let mut first = runner.run(says("one"));
    assert!(first.next().now_or_never().is_none(), "its message is on its way to the store");
    drop(first);

    let second = tokio::spawn(runner.run(says("two")).collect());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(store.waiting.load(Ordering::SeqCst), 1, "only the first run's commit is there");
    store.gate.add_permits(10);
    second.await.unwrap().unwrap();

    assert_eq!(log(&sessions).await, ["user: one", "user: two", "agent: hi"]);
}

#[tokio::test]
async fn a_newer_run_brings_the_commit_of_one_that_nobody_reads_to_its_end() {
    let (runner, sessions, store) = gated(WhenBusy::CancelPrevious).await;
    let mut first = runner.run(says("one"));
    assert!(first.next().now_or_never().is_none());

    // The first stream is held, and never polled again until the end.
    let second = tokio::spawn(runner.run(says("two")).collect());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(store.waiting.load(Ordering::SeqCst), 1);
    store.gate.add_permits(10);
    second.await.unwrap().unwrap();

    assert_eq!(log(&sessions).await, ["user: one", "user: two", "agent: hi"]);
    assert!(matches!(first.next().await, Some(Err(RunError::Cancelled { .. }))));
    assert_eq!(log(&sessions).await.len(), 3);
}

#[tokio::test]
async fn a_run_that_is_dropped_before_its_commit_begins_writes_nothing() {
    let (runner, sessions, store) = gated(WhenBusy::Queue).await;
    drop(runner.run(says("never polled")));
    store.gate.add_permits(10);
    runner.run(says("two")).collect().await.unwrap();
    assert_eq!(log(&sessions).await, ["user: two", "agent: hi"]);
}

/// Does not wait for its first event to be stored, and then looks whether its state has it.
struct Impatient(Arc<Gated>);

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
    let (_, sessions, store) = gated(WhenBusy::Queue).await;
    store.gate.add_permits(1); // for the message
    run(Impatient(store), &sessions, "go").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"written": 1, "next": 2}));
}
