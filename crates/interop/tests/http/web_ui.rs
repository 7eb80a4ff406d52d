//! Google's web UI, in a browser, on Sessile's server.

use std::path::PathBuf;

use serde_json::json;

use crate::browser::Browser;
use crate::ours::Ours;
use crate::reference::interpreter;

const ENTER: &str = "\u{E007}";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_chats_and_sees_events_state_and_traces() {
    let server = Ours::start_with_web_ui(&web_ui_files()).await;
    let client = crate::client();
    let browser = Browser::start(&client).await;

    browser.open(&format!("{}/dev-ui/?app=echo", server.address())).await;
    browser.wait_for_text("NEW SESSION").await;
    browser.type_into("textarea.chat-input-box", &format!("hello there{ENTER}")).await;
    browser.wait_for_text("you said: hello there").await;

    browser.click("State").await;
    browser.wait_for_text("last_reply").await;
    browser.wait_for_text("\"you said: hello there\"").await;

    browser.click("Traces").await;
    browser.wait_for_text("INVOCATION ID").await;

    // What the person saw is what is stored.
    let list = client.get(format!("{}/apps/echo/users/user/sessions", server.address()));
    let sessions: serde_json::Value =
        list.send().await.expect("the server answers").json().await.expect("in JSON");
    assert_eq!(sessions.as_array().map(Vec::len), Some(1));
    assert_eq!(sessions[0]["state"]["last_reply"], json!("you said: hello there"));

    // The second message goes to the same session.
    browser.type_into("textarea.chat-input-box", &format!("and again{ENTER}")).await;
    browser.wait_for_text("you said: and again").await;
    let id = sessions[0]["id"].as_str().expect("a session has an id");
    let get = client.get(format!("{}/apps/echo/users/user/sessions/{id}", server.address()));
    let session: serde_json::Value =
        get.send().await.expect("the server answers").json().await.expect("in JSON");
    let said: Vec<_> = session["events"]
        .as_array()
        .expect("a session has events")
        .iter()
        .filter_map(|event| event["content"]["parts"][0]["text"].as_str())
        .collect();
    assert_eq!(said, ["hello there", "you said: hello there", "and again", "you said: and again"]);
}

/// The files are inside the google-adk package.
fn web_ui_files() -> PathBuf {
    let script =
        "import google.adk.cli, os; print(os.path.join(os.path.dirname(google.adk.cli.__file__), 'browser'))";
    let output =
        std::process::Command::new(interpreter()).args(["-c", script]).output().expect("Python runs");
    let path = String::from_utf8(output.stdout).expect("a path that is text");
    PathBuf::from(path.trim())
}
