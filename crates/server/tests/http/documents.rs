use std::collections::BTreeMap;

use axum::http::Method;
use serde_json::{Value, json};

use crate::apps::{client, sessions};
use crate::auth::{expired, guarded, of};
use crate::client::Client;
use crate::runs::says;

#[tokio::test]
async fn the_openapi_document_is_as_it_was() {
    let document = client().get("/openapi.json").await.ok();
    let now = serde_json::to_string_pretty(&document).unwrap() + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi.json");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let before = std::fs::read_to_string(path).unwrap_or_default();
    assert!(before == now, "the document changed; look at it with UPDATE_SNAPSHOTS=1 and git diff");
}

#[tokio::test]
async fn everything_that_is_referred_to_is_there() {
    let document = client().get("/openapi.json").await.ok();
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some_and(Value::is_object), "{pointer}");
    }
    let mut ids = BTreeMap::new();
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap().to_owned();
        assert_eq!(ids.insert(id, path.clone()), None, "{method} {path}");
    }
}

#[tokio::test]
async fn the_page_needs_nothing_from_elsewhere() {
    let page = client().get("/docs").await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.text.contains("/openapi.json"));
    assert!(!page.text.contains("http://") && !page.text.contains("https://"));
}

fn operations(document: &Value) -> Vec<(String, Method, Value)> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            all.push((path.clone(), method.to_uppercase().parse().unwrap(), operation.clone()));
        }
    }
    all
}

/// A path of the document with ids in it.
fn filled(path: &str, session: &str) -> String {
    let values = [("app_name", "echo"), ("user_id", "ada"), ("session_id", session), ("version_id", "0")];
    let filled = values
        .iter()
        .fold(path.to_owned(), |path, (name, value)| path.replace(&format!("{{{name}}}"), value));
    ["path", "id", "event_id", "invocation_id"]
        .iter()
        .fold(filled, |path, name| path.replace(&format!("{{{name}}}"), "x"))
}

/// A body that the operation accepts.
fn body(path: &str, method: &Method, session: &str) -> Option<String> {
    let body = match path.rsplit('/').next().unwrap() {
        "run" | "run_sse" => {
            let mut body = says("x");
            body["sessionId"] = json!(session);
            body
        }
        "telemetry" => json!({"telemetry": false}),
        "memory" => json!({"sessionId": session}),
        "artifacts" => json!({"filename": "x", "artifact": {"text": "x"}}),
        "rewind" => json!({"rewindBeforeInvocationId": "x"}),
        "fork" => json!({"sessionId": "forked"}),
        _ if *method == Method::PATCH => json!({"stateDelta": {}}),
        _ => json!({}),
    };
    [Method::POST, Method::PATCH].contains(method).then(|| body.to_string())
}

#[tokio::test]
async fn every_route_enforces_its_access_right() {
    let api = Client::new(guarded(sessions()));
    let (ada, bob) = (api.bearing(&of("ada", "")), api.bearing(&of("bob", "")));
    let admin = api.bearing(&of("root", "sessile:admin"));
    let (bad, late) = (api.bearing("nonsense"), api.bearing(&expired()));
    ada.post("/apps/echo/users/ada/sessions/there", json!({})).await.ok();
    let events = "/apps/{app_name}/users/{user_id}/sessions/{session_id}/events";
    let for_admins = ["/metrics", "/apps/{app_name}/sessions", events];
    let operations = operations(&api.get("/openapi.json").await.ok());
    assert!(operations.len() > 50);
    for (path, method, operation) in operations {
        let is_open = operation.get("security").is_none();
        let of_admins =
            for_admins.contains(&path.as_str()) || (path == "/config/telemetry" && method == Method::POST);
        let by_right = path == "/apps/{app_name}/state" && method == Method::PATCH
            || path == "/apps/{app_name}/state/history";
        let of_user = path.contains("{user_id}") || path.starts_with("/run") && path != "/run_live";
        let ask = async |client: &Client, session: &str| {
            if path.ends_with("/state/watch") {
                // The stream of what is always there has no end.
                return (client.open(&filled(&path, session)).await.status().as_u16(), String::new());
            }
            let answer =
                client.send(method.clone(), &filled(&path, session), body(&path, &method, session)).await;
            (answer.status.as_u16(), answer.text)
        };
        let what = format!("{method} {path}");
        for stranger in [&api, &bad, &late] {
            let (status, text) = ask(stranger, "none").await;
            assert_eq!(status == 401, !is_open, "{what}: {text}");
            assert!(!(is_open && status == 403), "{what}: {text}");
        }
        let (status, text) = ask(&bob, "none").await;
        assert_eq!(status == 403, of_user || of_admins || by_right, "{what} by another user: {text}");
        assert_ne!(status, 401, "{what}");
        if of_user {
            assert_eq!((status, text), ask(&bob, "there").await, "{what} tells what there is");
        }
        let (status, text) = ask(&ada, "none").await;
        assert_eq!(status == 403, of_admins || by_right, "{what} by the user: {text}");
        let (status, text) = ask(&admin, "none").await;
        assert!(![401, 403].contains(&status), "{what} by an admin: {text}");
        assert_ne!(text, r#"{"detail":"Not Found"}"#, "{what} is not there");
        // What an operation made does not keep the next one waiting.
        admin.delete(&filled("/apps/{app_name}/users/{user_id}/sessions/{session_id}", "none")).await.ok();
    }
}
