//! Every example runs and prints what `tests/expected` says it prints, all of it.
//!
//! `cargo test -p sessile` builds the examples before it runs this. To add one: its source in
//! `examples/`, its output in `tests/expected/`, and a test here.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tokio::net::TcpListener;
use tokio_postgres::NoTls;

/// Names the examples that need nothing but themselves.
macro_rules! examples {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(stringify!($name), None);
        })*

        const ALONE: &[&str] = &[$(stringify!($name)),*];
    };
}

examples!(
    callback_and_tool,
    delta_flow,
    live_support,
    manual_event,
    output_key,
    patch,
    scratchpad,
    shopping_cart,
    support_chat,
    templating,
    tournament,
);

/// The examples that need a PostgreSQL.
const ON_POSTGRES: &[&str] = &["game", "predefined_state"];

/// Under one name, so that `./test quick` can leave them out.
mod on_postgres {
    #[tokio::test(flavor = "multi_thread")]
    async fn game() {
        super::run_on_postgres("game").await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn predefined_state() {
        super::run_on_postgres("predefined_state").await;
    }
}

#[test]
fn no_example_is_left_out() {
    let mut sources: Vec<String> = std::fs::read_dir(folder().join("examples"))
        .expect("there are examples")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().expect("a name").to_str().expect("a text").to_owned())
        .collect();
    sources.sort();
    let mut tested = [ALONE, ON_POSTGRES].concat();
    tested.sort_unstable();
    assert_eq!(sources, tested);
}

/// With a key the same example asks Gemini; here, a server that speaks like it.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_key_gemini_is_asked() {
    let answer = json!({"candidates": [{
        "content": {"role": "model", "parts": [{"text": "Hello from Gemini."}]},
        "finishReason": "STOP",
    }]});
    let gemini = axum::Router::new().fallback(async move || axum::Json(answer.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    tokio::spawn(axum::serve(listener, gemini).into_future());
    let variables = [("GOOGLE_API_KEY", "a key".to_owned()), ("GOOGLE_GEMINI_BASE_URL", url)];
    let printed = tokio::task::spawn_blocking(|| output_of("output_key", variables)).await.expect("it runs");
    let last = printed.lines().last();
    assert_eq!(last, Some(r#"State after agent run: {"last_greeting":"Hello from Gemini."}"#));
}

/// What an example prints with these variables in its environment.
fn output_of(name: &str, variables: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let mut command = Command::new(binary(name));
    // With a key it would ask Gemini, which says something else every time.
    command.env_remove("GOOGLE_API_KEY").env_remove("GEMINI_API_KEY").env_remove("DATABASE_URL");
    let output = command.envs(variables).output().expect("the example starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} ends with {}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Runs an example and compares all that it prints.
fn run(name: &str, database: Option<String>) {
    let output = output_of(name, database.map(|url| ("DATABASE_URL", url)));
    let expected = folder().join("tests/expected").join(format!("{name}.txt"));
    let expected = std::fs::read_to_string(expected).expect("the expected output is there");
    assert_eq!(output, expected);
}

/// The example that cargo built, which must be newer than its source.
fn binary(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("this test has a path");
    let target = this.parent().and_then(Path::parent).expect("it is in target/debug/deps");
    let binary = target.join("examples").join(name).with_extension(std::env::consts::EXE_EXTENSION);
    let source = folder().join("examples").join(format!("{name}.rs"));
    let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified());
    let built = changed(&binary).is_ok_and(|built| changed(&source).is_ok_and(|written| built >= written));
    assert!(built, "{} is missing or old; `cargo test -p sessile` builds it", binary.display());
    binary
}

/// Runs an example on a new database of the PostgreSQL that `./test` starts. Without one it fails:
/// what was not tried did not pass.
async fn run_on_postgres(name: &'static str) {
    let server = std::env::var("SESSILE_TEST_POSTGRES")
        .expect("SESSILE_TEST_POSTGRES names a PostgreSQL; `./test` starts one, or set it to postgresql://user@host/database");
    let (client, connection) = tokio_postgres::connect(&server, NoTls).await.expect("the server is reached");
    tokio::spawn(connection);
    let database = format!("example_{}", uuid::Uuid::new_v4().simple());
    client.batch_execute(&format!("CREATE DATABASE {database}")).await.expect("the database is created");
    let (before, _) = server.rsplit_once('/').expect("the URL names a database");
    let url = format!("{before}/{database}");
    let ran = tokio::task::spawn_blocking(move || run(name, Some(url))).await;
    client
        .batch_execute(&format!("DROP DATABASE {database} WITH (FORCE)"))
        .await
        .expect("the database is dropped");
    ran.expect("the example runs");
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
