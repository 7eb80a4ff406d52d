//! google-adk's own runner, with its sessions on Sessile's server.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sessile_session::{EventWindow, SessionKey};

use crate::ours::Ours;
use crate::reference::interpreter;

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_of_google_adk_keeps_its_sessions_here() {
    let server = Ours::start().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("http_service.py");
    let mut python = Command::new(interpreter());
    python.arg(script).arg(server.address()).arg("5");
    let output = tokio::task::spawn_blocking(move || python.output()).await.expect("the task ends");
    let output = output.expect("Python runs");
    assert!(output.status.success(), "Python failed: {}", String::from_utf8_lossy(&output.stderr));
    let seen: Value = serde_json::from_slice(&output.stdout).expect("Python prints JSON");

    let state = json!({"app:motd": "hi", "user:count": 5, "step": 4, "said": "counted to 5"});
    assert_eq!(seen["state"], state);
    assert_eq!(seen["events"], 5 * 4, "the message, the call, its answer and the reply of each turn");
    assert_eq!(seen["last"], json!(["counted to 5"]));
    assert_eq!(seen["other"], json!({"app:motd": "hi", "user:count": 5}));
    assert_eq!(seen["listed"], 2);
    assert_eq!(seen["gone"], true);

    let id = seen["id"].as_str().expect("a session has an id");
    let key = SessionKey::new("count", "ada", id).expect("the server gave a valid id");
    let session = server.sessions().get(&key, EventWindow::ALL).await.expect("the store answers");
    let session = session.expect("the session is there");
    assert_eq!(Value::from(session.state().to_map()), state);
    assert_eq!(session.version(), 20);
}
