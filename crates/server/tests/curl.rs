//! Every `curl` of `docs/http-api.md` works, against a real server.

#![expect(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

#[path = "http/apps.rs"]
mod apps;
#[path = "http/client.rs"]
#[expect(dead_code, reason = "the applications of the tests come with their client")]
mod client;

use std::process::Command;

const PAGE: &str = include_str!("../../../docs/http-api.md");

/// What `curl` is on the page: it fails if the answer is a failure. `refused` wants the answer to
/// be one of this status.
const FUNCTIONS: &str = r#"set -euo pipefail
curl() { command curl -sS --fail-with-body --max-time 10 "$@" || return; echo; }
refused() {
  local status; status=$(shift 2; command curl -sS --max-time 10 -o /dev/null -w '%{http_code}' "$@")
  [ "$status" = "$1" ] || { echo "$status in the place of $1: $*" >&2; return 1; }
}
"#;

/// The shell's blocks of the page, in order, as one script. What the page says is refused (`|| true
/// # 412`) must be.
fn script() -> String {
    let blocks = PAGE.split("```sh\n").skip(1).filter_map(|block| block.split("```").next());
    let line = |line: &str| match line.split_once(" || true ") {
        Some((command, note)) => {
            let status: u16 = note.trim().trim_start_matches("# ").get(..3).unwrap().parse().unwrap();
            format!("refused {status} {command}")
        }
        None => line.to_owned(),
    };
    let lines: Vec<String> = blocks.flat_map(str::lines).map(line).collect();
    format!("{FUNCTIONS}{}", lines.join("\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_curl_of_the_page_works() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = apps::server(apps::sessions())
        .with_memory(std::sync::Arc::new(sessile_memory::InMemoryMemory::new()));
    tokio::spawn(sessile_server::serve(listener, server, std::future::pending()));
    let script = script();
    assert!(script.matches("curl ").count() > 60 && script.matches("\nrefused 4").count() > 4);
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
