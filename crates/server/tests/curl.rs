//! Every `curl` of `docs/http-api.md` works, against a real server.

#![expect(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

#[path = "http/apps.rs"]
mod apps;
#[path = "http/client.rs"]
#[expect(dead_code, reason = "the applications of the tests come with their client")]
mod client;

use std::process::Command;

const PAGE: &str = include_str!("../../../docs/http-api.md");

/// The shell's blocks of the page, in order, as one script.
fn script() -> String {
    let blocks = PAGE.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    let curl = "curl() { command curl -sS --fail-with-body --max-time 10 \"$@\" || return; echo; }\n";
    format!("set -euo pipefail\n{curl}{}", blocks.collect::<Vec<_>>().join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_curl_of_the_page_works() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = apps::server(apps::sessions())
        .with_memory(std::sync::Arc::new(sessile_memory::InMemoryMemory::new()));
    tokio::spawn(sessile_server::serve(listener, server, std::future::pending()));
    let script = script();
    assert!(script.matches("curl ").count() > 40);
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(&script).env("SERVER", format!("http://{address}")).env("APP", "echo");
    let output = tokio::task::spawn_blocking(move || bash.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{failed}");
}

#[tokio::test]
async fn the_page_has_every_route() {
    let document = apps::client().get("/openapi.json").await.ok();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let line = format!("{} {path}", method.to_uppercase());
            assert!(PAGE.contains(&format!("`{line}`")), "{line}");
        }
    }
}
