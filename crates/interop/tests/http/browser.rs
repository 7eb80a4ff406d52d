//! Chromium without a window, driven over the WebDriver protocol.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::reference::free_port;

/// One window of a browser with a profile of its own.
pub(crate) struct Browser {
    driver: Child,
    client: reqwest::Client,
    /// The address of the window.
    session: String,
    /// The profile, removed with the browser.
    _profile: TempDir,
}

/// As root Chromium has no sandbox; without the network it should not look for one.
const ARGUMENTS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
];

impl Browser {
    pub(crate) async fn start(client: &reqwest::Client) -> Self {
        let driver = std::env::var_os("SESSILE_TEST_CHROMEDRIVER")
            .expect("SESSILE_TEST_CHROMEDRIVER names chromedriver; ./test installs it");
        let port = free_port();
        let profile = tempfile::tempdir().expect("a temporary folder is made");
        let driver = Command::new(driver)
            .arg(format!("--port={port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let address = format!("http://127.0.0.1:{port}");
        let mut browser = Self { driver, client: client.clone(), session: String::new(), _profile: profile };
        while client.get(format!("{address}/status")).send().await.is_err() {
            let ended = browser.driver.try_wait().expect("the process can be asked");
            assert!(ended.is_none(), "chromedriver ended before it answered");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut arguments: Vec<String> = ARGUMENTS.iter().map(|&argument| argument.to_owned()).collect();
        arguments.push(format!("--user-data-dir={}", browser._profile.path().display()));
        let options = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": {"args": arguments}}}});
        browser.session = format!("{address}/session");
        let window = browser.command("", options).await;
        let id = window["sessionId"].as_str().expect("a new window has an id");
        browser.session = format!("{address}/session/{id}");
        browser
    }

    pub(crate) async fn open(&self, url: &str) {
        self.command("/url", json!({"url": url})).await;
    }

    /// Runs a function's body in the page; returns its result.
    pub(crate) async fn run(&self, script: &str, arguments: Value) -> Value {
        self.command("/execute/sync", json!({"script": script, "args": arguments})).await
    }

    /// Types into the first field that the selector finds, in the place of what it holds: Google's
    /// web UI leaves a sent message in its field, on `adk web` itself as on our server.
    pub(crate) async fn type_into(&self, selector: &str, text: &str) {
        let found = self.command("/element", json!({"using": "css selector", "value": selector})).await;
        let element = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        let element = element.expect("the element has an id");
        self.command(&format!("/element/{element}/clear"), json!({})).await;
        self.command(&format!("/element/{element}/value"), json!({"text": text})).await;
    }

    /// Clicks the first button or tab that shows this text.
    pub(crate) async fn click(&self, text: &str) {
        self.wait_for_true(
            "const wanted = arguments[0];
             const shown = [...document.querySelectorAll('button, [role=tab]')];
             const found = shown.find(element => element.innerText.includes(wanted));
             if (found) found.click();
             return Boolean(found);",
            json!([text]),
            &format!("something to click that says {text:?}"),
        )
        .await;
    }

    /// Waits until the page shows this text.
    pub(crate) async fn wait_for_text(&self, text: &str) {
        let script = "return document.body.innerText.includes(arguments[0]);";
        self.wait_for_true(script, json!([text]), &format!("the text {text:?}")).await;
    }

    /// Asks again until the script answers true; says what the page shows if it never does.
    async fn wait_for_true(&self, script: &str, arguments: Value, what: &str) {
        const ATTEMPTS: usize = 600;
        for _ in 0..ATTEMPTS {
            if self.run(script, arguments.clone()).await == json!(true) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let shown = self.run("return document.body.innerText;", json!([])).await;
        panic!("the page does not show {what}; it shows {shown}");
    }

    async fn command(&self, path: &str, body: Value) -> Value {
        let request = self.client.post(format!("{}{path}", self.session)).json(&body);
        let answer: Value =
            request.send().await.expect("chromedriver answers").json().await.expect("in JSON");
        let value = answer["value"].clone();
        assert!(value.get("error").is_none(), "the browser refuses {path}: {value}");
        value
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium outlives a driver that is killed, so the window is closed first. If that fails,
        // the test has its result all the same.
        if let Err(error) = close(&self.session) {
            eprintln!("cannot close the browser: {error}");
        }
        self.driver.kill().expect("chromedriver runs until it is killed");
        self.driver.wait().expect("a killed process ends");
    }
}

/// Ends the session of a driver, which ends its browser, without an async runtime.
fn close(session: &str) -> std::io::Result<()> {
    let address = session.trim_start_matches("http://");
    let (host, path) = address.split_once('/').ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut stream = std::net::TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "DELETE /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    stream.read(&mut [0; 1024]).map(drop)
}
