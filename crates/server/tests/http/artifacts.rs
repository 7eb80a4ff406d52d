use axum::http::Method;
use serde_json::{Value, json};

use crate::apps::client;
use crate::client::Client;

const ARTIFACTS: &str = "/apps/echo/users/ada/sessions/s/artifacts";

fn at(path: &str) -> String {
    format!("{ARTIFACTS}/{path}")
}

#[tokio::test]
async fn an_artifact_is_saved_and_loaded_by_version() {
    let api = client();
    let saved = api
        .post(
            ARTIFACTS,
            json!({"filename": "f.txt", "artifact": {"text": "hello"}, "customMetadata": {"k": 1}}),
        )
        .await
        .ok();
    assert_eq!((&saved["version"], &saved["customMetadata"]), (&json!(0), &json!({"k": 1})));
    assert!(saved["canonicalUri"].is_string() && saved["createTime"].is_f64());
    let picture = json!({"inlineData": {"data": "aGk=", "mimeType": "image/png"}});
    api.post(ARTIFACTS, json!({"filename": "d/g.bin", "artifact": picture})).await.ok();
    api.post(ARTIFACTS, json!({"filename": "user:p", "artifact": {"text": "u"}})).await.ok();
    api.post(ARTIFACTS, json!({"filename": "f.txt", "artifact": {"text": "again"}})).await.ok();

    assert_eq!(api.get(ARTIFACTS).await.ok(), json!(["d/g.bin", "f.txt", "user:p"]));
    assert_eq!(api.get(&at("f.txt")).await.ok(), json!({"text": "again"}));
    assert_eq!(api.get(&at("f.txt?version=0")).await.ok(), json!({"text": "hello"}));
    assert_eq!(api.get(&at("d/g.bin")).await.ok(), picture);
    assert_eq!(api.get(&at("f.txt/versions")).await.ok(), json!([0, 1]));
    assert_eq!(api.get(&at("d/g.bin/versions")).await.ok(), json!([0]));
    assert_eq!(api.get(&at("f.txt/versions/0")).await.ok(), json!({"text": "hello"}));
    assert_eq!(api.get(&at("f.txt/versions/latest")).await.ok(), json!({"text": "again"}));
    assert_eq!(api.get(&at("f.txt/versions/metadata")).await.ok()[0], saved);
    assert_eq!(api.get(&at("f.txt/versions/0/metadata")).await.ok(), saved);
    assert_eq!(api.get(&at("f.txt/versions/latest/metadata")).await.ok()["version"], 1);
    assert_eq!(api.delete(&at("f.txt")).await.ok(), Value::Null);
    assert_eq!(api.delete(&at("f.txt")).await.ok(), Value::Null);
    assert_eq!(api.get(&at("f.txt/versions")).await.ok(), json!([]));
}

#[tokio::test]
async fn what_is_not_there_or_cannot_be_is_said() {
    let api = client();
    assert_eq!(api.get(&at("no")).await.fails(404), "Artifact not found");
    assert_eq!(api.get(&at("no/versions/0")).await.fails(404), "Artifact not found");
    assert_eq!(api.get(&at("no/versions/0/metadata")).await.fails(404), "Artifact version not found");
    assert_eq!(api.get(&at("no/versions/x")).await.fails(422), "Invalid version ID");
    assert_eq!(api.get(&at("no?version=x")).await.fails(422)[0]["loc"], json!(["query", "version"]));
    api.post(ARTIFACTS, json!({"filename": "../../etc/x", "artifact": {"text": "u"}})).await.fails(400);
    api.post(ARTIFACTS, json!({"filename": "/etc/x", "artifact": {"text": "u"}})).await.fails(400);
    api.post(ARTIFACTS, json!({"filename": "empty", "artifact": {}})).await.fails(400);
    let detail = api.post(ARTIFACTS, json!({"filename": 5})).await.fails(422);
    assert_eq!((&detail[0]["type"], &detail[1]["type"]), (&json!("string_type"), &json!("missing")));
    let bad = json!({"filename": "x", "artifact": {"inlineData": {"data": "%%%"}}});
    assert_eq!(api.post(ARTIFACTS, bad).await.fails(422)[0]["type"], "bytes_invalid_encoding");
    let climbing = api.send(Method::GET, &at("..%2F..%2Fsecret"), None).await;
    assert!([400, 404].contains(&climbing.status.as_u16()), "{}", climbing.text);
    assert_eq!(Client::empty().get(ARTIFACTS).await.fails(400), "This server has no artifact service");
}

#[tokio::test]
async fn a_rewind_brings_an_artifact_back() {
    let api = client();
    let event = |invocation: &str, version: i64| {
        let actions = json!({"artifactDelta": {"f.txt": version}});
        json!({"author": "agent", "invocationId": invocation, "actions": actions})
    };
    api.post("/apps/echo/users/ada/sessions/s", json!({})).await.ok();
    for (version, (invocation, text)) in (0..).zip([("one", "first"), ("two", "second")]) {
        api.post(ARTIFACTS, json!({"filename": "f.txt", "artifact": {"text": text}})).await.ok();
        api.post("/apps/echo/users/ada/sessions/s/events", event(invocation, version)).await.ok();
    }
    let body = json!({"rewindBeforeInvocationId": "two"});
    let session = api.post("/apps/echo/users/ada/sessions/s/rewind", body).await.ok();
    assert_eq!(session["events"][2]["actions"]["artifactDelta"], json!({"f.txt": 2}));
    assert_eq!(api.get(&at("f.txt")).await.ok(), json!({"text": "first"}));
}
