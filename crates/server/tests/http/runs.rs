use axum::http::Method;
use futures_util::FutureExt;
use serde_json::{Value, json};

use crate::apps::client;
use crate::client::{Answer, Client};

const SESSION: &str = "/apps/echo/users/ada/sessions/s";

pub(crate) fn says(text: &str) -> Value {
    json!({"appName": "echo", "userId": "ada", "sessionId": "s",
           "newMessage": {"role": "user", "parts": [{"text": text}]}})
}

fn with(mut body: Value, field: &str, value: Value) -> Value {
    body[field] = value;
    body
}

/// The frames of a stream as JSON.
pub(crate) fn frames(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8", "{}", answer.text);
    let data = answer.text.split("\n\n").filter(|frame| !frame.is_empty());
    let json = data.map(|frame| frame.rsplit_once("data: ").map_or(frame, |(_, json)| json));
    json.map(|json| serde_json::from_str(json).unwrap()).collect()
}

async fn ready() -> Client {
    let api = client();
    api.post(SESSION, json!({})).await.ok();
    api
}

#[tokio::test]
async fn a_run_answers_with_its_events_and_commits_them() {
    let api = ready().await;
    let events = api.post("/run", says("hello")).await.ok();
    assert_eq!(events.as_array().unwrap().len(), 1, "{events}");
    assert_eq!(events[0]["author"], "echo");
    assert_eq!(events[0]["content"]["parts"][0]["text"], "you said hello");
    assert!(events[0]["invocationId"].as_str().unwrap().starts_with("e-"));
    let session = api.get(SESSION).await.ok();
    assert_eq!(session["events"][0]["author"], "user");
    assert_eq!(session["events"][0]["content"]["parts"][0]["text"], "hello");
    assert_eq!(session["events"][1], events[0]);
    assert_eq!(session["state"]["last"], "you said hello");
}

