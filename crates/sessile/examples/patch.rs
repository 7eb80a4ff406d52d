//! State changed over HTTP, as ADK's clients do it.
//!
//! `cargo run -p sessile --example patch`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "common/model.rs"]
mod model;

use serde_json::{Value, json};
use sessile::model::reply;
use sessile::server::{App, Apps, Server, serve};
use sessile::{CreateSession, LlmAgent, MemoryStore, Runner, SessionService};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = SessionService::new(MemoryStore::new());
    let new = CreateSession::new("my_app", "user_001").with_id("session_123");
    sessions.create(new.with_state([("message_count", json!(5))])).await?;

    // `sessile serve` does this from the command line.
    let agent = LlmAgent::builder("helper").model(model::gemini_or([reply("Hello!")])?).build()?;
    let apps = Apps::new().with(App::new(Runner::builder("my_app", agent, sessions.clone()).build()?));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = format!("http://{}", listener.local_addr()?);
    tokio::spawn(serve(listener, Server::new(sessions, apps), std::future::pending()));

    // The HTTP client wants to know how to encrypt, even where it does not.
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "there is one already")?;
    let client = reqwest::Client::new();

    let path = "/apps/my_app/users/user_001/sessions/session_123";
    let delta =
        json!({ "app:version": "1.0.0", "app:tax_rate": 0.08, "user:language": "en", "temp:seen": true });
    let answer =
        client.patch(format!("{server}{path}")).json(&json!({ "state_delta": delta })).send().await?;
    println!("PATCH: {}", answer.status());
    println!("State: {}", answer.json::<Value>().await?["state"]);

    let session: Value = client.get(format!("{server}{path}")).send().await?.json().await?;
    println!("GET:   {}", session["state"]);
    println!("The change is an event by {}", session["events"][0]["author"]);

    let elsewhere = format!("{server}/apps/my_app/users/user_001/sessions/unknown");
    let answer = client.patch(elsewhere).json(&json!({ "state_delta": { "k": 1 } })).send().await?;
    println!("Of no session: {} {}", answer.status(), answer.json::<Value>().await?);
    Ok(())
}
