//! Requests made from the OpenAPI document, valid and not.

use std::process::Command;

use crate::ours::Ours;
use crate::reference::interpreter;

/// Enough to reach every rule of every field, few enough for every run of the tests.
const EXAMPLES: &str = "20";

#[tokio::test(flavor = "multi_thread")]
async fn no_request_made_from_the_document_breaks_the_server() {
    let server = Ours::start().await;
    let mut schemathesis = Command::new(interpreter().with_file_name("schemathesis"));
    schemathesis
        .args(["run", "--checks", "not_a_server_error", "--max-examples", EXAMPLES, "--seed", "1"])
        .args(["--phases", "examples,coverage,fuzzing", "--no-color"])
        // Streams that end only with their client, and the one that ends the process's telemetry.
        .args(["--exclude-path-regex", "watch|run_live"])
        .arg(format!("{}/openapi.json", server.address()))
        .current_dir(std::env::temp_dir());
    let output = tokio::task::spawn_blocking(move || schemathesis.output()).await.expect("the task ends");
    let output = output.expect("schemathesis runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "schemathesis found something:\n{said}");
}
