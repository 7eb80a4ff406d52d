//! A tournament beside the regular game: another application, with its own `app:` state and its own
//! state of each user.
//!
//! `cargo run -p sessile --example tournament`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "common/model.rs"]
mod model;
#[path = "common/say.rs"]
mod say;

use serde_json::json;
use sessile::model::reply;
use sessile::{CreateSession, LlmAgent, MemoryStore, RunRequest, Runner, SessionService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = SessionService::new(MemoryStore::new());
    let game = CreateSession::new("game_app", "player_alice").with_id("regular_game_001");
    let game = game.with_state([("app:max_level", json!(100)), ("user:total_wins", json!(11))]);
    sessions.create(game).await?;
    let tournament = CreateSession::new("tournament_app", "player_alice").with_id("tournament_001");
    sessions.create(tournament.with_state([("app:max_level", json!(10))])).await?;

    // The same agent, run for both applications.
    let agent = |answer: &str| {
        LlmAgent::builder("game_agent")
            .model(model::gemini_or([reply(answer)])?)
            .instruction("The highest level is {app:max_level}. Alice has won {user:total_wins?} games.")
            .build()
            .map_err(Box::<dyn std::error::Error>::from)
    };
    let regular = Runner::builder("game_app", agent("There are 100 levels.")?, sessions.clone()).build()?;
    let tournament =
        Runner::builder("tournament_app", agent("There are 10 levels.")?, sessions.clone()).build()?;
    let question = "How many levels are there?";
    println!("=== game_app ===");
    say::say(&regular, RunRequest::new("player_alice", "regular_game_001").with_text(question)).await?;
    println!("\n=== tournament_app ===");
    say::say(&tournament, RunRequest::new("player_alice", "tournament_001").with_text(question)).await?;

    println!("\n=== What each application knows ===");
    for app in ["game_app", "tournament_app"] {
        let (app_state, user_state) =
            (sessions.app_state(app).await?, sessions.user_state(app, "player_alice").await?);
        println!(
            "{app}: max level {}, wins of Alice {:?}",
            app_state["max_level"],
            user_state.get("total_wins")
        );
    }
    Ok(())
}
