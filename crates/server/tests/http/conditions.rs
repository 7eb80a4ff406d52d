//! `If-Match` and `Idempotency-Key`.

use serde_json::{Value, json};
use sessile_conformance::{Between, Call};
use sessile_server::{Apps, Server};
use sessile_session::{ChangeWindow, ChangedBy, ScopeKey, SessionError, SessionService};

use crate::apps::sessions;
use crate::auth::{guarded, of};
use crate::client::Client;

const S: &str = "/apps/shop/users/ada/sessions/s";
const EVENTS: &str = "/apps/shop/users/ada/sessions/s/events";
const USER: &str = "/apps/shop/users/ada/state";
const APP: &str = "/apps/shop/state";

async fn with_session() -> Client {
    let api = Client::empty();
    api.post(S, json!({})).await.ok();
    api
}

#[tokio::test]
async fn one_of_several_etags_is_enough_and_weak_or_foreign_ones_never_match() {
    let api = with_session().await;
    let change = json!({"stateDelta": {"x": 1}});
    let etag = api.get(S).await.etag();
    let weak = format!("W/{etag}");
    for wrong in [&*weak, "\"abc\"", "\"1\"", "\"1\", W/\"2\", \"x\"", "\"99999999999999999999\"", "\"\""] {
        let detail = api.if_match(wrong).patch(S, change.clone()).await.fails(412);
        assert!(!detail.as_str().unwrap().contains("9223372036854775807"), "{detail}");
        api.if_match(wrong).delete(S).await.fails(412);
        api.if_match(wrong).post(EVENTS, json!({"author": "x"})).await.fails(412);
        let missing = "/apps/shop/users/ada/sessions/none";
        api.if_match(wrong).patch(missing, change.clone()).await.fails(404);
    }
    for malformed in ["abc", "1", "\"1", "\"1\" \"2\"", ","] {
        let detail = api.if_match(malformed).patch(S, change.clone()).await.fails(400);
        assert_eq!(detail, "If-Match must be *, or ETags in their quotes");
    }
    assert_eq!(api.get(S).await.etag(), etag, "nothing was changed");
    let list = format!("\"7\", {weak}, \"4-abc\", {etag}");
    let changed = api.if_match(&list).patch(S, change.clone()).await;
    assert_eq!(changed.version(), 1);
    let detail = api.if_match(&list).patch(S, change).await.fails(412);
    assert!(detail.is_string());
    let list = format!("\"4-abc\", {}", changed.etag());
    api.if_match(&list).post(EVENTS, json!({"author": "x"})).await.ok();
    api.if_match(&list).delete(S).await.fails(412);
    // In two headers, as a proxy may send a list.
    let last = api.get(S).await.etag();
    api.if_match("\"4-abc\"").if_match(&last).delete(S).await.ok();
    api.get(S).await.fails(404);
}

#[tokio::test]
async fn shared_state_has_versions_of_its_own() {
    let api = with_session().await;
    for place in [USER, APP] {
        assert_eq!(api.get(place).await.etag(), "\"0\"");
        let change = |n: u32| json!({"stateDelta": {"n": n}});
        let first = api.if_match("\"0\"").patch(place, change(1)).await;
        assert_eq!(first.etag(), "\"1\"");
        let detail = api.if_match("\"0\"").patch(place, change(2)).await.fails(412);
        assert!(detail.as_str().unwrap().contains("version 0 was expected, 1 is stored"), "{detail}");
        for never in ["\"1-a\"", "W/\"1\"", "\"x\"", "\"2\", \"7\""] {
            api.if_match(never).patch(place, change(2)).await.fails(412);
        }
        api.if_match("soon").patch(place, change(2)).await.fails(400);
        let read = api.get(place).await;
        assert_eq!((read.etag(), read.ok()), ("\"1\"".to_owned(), json!({"n": 1})));
        let second = api.if_match("\"0\", \"1\"").patch(place, change(3)).await;
        assert_eq!((second.etag(), second.ok()), ("\"2\"".to_owned(), json!({"n": 3})));
        assert_eq!(api.if_match("*").patch(place, change(4)).await.etag(), "\"3\"");
    }
    // A commit to a session that changes shared keys changes their version too.
    api.patch(S, json!({"stateDelta": {"user:n": 9, "app:n": 9}})).await.ok();
    assert_eq!(api.get(USER).await.etag(), "\"4\"");
    api.if_match("\"3\"").patch(APP, json!({"stateDelta": {"n": 1}})).await.fails(412);
}

