//! An answer tells what the commit did, whatever happens at the same time. Each test is named by
//! the letter of the finding that it keeps from coming back: the consistency checker found answers
//! that were not what was stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use serde_json::{Value, json};
use sessile_conformance::{Between, Call};
use sessile_server::{Apps, Server};
use sessile_session::{MemoryStore, SessionError, SessionService, Store};
use tokio::sync::Semaphore;

use crate::client::{Answer, Client};
use crate::extensions::{frames, versions};

const P: &str = "/apps/a/users/u/sessions/p";
const EVENTS: &str = "/apps/a/users/u/sessions/p/events";
const WATCH: &str = "/apps/a/users/u/sessions/p/watch";
const USER: &str = "/apps/a/users/u/state";
const APP: &str = "/apps/a/state";

fn over(store: impl Store + 'static) -> Client {
    Client::new(Server::new(SessionService::new(store), Apps::new()))
}

async fn set(api: &Client, key: &str, value: impl Into<Value>) -> Answer {
    let answer = api.patch(P, json!({"stateDelta": {key: value.into()}})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer
}

fn events(session: &Value) -> usize {
    session["events"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_an_etag_of_a_session_that_is_gone_matches_no_later_one() {
    let api = Client::empty();
    let first = api.post(P, json!({})).await.etag();
    api.delete(P).await.ok();
    let second = api.post(P, json!({})).await.etag();
    let change = json!({"stateDelta": {"k": 1}});
    for old in [&*first, "\"0\"", "\"0-1\""] {
        let old = api.if_match(old);
        let detail = old.patch(P, change.clone()).await.fails(412);
        assert!(detail.as_str().unwrap().contains("was deleted and created again"), "{detail}");
        old.delete(P).await.fails(412);
        old.post(EVENTS, json!({"author": "x"})).await.fails(412);
    }
    let read = api.get(P).await;
    assert_eq!(read.etag(), second);
    assert_eq!(read.ok()["state"], json!({}));
    let changed = api.if_match(&second).patch(P, change).await;
    api.if_match(&second).delete(P).await.fails(412);
    api.if_match(&changed.etag()).delete(P).await.ok();
    api.get(P).await.fails(404);
}

/// A stream that is held open.
struct Open {
    stream: BodyDataStream,
    text: String,
}

impl Open {
    async fn at(api: &Client, path: &str) -> Self {
        Self { stream: api.open(path).await.into_body().into_data_stream(), text: String::new() }
    }

    /// Reads until there are this many frames, or to the end; the name and version of each. If they
    /// never come, the test fails in the place of waiting for ever.
    async fn frames(&mut self, count: usize) -> Vec<String> {
        let read = async {
            while versions(&self.text).len() < count {
                let Some(piece) = self.stream.next().await else { break };
                self.text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
            }
        };
        tokio::time::timeout(Duration::from_secs(30), read).await.expect("the frames come");
        versions(&self.text)
    }

    /// Reads to the end.
    async fn rest(&mut self) -> Vec<String> {
        self.frames(usize::MAX).await
    }
}

#[tokio::test]
async fn b_a_watch_that_is_resumed_in_another_session_begins_with_that_one() {
    let api = Client::empty();
    api.post(P, json!({})).await.ok();
    let mut seen = String::new();
    for n in 1..=3 {
        seen = set(&api, "n", n).await.etag().trim_matches('"').to_owned();
    }
    api.delete(P).await.ok();
    api.post(P, json!({"of": "second"})).await.ok();
    for n in 1..=4 {
        set(&api, "n", n * 10).await;
        // Also when the new session has the version that the client saw of the old one.
        let mut open = Open::at(&api.with("last-event-id", &seen), WATCH).await;
        assert_eq!(open.frames(1).await, [format!("snapshot {n}")]);
        assert_eq!(frames(&open.text)[0].2["state"], json!({"of": "second", "n": n * 10}));
    }
}

#[tokio::test]
async fn b_an_open_watch_ends_when_another_server_replaces_the_session() {
    let store = Arc::new(MemoryStore::new());
    let sessions = SessionService::new(store.clone()).with_poll_interval(Duration::from_millis(10));
    let api = Client::new(Server::new(sessions, Apps::new()));
    // A service of its own tells the watchers of the first nothing, as in another process.
    let other = over(store);
    api.post(P, json!({})).await.ok();
    set(&api, "n", 1).await;
    let mut open = Open::at(&api, WATCH).await;
    assert_eq!(open.frames(1).await, ["snapshot 1"]);
    other.delete(P).await.ok();
    other.post(P, json!({})).await.ok();
    for n in 1..=2 {
        set(&other, "n", n).await;
    }
    assert_eq!(open.rest().await, ["snapshot 1", "deleted "]);
}

#[tokio::test]
async fn c_a_snapshot_has_its_events_also_when_a_watch_was_to_be_resumed() {
    let api = Client::empty();
    api.post(P, json!({})).await.ok();
    let etag = set(&api, "n", 1).await.etag();
    let of_this_session = etag.trim_matches('"').replacen('1', "9", 1);
    for unknown in ["9", "soon", "1", "", "1-", &of_this_session] {
        let mut open = Open::at(&api.with("last-event-id", unknown), WATCH).await;
        assert_eq!(open.frames(1).await, ["snapshot 1"], "{unknown:?}");
        let (_, id, snapshot) = frames(&open.text).remove(0);
        assert_eq!((format!("\"{id}\""), events(&snapshot)), (etag.clone(), 1), "{unknown:?}");
    }
    // The windows of GET choose the snapshot's events.
    set(&api, "n", 2).await;
    let mut open = Open::at(&api.with("last-event-id", "9"), &format!("{WATCH}?numRecentEvents=1")).await;
    open.frames(1).await;
    assert_eq!(events(&frames(&open.text)[0].2), 1);
}

#[tokio::test]
async fn d_the_etag_of_an_appended_event_is_that_events_version() {
    let api = Client::empty();
    api.post(P, json!({})).await.ok();
    let event = |id: &str| json!({"id": id, "author": "x", "actions": {"stateDelta": {id: 1}}});
    let append = async |id: &str| api.post(EVENTS, event(id)).await;
    assert_eq!(append("e1").await.version(), 1);
    assert_eq!(append("e2").await.version(), 2);
    assert_eq!(append("e1").await.version(), 1);
    let ids: Vec<String> = (0..50).map(|n| format!("c{n}")).collect();
    let answers = futures_util::future::join_all(ids.iter().map(|id| append(id))).await;
    let session = api.get(P).await.ok();
    for (id, answer) in ids.iter().zip(answers) {
        let place = session["events"].as_array().unwrap().iter().position(|event| event["id"] == **id);
        assert_eq!(answer.version(), place.unwrap() as u64 + 1, "{id}");
        assert_eq!(append(id).await.etag(), answer.etag(), "{id}");
    }
}

/// Where commits wait.
struct Gate {
    /// How many have come.
    arrived: Semaphore,
    /// How many may go on.
    open: Semaphore,
}

impl Gate {
    /// Waits for a commit to come, and then for `work`, before the commit goes on.
    async fn meanwhile(&self, work: impl Future<Output = ()>) {
        self.arrived.acquire().await.unwrap().forget();
        work.await;
        self.open.add_permits(1);
    }
}

/// A server whose commits wait at a gate, beside one on the same store whose commits do not.
fn held() -> (Client, Client, Arc<Gate>) {
    let store = Arc::new(MemoryStore::new());
    let gate = Arc::new(Gate { arrived: Semaphore::new(0), open: Semaphore::new(0) });
    let waits = gate.clone();
    let slow = Between::over(store.clone(), move |call| {
        let gate = matches!(call, Call::Append(_)).then(|| waits.clone());
        async move {
            if let Some(gate) = gate {
                gate.arrived.add_permits(1);
                gate.open.acquire().await.unwrap().forget();
            }
            Ok(())
        }
    });
    (over(slow), over(store), gate)
}

#[tokio::test]
async fn e_a_patch_that_waits_while_its_session_is_replaced_tells_of_the_new_one() {
    let (slow, api, gate) = held();
    api.post(P, json!({"of": "first"})).await.ok();
    set(&api, "old", 1).await;
    let replace = gate.meanwhile(async {
        api.delete(P).await.ok();
        api.post(P, json!({"of": "second"})).await.ok();
    });
    let (answer, ()) = tokio::join!(set(&slow, "mine", 1), replace);
    let stored = api.get(P).await;
    assert_eq!((answer.version(), answer.etag()), (1, stored.etag()));
    let answer = answer.ok();
    assert_eq!(answer["state"], json!({"of": "second", "mine": 1}));
    assert_eq!(answer, stored.ok());
}

/// A memory store that cannot be read any more once something was written; a session can be made
/// before.
fn unreadable_after_writes() -> Between {
    let gone = Arc::new(AtomicBool::new(false));
    Between::new(move |call| {
        let reads = matches!(call, Call::Get | Call::ScopeState | Call::List | Call::ScopeChanges);
        let fails = reads && gone.load(Ordering::Relaxed);
        if matches!(call, Call::Append(_) | Call::WriteScope(_)) {
            gone.store(true, Ordering::Relaxed);
        }
        async move {
            match fails {
                true => Err(SessionError::Backend { action: "read", source: "it went away".into() }),
                false => Ok(()),
            }
        }
    })
}

#[tokio::test]
async fn e_a_store_that_goes_away_after_the_commit_changes_nothing_of_the_answer() {
    let api = over(unreadable_after_writes());
    api.post(P, json!({"a": 1})).await.ok();
    let answer = set(&api, "user:b", 2).await;
    assert_eq!(answer.version(), 1);
    let answer = answer.ok();
    assert_eq!((&answer["state"], events(&answer)), (&json!({"a": 1, "user:b": 2}), 1));
    api.get(P).await.fails(503);
}

#[tokio::test]
async fn f_a_patch_tells_shared_keys_as_of_its_commit() {
    let (slow, api, gate) = held();
    api.post(P, json!({"app:y": "old"})).await.ok();
    api.post("/apps/a/users/u/sessions/other", json!({})).await.ok();
    let other = gate.meanwhile(async {
        let body = json!({"stateDelta": {"app:y": "new", "user:x": 1}});
        api.patch("/apps/a/users/u/sessions/other", body).await.ok();
    });
    let (answer, ()) = tokio::join!(set(&slow, "app:z", 1), other);
    let answer = answer.ok();
    assert_eq!(answer["state"], json!({"app:y": "new", "app:z": 1, "user:x": 1}));
    assert_eq!(answer, api.get(P).await.ok());
}

#[tokio::test]
async fn g_a_session_that_was_created_is_told_without_being_read_again() {
    let api = over(Between::new(|call| {
        let reads = matches!(call, Call::Get | Call::ScopeState);
        async move {
            match reads {
                true => Err(SessionError::Backend { action: "read", source: "it went away".into() }),
                false => Ok(()),
            }
        }
    }));
    let answer = api.post(P, json!({"a": 1, "user:made": 1})).await;
    assert_eq!(answer.version(), 0);
    assert_eq!(answer.ok()["state"], json!({"a": 1, "user:made": 1}));
    // Nor does an event read anything before its commit or after it.
    let answer =
        api.post(EVENTS, json!({"id": "e", "author": "x", "actions": {"stateDelta": {"b": 1}}})).await;
    assert_eq!(answer.version(), 1);
    api.delete(P).await.ok();
}

#[tokio::test]
async fn h_a_change_of_shared_state_that_was_made_is_told_although_the_store_goes_away() {
    for place in [USER, APP] {
        let api = over(unreadable_after_writes());
        let answer = api.patch(place, json!({"stateDelta": {"a": 1}})).await;
        assert_eq!(answer.etag(), "\"1\"");
        assert_eq!(answer.ok(), json!({"a": 1}));
        let answer = api.patch(place, json!({"stateOps": {"a": {"add": 1}}})).await;
        assert_eq!(answer.etag(), "\"2\"");
        assert_eq!(answer.ok(), json!({"a": 2}));
        api.get(place).await.fails(503);
    }
}
