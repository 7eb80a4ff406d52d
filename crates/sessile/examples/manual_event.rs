//! The standard way to change state outside of an agent: an event with a delta.
//!
//! `cargo run -p sessile --example manual_event`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use sessile::{CreateSession, Event, EventActions, EventWindow, MemoryStore, SessionService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = SessionService::new(MemoryStore::new());
    let new = CreateSession::new("state_app_manual", "user2")
        .with_id("session2")
        .with_state([("user:login_count", json!(0)), ("task_status", json!("idle"))]);
    let mut session = sessions.create(new).await?;
    println!("Initial state: {}", json!(session.state().to_map()));

    let login_time = 1_705_312_800.0; // your clock here
    let logins: u32 = session.state().get("user:login_count").unwrap_or(0);
    let event = Event {
        invocation_id: "inv_login_update".to_owned(),
        timestamp: Some(login_time),
        actions: EventActions::from_delta([
            ("task_status", json!("active")),
            ("user:login_count", json!(logins + 1)),
            ("user:last_login_ts", json!(login_time)),
            ("temp:validation_needed", json!(true)), // never stored
        ]),
        ..Event::new("system") // not an answer of an agent: something that the application did
    };
    sessions.append(&mut session, event).await?;
    println!("`append` called with an explicit state delta.");

    let session = sessions.get(session.key(), EventWindow::ALL).await?.ok_or("the session is gone")?;
    println!("State after event: {}", json!(session.state().to_map()));
    println!("Events: {}, by {}", session.events().len(), session.events()[0].author);

    // To count, better let the service read and write in one: two logins at once lose nothing here.
    let count = |state: &sessile::State| Ok(state.try_modify("user:login_count", 0_u32, |n| n + 1)?);
    let (logins, _) = sessions.transact(session.key(), count).await?;
    println!("After another login: {logins}");
    Ok(())
}