#[tokio::test]
async fn a_change_of_a_session_with_a_key_is_made_once() {
    let api = with_session().await;
    let created = api.get(S).await.etag();
    let change = json!({"stateOps": {"n": {"add": 1}, "user:n": {"add": 5}}, "stateDelta": {"a": 1}});
    let once = api.once("request-1");
    let first = once.patch(S, change.clone()).await;
    let etag = first.etag();
    assert_eq!(first.version(), 1);
    let first = first.ok();
    let event = &first["events"][0];
    assert_eq!((&event["id"], &event["invocationId"]), (&json!("request-1"), &json!("p-request-1")));
    assert_eq!(first["state"], json!({"a": 1, "n": 1, "user:n": 5}));
    assert_eq!(once.patch(S, change.clone()).await.ok(), first);
    api.patch(S, json!({"stateDelta": {"n": 100, "b": 2}, "stateOps": {"user:n": {"add": 1}}})).await.ok();
    // Whatever is expected: the client asks again because it did not get the answer.
    for again in [&once, &once.if_match(&created), &once.if_match("\"nonsense\"")] {
        let again = again.patch(S, change.clone()).await;
        assert_eq!(again.etag(), etag, "the version of the first time");
        let again = again.ok();
        assert_eq!(again["events"], first["events"]);
        // What it changed is as it was after it; the rest is current.
        assert_eq!(again["state"], json!({"a": 1, "n": 1, "user:n": 5, "b": 2}));
    }
    let stored = api.get(S).await.ok();
    assert_eq!(stored["state"], json!({"a": 1, "n": 100, "user:n": 6, "b": 2}));
    assert_eq!(stored["events"].as_array().unwrap().len(), 2);

    let detail = once.patch(S, json!({"stateOps": {"n": {"add": 2}}})).await.fails(409);
    let text =
        "The Idempotency-Key \"request-1\" was used for another change; give each change a key of its own";
    assert_eq!(detail, text);
    // The key is the event's id, so an event that was appended otherwise is another change too.
    api.post(EVENTS, json!({"id": "theirs", "author": "x"})).await.ok();
    api.once("theirs").patch(S, json!({"stateDelta": {}})).await.fails(409);
    assert_eq!(api.get(S).await.version(), 3);
}

#[tokio::test]
async fn a_key_is_remembered_as_long_as_its_session() {
    let api = with_session().await;
    let once = api.once("k");
    let change = json!({"stateOps": {"n": {"add": 1}}});
    once.patch(S, change.clone()).await.ok();
    api.delete(S).await.ok();
    once.patch(S, change.clone()).await.fails(404);
    api.post(S, json!({"n": 10})).await.ok();
    let again = once.patch(S, change).await;
    assert_eq!(again.version(), 1);
    assert_eq!(again.ok()["state"], json!({"n": 11}));
}

#[tokio::test]
async fn a_refused_change_uses_up_no_key() {
    let api = with_session().await;
    for place in [S, USER, APP] {
        let once = api.once("later");
        let body = json!({"stateOps": {"n": {"add": -1, "min": 0}}});
        once.patch(place, body.clone()).await.fails(409);
        api.patch(place, json!({"stateDelta": {"n": 1}})).await.ok();
        once.patch(place, body).await.ok();
        api.patch(place, json!({"stateRemove": ["n"]})).await.ok();
    }
}

#[tokio::test]
async fn a_change_of_shared_state_with_a_key_is_made_once() {
    let api = with_session().await;
    for place in [USER, APP] {
        let once = api.once("request-1");
        let change = json!({"stateOps": {"n": {"add": 1}}, "stateDelta": {"a": [1]}, "stateRemove": ["x"]});
        let first = once.patch(place, change.clone()).await;
        assert_eq!(first.etag(), "\"1\"");
        let first = first.ok();
        assert_eq!(first, json!({"a": [1], "n": 1}));
        assert_eq!(once.patch(place, change.clone()).await.ok(), first);
        api.patch(place, json!({"stateDelta": {"n": 100, "b": 2}})).await.ok();
        for again in [&once, &once.if_match("\"7\"")] {
            let again = again.patch(place, change.clone()).await;
            assert_eq!(again.etag(), "\"1\"");
            let again = again.ok();
            assert_eq!((&again["a"], &again["n"]), (&json!([1]), &json!(1)), "{place}");
        }
        once.patch(place, json!({"stateOps": {"n": {"add": 2}}})).await.fails(409);
        let read = api.get(place).await;
        assert_eq!((read.etag(), read.ok()), ("\"2\"".to_owned(), json!({"a": [1], "n": 100, "b": 2})));
    }
}

#[tokio::test]
async fn what_cannot_be_a_key_is_refused_and_changes_nothing() {
    let api = with_session().await;
    let (long, longest) = ("k".repeat(129), "k".repeat(128));
    for place in [S, USER, APP] {
        let change = json!({"stateDelta": {"x": 1}});
        for wrong in ["", " ", &long, "a\tb", "schlüssel"] {
            let detail = api.once(wrong).patch(place, change.clone()).await.fails(422);
            assert_eq!(detail[0]["loc"], json!(["header", "Idempotency-Key"]), "{wrong:?}");
            let msg = "The header must be given once and have 1 to 128 printable ASCII characters";
            assert_eq!(detail[0]["msg"], msg);
        }
        api.once("a").once("b").patch(place, change.clone()).await.fails(422);
        assert!(!api.get(place).await.text.contains('x'));
        api.once(&longest).patch(place, change.clone()).await.ok();
        api.once("8e03978e 40d5-43e8/bc93:~").patch(place, change).await.ok();
    }
}

