use serde_json::{Value, json};
use sessile_server::{Apps, Limits, Server};
use sessile_session::{EventWindow, SessionKey};

use crate::apps::{client, sessions};
use crate::client::Client;
use crate::runs::says;

const SESSION: &str = "/apps/echo/users/ada/sessions/s";

#[tokio::test]
async fn shared_state_is_read_and_changed_without_a_session() {
    let api = client();
    let (app, user) = ("/apps/echo/state", "/apps/echo/users/ada/state");
    assert_eq!(api.get(app).await.ok(), json!({}));
    assert_eq!(
        api.patch(app, json!({"stateDelta": {"tax": 0.2, "old": 1}})).await.ok(),
        json!({"tax": 0.2, "old": 1})
    );
    assert_eq!(api.patch(app, json!({"stateRemove": ["old"]})).await.ok(), json!({"tax": 0.2}));
    api.patch(user, json!({"state_delta": {"name": "Ada"}})).await.ok();
    assert_eq!(api.get(user).await.ok(), json!({"name": "Ada"}));
    api.post(SESSION, json!({})).await.ok();
    assert_eq!(api.get(SESSION).await.ok()["state"], json!({"app:tax": 0.2, "user:name": "Ada"}));
    let detail = api.patch(app, json!({"stateDelta": {"app:tax": 1}})).await.fails(422);
    assert!(detail.as_str().unwrap().contains("twice"), "{detail}");
    api.patch(user, json!({"stateDelta": {"x": 1}, "stateRemove": ["x"]})).await.fails(422);
    assert_eq!(api.get(user).await.ok(), json!({"name": "Ada"}));
}

#[tokio::test]
async fn a_session_is_looked_at_rewound_and_forked() {
    let api = client();
    api.post(SESSION, json!({"start": 1})).await.ok();
    let first = api.post("/run", says("one")).await.ok();
    let second = api.post("/run", says("two")).await.ok();
    let state = format!("{SESSION}/state");
    assert_eq!(api.get(&state).await.ok(), json!({"start": 1, "last": "you said two"}));
    assert_eq!(
        api.get(&format!("{state}?version=2")).await.ok(),
        json!({"start": 1, "last": "you said one"})
    );
    assert_eq!(api.get(&format!("{state}?version=0")).await.ok(), json!({"start": 1}));
    api.get(&format!("{state}?version=99")).await.fails(404);
    api.get(&format!("{state}?version=x")).await.fails(422);

    let forked = api.post(&format!("{SESSION}/fork"), json!({"version": 2, "sessionId": "f"})).await.ok();
    assert_eq!((&forked["id"], &forked["state"]["last"]), (&json!("f"), &json!("you said one")));
    assert_eq!(forked["events"].as_array().unwrap().len(), 2);
    let whole = api.post(&format!("{SESSION}/fork"), Value::Null).await.ok();
    assert_eq!(whole["events"].as_array().unwrap().len(), 4);
    api.post(&format!("{SESSION}/fork"), json!({"sessionId": "f"})).await.fails(409);
    api.post(&format!("{SESSION}/fork"), json!({"version": -1})).await.fails(422);

    let rewind = format!("{SESSION}/rewind");
    let body = json!({"rewindBeforeInvocationId": second[0]["invocationId"]});
    let rewound = api.post(&rewind, body).await.ok();
    assert_eq!(rewound["state"], json!({"start": 1, "last": "you said one"}));
    let body = json!({"rewind_before_invocation_id": first[0]["invocationId"]});
    assert_eq!(api.post(&rewind, body).await.ok()["state"], json!({"start": 1}));
    api.post(&rewind, json!({"rewindBeforeInvocationId": "e-none"})).await.fails(404);
    api.post(&rewind, json!({})).await.fails(422);
    api.post("/apps/echo/users/ada/sessions/no/fork", json!({})).await.fails(404);
}

#[tokio::test]
async fn events_are_appended_once() {
    let api = client();
    let events = format!("{SESSION}/events");
    let event = json!({"id": "e1", "author": "elsewhere", "actions": {"stateDelta": {"a": 1, "temp:b": 2}}});
    assert_eq!(api.post(&events, event.clone()).await.fails(404), "Session not found");
    api.post(SESSION, json!({})).await.ok();
    let first = api.post(&events, event.clone()).await;
    assert_eq!(first.version(), 1);
    let first = first.ok();
    assert_eq!(first["actions"]["stateDelta"], json!({"a": 1}));
    api.post(&events, first.clone()).await.ok();
    let session = api.get(SESSION).await.ok();
    assert_eq!((&session["events"], &session["state"]), (&json!([first]), &json!({"a": 1})));
    api.post(&events, json!({"id": "e1", "author": "another"})).await.fails(409);
    api.post(&events, json!({"author": "a", "partial": true})).await.fails(400);
    api.post(&events, json!({"author": "a", "actions": {"typo": 1}})).await.fails(422);
    api.if_match("\"0\"").post(&events, json!({"author": "a"})).await.fails(412);
    assert_eq!(api.get(SESSION).await.ok(), session);
}

