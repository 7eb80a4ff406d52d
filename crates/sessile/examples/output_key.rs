//! The easy way to keep an agent's answer: `output_key`.
//!
//! `cargo run -p sessile --example output_key`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "common/model.rs"]
mod model;

use serde_json::json;
use sessile::model::reply;
use sessile::{CreateSession, EventWindow, LlmAgent, MemoryStore, RunRequest, Runner, SessionService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let greeter = LlmAgent::builder("Greeter")
        .model(model::gemini_or([reply("Hello there! How can I help you today?")])?)
        .instruction("Generate a short, friendly greeting.")
        .output_key("last_greeting") // keeps the answer in the state
        .build()?;
    let sessions = SessionService::new(MemoryStore::new());
    let runner = Runner::builder("state_app", greeter, sessions.clone()).build()?;

    let session = sessions.create(CreateSession::new("state_app", "user1").with_id("session1")).await?;
    println!("Initial state: {}", json!(session.state().to_map()));

    let mut events = runner.run(RunRequest::new("user1", "session1").with_text("Hello"));
    while let Some(event) = events.next().await {
        if event?.is_final_response() {
            println!("Agent responded.");
        }
    }

    let session = sessions.get(session.key(), EventWindow::NONE).await?.ok_or("the session is gone")?;
    println!("State after agent run: {}", json!(session.state().to_map()));
    Ok(())
}