#[tokio::test]
async fn concurrent_repetitions_are_one_change() {
    let api = with_session().await;
    for place in [S, USER, APP] {
        let body = json!({"stateOps": {"n": {"add": 1}}});
        let once = api.once("same");
        let answers = futures_util::future::join_all((0..20).map(|_| once.patch(place, body.clone()))).await;
        let etags: Vec<String> = answers.iter().map(crate::client::Answer::etag).collect();
        assert!(etags.iter().all(|etag| *etag == etags[0]), "{etags:?}");
        let read = api.get(place).await.ok();
        let state = if place == S { &read["state"] } else { &read };
        assert_eq!(state["n"], 1, "{place}");
    }
}

/// A server whose store loses its connection before it answers to a change.
fn in_doubt() -> Client {
    let store = Between::new(|call| {
        let writes = matches!(call, Call::Append(_) | Call::WriteScope(_) | Call::Create | Call::Delete);
        async move {
            match writes {
                true => Err(SessionError::InDoubt {
                    action: "write",
                    advice: "advice for a caller of the library",
                    source: "postgresql://me:password@db went away".into(),
                }),
                false => Ok(()),
            }
        }
    });
    Client::new(Server::new(SessionService::new(store), Apps::new()))
}

#[tokio::test]
async fn an_unknown_outcome_is_told_with_advice_that_this_client_can_follow() {
    let api = in_doubt();
    let change = json!({"stateDelta": {"a": 1}});
    let told = |advice: &str| json!(format!("tried to write, which is done or not done; {advice}"));
    for place in [USER, APP] {
        let without = api.patch(place, change.clone()).await;
        assert_eq!(without.header("retry-after"), "", "asking again could do it twice");
        let text = "read the state and decide; a PATCH with an Idempotency-Key can be repeated safely";
        assert_eq!(without.fails(503), told(text));
        let text = "send the same request with the same Idempotency-Key again";
        assert_eq!(api.once("k").patch(place, change.clone()).await.fails(503), told(text));
    }
    let answer = api.post(EVENTS, json!({"id": "e", "author": "x"})).await;
    assert_eq!(answer.fails(503), told("send the same event with its id again"));
    let text = "read the session to see whether it is there; deleting it again does no harm if it is not";
    assert_eq!(api.delete(S).await.fails(503), told(text));
    let text =
        "list the user's sessions, or read the one with the id that you gave, to see whether it is there";
    assert_eq!(api.post(S, json!({})).await.fails(503), told(text));
}

#[tokio::test]
async fn an_unknown_outcome_of_a_change_of_a_session_is_repeated_with_its_key() {
    let broken = crate::stores::failing_after(0, || SessionError::InDoubt {
        action: "append an event",
        advice: "append the same event again",
        source: "it went away".into(),
    });
    let api = Client::new(Server::new(SessionService::new(broken), Apps::new()));
    api.post(S, json!({})).await.ok();
    let detail = api.once("k").patch(S, json!({"stateDelta": {"a": 1}})).await.fails(503);
    let text = "tried to append an event, which is done or not done; \
                send the same request with the same Idempotency-Key again";
    assert_eq!(detail, text);
}

#[tokio::test]
async fn the_history_of_shared_state_knows_who_wrote() {
    let sessions = sessions();
    let store = sessions.store();
    let api = Client::new(guarded(sessions));
    let (ada, root) =
        (api.bearing(&of("ada", "sessile:write_app")), api.bearing(&of("root", "sessile:admin")));
    ada.once("r1").patch(USER, json!({"stateDelta": {"a": 1}})).await.ok();
    root.once("r2").patch(USER, json!({"stateOps": {"a": {"add": 1}}})).await.ok();
    ada.once("r3").patch(APP, json!({"stateDelta": {"a": 1}})).await.ok();
    let by = async |scope: ScopeKey| {
        let changes = store.scope_changes(&scope, ChangeWindow::newest(10)).await.unwrap();
        changes.into_iter().map(|change| change.by).collect::<Vec<_>>()
    };
    let request =
        |id: &str, who: &str| ChangedBy::Request { request: id.into(), principal: Some(who.into()) };
    let user = ScopeKey::User("shop".into(), "ada".into());
    assert_eq!(by(user).await, [request("r2", "root"), request("r1", "ada")]);
    assert_eq!(by(ScopeKey::App("shop".into())).await, [request("r3", "ada")]);
    let detail: Value =
        api.bearing(&of("ada", "")).patch(APP, json!({"stateOps": {"a": {"add": 1}}})).await.fails(403);
    assert!(detail.as_str().unwrap().contains("write_app"), "{detail}");
}
