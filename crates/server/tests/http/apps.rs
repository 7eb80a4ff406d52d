//! Applications for the tests, on the scripted model.

use std::sync::Arc;

use sessile_agent::{FunctionTool, LlmAgent, Runner, SequentialAgent, ToolContext};
use sessile_artifact::MemoryArtifacts;
use sessile_model::Scripted;
use sessile_server::{App, Apps, Server};
use sessile_session::{MemoryStore, Part, SessionService};

use crate::client::Client;

/// Answers `hi`, saves a file when told to, fails on `boom`, and takes its time on `slow`.
const SCRIPT: &str = r#"
rules:
  - when: { tool: save }
    then: { reply: "saved" }
  - when: { user: "save" }
    then: { call: { name: save, args: { name: "note.txt" } } }
  - when: { user: "boom" }
    then: { error: { code: BROKEN, message: "the model is broken" } }
  - when: { user: "slow" }
    then: { pieces: ["one", " two"], piece_delay_ms: 300, delay_ms: 200 }
  - when: { user: "forever" }
    then: { reply: "never", delay_ms: 3600000 }
  - when: { user: "{words}" }
    then: { pieces: ["you said ", "{words}"] }
"#;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Save {
    name: String,
}

async fn save(args: Save, ctx: ToolContext) -> Result<&'static str, sessile_session::BoxError> {
    ctx.save_artifact(&args.name, Part::text("a note")).await?;
    Ok("done")
}

pub(crate) fn sessions() -> SessionService {
    SessionService::new(MemoryStore::new())
}

/// The agent of the application `echo`.
pub(crate) fn echo() -> LlmAgent {
    LlmAgent::builder("echo")
        .model(Scripted::from_yaml("echo", SCRIPT).unwrap())
        .description("echoes")
        .instruction("Be nice.")
        .output_key("last")
        .tool(FunctionTool::new("save", "saves a file", save))
        .build()
        .unwrap()
}

/// A server with the application `echo`, one that has no model at its root, and one that is broken.
pub(crate) fn server(sessions: SessionService) -> Server {
    let artifacts = Arc::new(MemoryArtifacts::new());
    let runner =
        Runner::builder("echo", echo(), sessions.clone()).artifacts(artifacts.clone()).build().unwrap();
    let steps = SequentialAgent::new(
        "steps",
        [LlmAgent::builder("step").model(Scripted::from_yaml("step", SCRIPT).unwrap()).build().unwrap()],
    )
    .unwrap();
    let steps = Runner::builder("steps", steps, sessions.clone()).build().unwrap();
    let apps = Apps::new()
        .with(App::new(runner))
        .with(App::new(steps).with_language("yaml"))
        .with_failed("broken", "line 3: no model");
    Server::new(sessions, apps).with_artifacts(artifacts)
}

pub(crate) fn client() -> Client {
    Client::new(server(sessions()))
}