#[tokio::test]
async fn an_event_that_is_appended_again_answers_as_the_first_time() {
    let api = client();
    let events = format!("{SESSION}/events");
    let created = api.post(SESSION, json!({})).await.etag();
    // It has no time of its own, and its answer may have been lost.
    let event = json!({"id": "e1", "author": "elsewhere", "actions": {"stateDelta": {"a": 1}}});
    let careful = api.if_match(&created);
    let answered = careful.post(&events, event.clone()).await;
    let (etag, time) = (answered.etag(), answered.header("sessile-last-update-time").to_owned());
    let first = answered.ok();
    assert_eq!(first["timestamp"].to_string(), time);
    for client in [&careful, &api, &api.if_match("\"nonsense\"")] {
        let again = client.post(&events, event.clone()).await;
        assert_eq!((again.etag(), again.header("sessile-last-update-time")), (etag.clone(), &*time));
        assert_eq!(again.ok(), first);
    }
    api.patch(SESSION, json!({"stateDelta": {"b": 1}})).await.ok();
    let again = careful.post(&events, event).await;
    assert_eq!(again.etag(), etag, "the version of the event, not that of the session");
    assert_eq!(again.ok(), first);
    assert_eq!(api.get(SESSION).await.ok()["events"].as_array().unwrap().len(), 2);

    careful.post(&events, json!({"id": "e1", "author": "another"})).await.fails(409);
    careful.post(&events, json!({"id": "e2", "author": "elsewhere"})).await.fails(412);
    api.if_match("\"9\"").post(&events, json!({"id": "e3", "author": "elsewhere"})).await.fails(412);
}

/// The frames of a watch: name and version.
pub(crate) fn versions(text: &str) -> Vec<String> {
    let version = |id: String| id.split('-').next().unwrap().to_owned();
    frames(text).into_iter().map(|(name, id, _)| format!("{name} {}", version(id))).collect()
}

/// The frames of a watch: name, id, data.
pub(crate) fn frames(text: &str) -> Vec<(String, String, Value)> {
    let field = |frame: &str, name: &str| {
        let line = frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|value| value.trim().to_owned()).unwrap_or_default()
    };
    let frames = text.split("\n\n").filter(|frame| frame.contains("data:"));
    frames
        .map(|frame| {
            (field(frame, "event"), field(frame, "id"), serde_json::from_str(&field(frame, "data")).unwrap())
        })
        .collect()
}

#[tokio::test]
async fn a_watch_shows_each_committed_change_until_the_session_is_deleted() {
    let sessions = sessions();
    let api = Client::new(Server::new(sessions.clone(), Apps::new()));
    api.post(SESSION, json!({"a": 1})).await.ok();
    let etag = api.patch(SESSION, json!({"stateDelta": {"a": 2}})).await.etag();
    let changes = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        api.patch(SESSION, json!({"stateDelta": {"a": 3}})).await.ok();
        // Another service on the same store is what another process is.
        let other = sessile_session::SessionService::over(sessions.store());
        let key = SessionKey::new("echo", "ada", "s").unwrap();
        let mut session = other.get(&key, EventWindow::NONE).await.unwrap().unwrap();
        let event = sessile_session::Event::new("user");
        other.append(&mut session, event).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        api.delete(SESSION).await.ok();
    };
    let watch = format!("{SESSION}/watch");
    let resumed = api.with("last-event-id", etag.trim_matches('"'));
    let (whole, resumed, ()) = tokio::join!(api.get(&watch), resumed.get(&watch), changes);
    assert_eq!(whole.header("content-type"), "text/event-stream");
    assert_eq!(versions(&whole.text), ["snapshot 1", "change 2", "change 3", "deleted "]);
    assert_eq!(versions(&resumed.text), ["change 2", "change 3", "deleted "]);
    let all = frames(&whole.text);
    assert_eq!(all[0].2["state"], json!({"a": 2}));
    assert_eq!(all[1].2["actions"]["stateDelta"], json!({"a": 3}));
    assert_eq!(format!("\"{}\"", all[0].1), etag, "the ids of frames are ETags without their quotes");
    api.get(&watch).await.fails(404);
    api.with("last-event-id", &all[0].1).get(&watch).await.fails(404);
}

#[tokio::test]
async fn watches_are_limited_for_each_user_and_in_total() {
    let mut limits = Limits::default();
    (limits.watches, limits.user_watches) = (2, 1);
    let api = Client::new(Server::new(sessions(), Apps::new()).with_limits(limits));
    let [ada, bob, eve] = ["ada", "bob", "eve"].map(|user| format!("/apps/echo/users/{user}/sessions/s"));
    for session in [&ada, &bob, &eve] {
        api.post(session, json!({})).await.ok();
    }
    let watch = async |session: &str| api.open(&format!("{session}/watch")).await;
    let first = watch(&ada).await;
    let detail = api.get(&format!("{ada}/watch")).await.fails(429);
    let text = "1 watches of this user are already in progress, the most that one user may have";
    assert!(detail.as_str().unwrap().starts_with(text), "{detail}");
    let second = watch(&bob).await;
    let refused = api.get(&format!("{eve}/watch")).await;
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.fails(429), "2 watches are already in progress; retry when one has finished");
    drop((first, second));
    assert_eq!(watch(&ada).await.status(), 200);
}