#[tokio::test]
async fn a_stream_has_a_frame_for_each_event() {
    let api = ready().await;
    let answer = api.post("/run_sse", says("héllo")).await;
    assert!(answer.text.starts_with("data: {") && answer.text.ends_with("}\n\n"), "{}", answer.text);
    let whole = frames(&answer);
    assert_eq!(whole.len(), 1);
    assert!(answer.text.contains("you said héllo"));

    let answer = api.post("/run_sse", with(says("again"), "streaming", json!(true))).await;
    let pieces = frames(&answer);
    let texts: Vec<&str> =
        pieces.iter().map(|event| event["content"]["parts"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["you said ", "again", "you said again"]);
    assert_eq!(pieces[0]["partial"], true);
    assert_ne!(pieces[2]["partial"], true);
    assert_eq!(pieces[0]["id"], pieces[2]["id"]);
    assert_eq!(pieces[0]["actions"]["stateDelta"], json!({}));
}

#[tokio::test]
async fn both_spellings_and_a_delta_are_read() {
    let api = ready().await;
    let body = json!({"app_name": "echo", "user_id": "ada", "session_id": "s",
                      "new_message": {"parts": [{"text": "x"}]}, "state_delta": {"k": 1, "temp:t": 2}});
    api.post("/run", body).await.ok();
    let session = api.get(SESSION).await.ok();
    assert_eq!(session["state"], json!({"k": 1, "last": "you said x"}));
    assert_eq!(session["events"][0]["actions"]["stateDelta"], json!({"k": 1}));
}

#[tokio::test]
async fn a_run_that_cannot_begin_is_an_error_before_anything_is_streamed() {
    let api = ready().await;
    for path in ["/run", "/run_sse"] {
        let missing = with(says("x"), "sessionId", json!("no"));
        assert_eq!(api.post(path, missing).await.fails(404), "Session not found: no");
        let unknown = with(says("x"), "appName", json!("nope"));
        assert_eq!(api.post(path, unknown).await.fails(404), "Agent not found: 'nope'.");
        let unnamed = with(says("x"), "appName", Value::Null);
        let detail = api.post(path, unnamed).await.fails(400);
        assert_eq!(detail, "app_name is required when ADK_DEFAULT_APP_NAME is not set");
        let broken = with(says("x"), "appName", json!("broken"));
        assert_eq!(api.post(path, broken).await.fails(500), "Failed to load agent");
        api.post(path, with(says("x"), "appName", json!("__secret"))).await.fails(403);
        let detail = api.post(path, json!({})).await.fails(422);
        assert_eq!(detail[0]["loc"], json!(["body", "userId"]));
        assert_eq!(detail[1]["loc"], json!(["body", "sessionId"]));
        let detail = api.post(path, with(says("x"), "newMessage", json!({"parts": "x"}))).await.fails(422);
        assert_eq!(detail[0]["loc"], json!(["body", "newMessage", "parts"]));
        let detail = api.post(path, with(says("x"), "streaming", json!("maybe"))).await.fails(422);
        assert_eq!(detail[0]["type"], "bool_parsing");
    }
    assert_eq!(api.get(SESSION).await.ok()["events"], json!([]));
}

#[tokio::test]
async fn a_failed_run_says_so_and_leaves_the_session_usable() {
    let api = ready().await;
    let detail = api.post("/run", says("boom")).await.fails(500);
    assert_eq!(detail, "BROKEN: the model is broken");
    let answer = api.post("/run_sse", says("boom")).await;
    let frames = frames(&answer);
    assert_eq!(frames[0]["errorCode"], "BROKEN");
    assert_eq!(frames[1]["error"], "BROKEN: the model is broken");
    assert_eq!(frames[1]["error_details"]["error_type"], "BROKEN");
    assert!(answer.text.contains("data: {\"error\": \"BROKEN"), "{}", answer.text);
    api.post("/run", says("fine")).await.ok();
    let call = json!({"parts": [{"functionCall": {"name": "x"}}]});
    api.post("/run", with(says("x"), "newMessage", call.clone())).await.fails(422);
    let answer = api.post("/run_sse", with(says("x"), "newMessage", call)).await;
    assert!(self::frames(&answer)[0]["error"].as_str().unwrap().starts_with("ValueError: "));
}

#[tokio::test]
async fn artifacts_are_sent_apart_from_what_is_said() {
    let api = ready().await;
    let answers = frames(&api.post("/run_sse", says("save")).await);
    let saved: Vec<&Value> =
        answers.iter().filter(|event| event["actions"]["artifactDelta"] == json!({"note.txt": 0})).collect();
    assert_eq!(saved.len(), 1);
    assert_eq!(saved[0]["content"], Value::Null);
    let same = answers.iter().filter(|event| event["id"] == saved[0]["id"]).count();
    assert_eq!(same, 2);
    let names = api.get(&format!("{SESSION}/artifacts")).await.ok();
    assert_eq!(names, json!(["note.txt"]));
    let asked = with(says("save"), "functionCallEventId", json!("x"));
    let answers = frames(&api.post("/run_sse", asked).await);
    let saved = answers.iter().find(|event| event["actions"]["artifactDelta"] != json!({})).unwrap();
    assert_ne!(saved["content"], Value::Null);
}

#[tokio::test]
async fn a_detached_run_goes_on_and_can_be_followed() {
    let api = ready().await;
    let answer = api.post("/run", with(says("slow"), "detach", json!(true))).await;
    assert_eq!(answer.status.as_u16(), 202);
    let place = answer.header("location").to_owned();
    let invocation = answer.json()["invocationId"].as_str().unwrap().to_owned();
    assert_eq!(place, format!("{SESSION}/runs/{invocation}"));
    let going_on = api.get(&format!("{SESSION}/runs")).await.ok();
    assert_eq!(going_on, json!({"invocationIds": [invocation]}));

    let followed = api.get(&place).await;
    assert!(followed.text.starts_with("id: 0\ndata: {"), "{}", followed.text);
    let last = frames(&followed).pop().unwrap();
    assert_eq!(last["content"]["parts"][0]["text"], "one two");
    assert_eq!(last["invocationId"], json!(invocation));
    assert_eq!(frames(&api.get(&place).await).len(), frames(&followed).len());
    assert_eq!(frames(&api.with("last-event-id", "0").get(&place).await).len(), frames(&followed).len() - 1);
    assert_eq!(api.get(&format!("{SESSION}/runs")).await.ok(), json!({"invocationIds": []}));
    assert_eq!(api.get(SESSION).await.ok()["state"]["last"], "one two");
    assert_eq!(api.delete(&place).await.fails(404), "Run not found");
}

#[tokio::test]
async fn what_a_run_said_can_be_read_from_the_store() {
    let api = ready().await;
    let events = api.post("/run", says("hello")).await.ok();
    let place = format!("{SESSION}/runs/{}", events[0]["invocationId"].as_str().unwrap());
    assert_eq!(frames(&api.get(&place).await), [events[0].clone()]);
    assert_eq!(api.get(&format!("{SESSION}/runs/e-none")).await.fails(404), "Run not found");
    api.with("last-event-id", "x").get(&place).await.fails(400);
}

#[tokio::test]
async fn a_run_is_cancelled_and_the_session_stays_usable() {
    let api = ready().await;
    let answer = api.post("/run", with(says("forever"), "detach", json!(true))).await;
    let place = answer.header("location").to_owned();
    api.delete(&place).await.ok();
    let end = frames(&api.get(&place).await).pop().unwrap();
    assert_eq!(end["error"], "CancelledError: the run was cancelled");
    let events = api.post("/run", says("next")).await.ok();
    assert_eq!(events[0]["content"]["parts"][0]["text"], "you said next");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_run() {
    let api = ready().await;
    let run = api.send(Method::POST, "/run", Some(says("forever").to_string()));
    tokio::time::timeout(std::time::Duration::from_millis(300), run).await.err().expect("it runs for ever");
    assert_eq!(api.get(&format!("{SESSION}/runs")).await.ok(), json!({"invocationIds": []}));
    api.post("/run", says("next")).await.ok();
}

#[tokio::test]
async fn a_run_is_cancelled_before_its_first_event() {
    let api = ready().await;
    let said = json!({"author": "user", "content": {"role": "user", "parts": [{"text": "forever"}]}});
    api.post(&format!("{SESSION}/events"), said).await.ok();
    // Without a message the first event is the model's answer.
    let going_on = json!({"appName": "echo", "userId": "ada", "sessionId": "s"});
    let mut run = std::pin::pin!(api.post("/run", going_on));
    let runs = format!("{SESSION}/runs");
    let invocation = loop {
        assert!((&mut run).now_or_never().is_none(), "it runs for ever");
        if let Some(invocation) = api.get(&runs).await.ok()["invocationIds"][0].as_str() {
            break invocation.to_owned();
        }
    };
    api.delete(&format!("{runs}/{invocation}")).await.ok();
    assert_eq!(run.await.fails(409), "the run was cancelled");
    assert_eq!(api.get(&runs).await.ok(), json!({"invocationIds": []}));
    api.post("/run", says("next")).await.ok();
}
