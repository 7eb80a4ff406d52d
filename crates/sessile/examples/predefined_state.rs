//! State that was put into the database by SQL, before Sessile or google-adk ever ran on it.
//!
//! `DATABASE_URL=postgresql://user@host/database cargo run -p sessile --example predefined_state`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use sessile::postgres::PostgresStore;
use sessile::{CreateSession, Event, EventActions, SessionKey, SessionService};
use tokio_postgres::NoTls;

/// Keys may be written with their prefix, as here, or without it, as google-adk stores them: both
/// are read as the same key.
const PREDEFINED: &str = r#"
    INSERT INTO app_states (app_name, state, update_time)
    VALUES ('my_app', '{"app:version": "1.0.0", "app:tax_rate": 0.08}'::jsonb, NOW())
    ON CONFLICT (app_name) DO UPDATE
       SET state = app_states.state || EXCLUDED.state, update_time = NOW();

    INSERT INTO user_states (app_name, user_id, state, update_time)
    VALUES ('my_app', 'user_001', '{"user:preferred_language": "en", "user:loyalty_points": 1000}'::jsonb, NOW())
    ON CONFLICT (app_name, user_id) DO UPDATE
       SET state = user_states.state || EXCLUDED.state, update_time = NOW();
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL to a PostgreSQL database")?;
    let sessions = SessionService::new(PostgresStore::connect_url(&url).await?); // makes the tables
    let key = SessionKey::new("my_app", "user_001", "session_123")?;
    sessions.delete(&key).await?; // the example may have run before

    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(PREDEFINED).await?;

    let new = CreateSession::new("my_app", "user_001").with_id("session_123");
    let mut session = sessions.create(new.with_state([("message_count", json!(0))])).await?;
    println!("A new session knows: {}", json!(session.state().to_map()));

    // Later changes go to the same rows.
    let event = Event {
        actions: EventActions::from_delta([
            ("app:version", json!("1.1.0")),
            ("app:new_feature", json!(true)),
        ]),
        ..Event::new("system")
    };
    sessions.append(&mut session, event).await?;
    println!("The application now: {}", json!(sessions.app_state("my_app").await?));
    println!("The user still: {}", json!(sessions.user_state("my_app", "user_001").await?));
    Ok(())
}
