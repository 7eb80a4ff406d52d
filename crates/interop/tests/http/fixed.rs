//! Requests at the edges, and what both servers say of them.

use crate::Both;
use crate::call::Call;

/// Method, path, body; in this order, one after the other.
const REQUESTS: &[(&str, &str, Option<&str>)] = &[
    ("GET", "/health", None),
    ("GET", "/list-apps", None),
    ("GET", "/list-apps?relative_path=./", None),
    ("GET", "/nowhere", None),
    ("PUT", "/health", None),
    ("PUT", "/apps/echo/users/ada/sessions/s", None),
    // Sessions of an application that is not there.
    ("POST", "/apps/nobody/users/ada/sessions/s", None),
    ("GET", "/apps/nobody/users/ada/sessions", None),
    // Creating.
    (
        "POST",
        "/apps/echo/users/ada/sessions/s",
        Some(r#"{"a": 1, "temp:t": 2, "user:u": null, "app:p": []}"#),
    ),
    ("POST", "/apps/echo/users/ada/sessions/s", None),
    ("POST", "/apps/echo/users/ada/sessions/s2", Some("null")),
    ("POST", "/apps/echo/users/ada/sessions/s3", Some("[]")),
    (
        "POST",
        "/apps/echo/users/ada/sessions",
        Some(r#"{"sessionId": "s4", "state": {"x": {"y": [1.0, 2]}}}"#),
    ),
    ("POST", "/apps/echo/users/ada/sessions", Some(r#"{"session_id": "s5"}"#)),
    ("POST", "/apps/echo/users/ada/sessions", Some(r#"{"sessionId": "s5"}"#)),
    ("POST", "/apps/echo/users/ada/sessions", Some(r#"{"sessionId": "s6", "state": []}"#)),
    ("POST", "/apps/echo/users/ada/sessions", Some(r#"{"sessionId": 7}"#)),
    ("POST", "/apps/echo/users/ada/sessions", Some(r#"{"sessionId": "s8", "unknown": true}"#)),
    (
        "POST",
        "/apps/echo/users/ada/sessions",
        Some(
            r#"{"sessionId": "with", "events": [
                {"author": "user", "content": {"role": "user", "parts": [{"text": "hello"}]}},
                {"author": "echo", "invocation_id": "e-1", "content": {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}}
            ]}"#,
        ),
    ),
    (
        "POST",
        "/apps/echo/users/ada/sessions",
        Some(r#"{"sessionId": "no", "events": [{"author": "user", "actions": {"stateDelta": {"a": 1}}}]}"#),
    ),
    (
        "POST",
        "/apps/echo/users/ada/sessions",
        Some(r#"{"sessionId": "no", "events": [{"author": "user", "longRunningToolIds": ["x"]}]}"#),
    ),
    ("GET", "/apps/echo/users/ada/sessions/no", None),
    ("GET", "/apps/echo/users/ada/sessions/with", None),
    ("GET", "/apps/echo/users/ada/sessions", None),
    ("GET", "/apps/echo/users/eve/sessions/s", None),
    // Changing.
    ("PATCH", "/apps/echo/users/ada/sessions/s", Some(r#"{"stateDelta": {}}"#)),
    ("PATCH", "/apps/echo/users/ada/sessions/s", Some(r#"{"state_delta": {"a": null, "user:u": 2}}"#)),
    ("PATCH", "/apps/echo/users/ada/sessions/s", Some(r#"{"delta": {}}"#)),
    ("PATCH", "/apps/echo/users/ada/sessions/s", Some(r#"{"stateDelta": null}"#)),
    ("PATCH", "/apps/echo/users/ada/sessions/s", Some(r#"{"stateDelta": [1]}"#)),
    ("PATCH", "/apps/echo/users/ada/sessions/s", Some(r#"{"stateDelta": "x"}"#)),
    ("PATCH", "/apps/echo/users/ada/sessions/s", None),
    ("PATCH", "/apps/echo/users/ada/sessions/absent", Some(r#"{"stateDelta": {}}"#)),
    ("GET", "/apps/echo/users/ada/sessions/s", None),
    // Removing.
    ("DELETE", "/apps/echo/users/ada/sessions/s", None),
    ("DELETE", "/apps/echo/users/ada/sessions/s", None),
    ("GET", "/apps/echo/users/ada/sessions/s", None),
    // Artifacts.
    (
        "POST",
        "/apps/echo/users/ada/sessions/s4/artifacts",
        Some(r#"{"filename": "a.txt", "artifact": {"text": "one"}}"#),
    ),
    (
        "POST",
        "/apps/echo/users/ada/sessions/s4/artifacts",
        Some(
            r#"{"filename": "a.bin", "artifact": {"inlineData": {"data": "AAE_", "mimeType": "image/png"}}, "customMetadata": {"k": "v"}}"#,
        ),
    ),
    ("POST", "/apps/echo/users/ada/sessions/s4/artifacts", Some(r#"{"filename": "a.txt"}"#)),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.bin", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/absent", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt/versions", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt/versions/0", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt/versions/latest", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt/versions/9", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt/versions/x", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt/versions/metadata", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt/versions/0/metadata", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt/versions/9/metadata", None),
    ("DELETE", "/apps/echo/users/ada/sessions/s4/artifacts/a.txt", None),
    ("GET", "/apps/echo/users/ada/sessions/s4/artifacts", None),
    // Memory.
    ("PATCH", "/apps/echo/users/ada/memory", Some(r#"{"sessionId": "s4"}"#)),
    ("PATCH", "/apps/echo/users/ada/memory", Some(r#"{"sessionId": "absent"}"#)),
    ("PATCH", "/apps/echo/users/ada/memory", Some("{}")),
    // Running.
    (
        "POST",
        "/run",
        Some(
            r#"{"appName": "echo", "userId": "ada", "sessionId": "absent", "newMessage": {"role": "user", "parts": [{"text": "hi"}]}}"#,
        ),
    ),
    (
        "POST",
        "/run",
        Some(
            r#"{"userId": "ada", "sessionId": "s4", "newMessage": {"role": "user", "parts": [{"text": "hi"}]}}"#,
        ),
    ),
    ("POST", "/run", Some(r#"{"appName": "echo", "sessionId": "s4"}"#)),
    (
        "POST",
        "/run",
        Some(
            r#"{"appName": "echo", "userId": "ada", "sessionId": "s4", "newMessage": {"role": "user", "parts": [{"text": "hi"}]}, "stateDelta": {"asked": true, "temp:x": 1}}"#,
        ),
    ),
    (
        "POST",
        "/run",
        Some(
            r#"{"app_name": "echo", "user_id": "ada", "session_id": "s4", "new_message": {"parts": [{"text": "again"}]}, "streaming": true}"#,
        ),
    ),
    ("POST", "/run_sse", Some(r#"{"appName": "echo", "userId": "ada", "sessionId": "absent"}"#)),
    ("GET", "/apps/echo/users/ada/sessions/s4", None),
];

#[tokio::test(flavor = "multi_thread")]
async fn requests_at_the_edges_get_the_same_answers() {
    let both = Both::start().await;
    let mut different = Vec::new();
    for &(method, path, body) in REQUESTS {
        let call = Call::Raw { method, path: path.to_owned(), body: body.map(str::to_owned) };
        let (reference, ours) = both.send(&call).await;
        if reference != ours {
            let body = body.unwrap_or("no body");
            different
                .push(format!("{method} {path} {body}\n  reference {reference:?}\n  Sessile   {ours:?}"));
        }
    }
    assert!(
        different.is_empty(),
        "{} requests are answered differently:\n{}",
        different.len(),
        different.join("\n")
    );
}
