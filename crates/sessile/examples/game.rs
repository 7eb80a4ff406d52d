//! A game on PostgreSQL: a player's games, the player's records, and what holds for all players.
//!
//! `DATABASE_URL=postgresql://user@host/database cargo run -p sessile --example game`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "common/model.rs"]
mod model;

use serde_json::json;
use sessile::model::reply;
use sessile::postgres::PostgresStore;
use sessile::{CreateSession, EventWindow, LlmAgent, RunRequest, Runner, SessionKey, SessionService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL to a PostgreSQL database")?;
    let sessions = SessionService::new(PostgresStore::connect_url(&url).await?);
    // The example may have run before in this database.
    for (player, id) in [("alice", "001"), ("alice", "002"), ("bob", "003")] {
        let key = SessionKey::new("game_app", format!("player_{player}"), &format!("game_session_{id}"))?;
        sessions.delete(&key).await?;
    }
    // Shared state can be written without a session.
    let settings = [("max_level", json!(100)), ("leaderboard_enabled", json!(true))];
    sessions.write_app_state("game_app", settings).await?;
    let records =
        [("total_wins", json!(10)), ("high_score", json!(5000)), ("preferred_difficulty", json!("medium"))];
    sessions.write_user_state("game_app", "player_alice", records).await?;

    let agent = LlmAgent::builder("game_agent")
        .model(model::gemini_or([
            reply("Level 1 is done!"),
            reply("Level 2 is done, but it cost you a life."),
            reply("You won the game!"),
        ])?)
        .instruction("You are a game assistant helping players. The highest level is {app:max_level}.")
        .build()?;
    let runner = Runner::builder("game_app", agent, sessions.clone()).build()?;

    let new = CreateSession::new("game_app", "player_alice").with_id("game_session_001").with_state([
        ("current_level", json!(1)),
        ("score", json!(0)),
        ("lives", json!(3)),
        // What belongs to the player and to the game is already there.
    ]);
    let game = sessions.create(new).await?;
    let state = game.state();
    println!("=== Session Created ===");
    println!("Current level: {}", state.get::<u32>("current_level").unwrap_or_default());
    println!("Score: {}", state.get::<u32>("score").unwrap_or_default());
    println!("Total wins: {}", state.get::<u32>("user:total_wins").unwrap_or_default());
    println!("High score: {}", state.get::<u32>("user:high_score").unwrap_or_default());
    println!("Max level: {}", state.get::<u32>("app:max_level").unwrap_or_default());

    let turn = || RunRequest::new("player_alice", "game_session_001");
    runner
        .run(turn().with_text("Complete level 1").with_delta([
            ("current_level", json!(2)),
            ("score", json!(1000)),
            ("temp:level_completion_time", json!(120)), // never stored
        ]))
        .collect()
        .await?;
    runner
        .run(turn().with_text("Complete level 2").with_delta([
            ("current_level", json!(3)),
            ("score", json!(2500)),
            ("lives", json!(2)),
        ]))
        .collect()
        .await?;
    runner
        .run(turn().with_text("Win the game").with_delta([
            ("current_level", json!(4)),
            ("score", json!(5000)),
            ("user:total_wins", json!(11)),
            ("user:high_score", json!(5000)),
        ]))
        .collect()
        .await?;

    let game = sessions.get(game.key(), EventWindow::NONE).await?.ok_or("the session is gone")?;
    let state = game.state();
    println!("\n=== Game Session Summary ===");
    println!("Final level: {}", state.get::<u32>("current_level").unwrap_or_default());
    println!("Final score: {}", state.get::<u32>("score").unwrap_or_default());
    println!("Remaining lives: {}", state.get::<u32>("lives").unwrap_or_default());
    println!("Total wins: {}", state.get::<u32>("user:total_wins").unwrap_or_default());
    println!("High score: {}", state.get::<u32>("user:high_score").unwrap_or_default());

    let new = CreateSession::new("game_app", "player_alice").with_id("game_session_002");
    let game = sessions.create(new).await?;
    let state = game.state();
    println!("\n=== New Game Session ===");
    println!("Starting level: {}", state.get::<u32>("current_level").unwrap_or(1));
    println!("Starting score: {}", state.get::<u32>("score").unwrap_or(0));
    println!("Total wins: {}", state.get::<u32>("user:total_wins").unwrap_or_default());
    println!("High score: {}", state.get::<u32>("user:high_score").unwrap_or_default());
    println!("Max level: {}", state.get::<u32>("app:max_level").unwrap_or_default());

    let new = CreateSession::new("game_app", "player_bob").with_id("game_session_003");
    let game = sessions.create(new).await?;
    let state = game.state();
    println!("\n=== Different Player (Bob) ===");
    println!("Bob's total wins: {}", state.get::<u32>("user:total_wins").unwrap_or(0));
    println!("Bob's high score: {}", state.get::<u32>("user:high_score").unwrap_or(0));
    println!("Max level: {}", state.get::<u32>("app:max_level").unwrap_or_default());
    Ok(())
}
