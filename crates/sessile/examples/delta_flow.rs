//! How a delta flows: committed state, changes aside, an event that carries them, the next changes.
//!
//! `cargo run -p sessile --example delta_flow`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use sessile::{CreateSession, Event, EventActions, EventWindow, MemoryStore, SessionService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sessions = SessionService::new(MemoryStore::new());
    let new = CreateSession::new("app", "user1").with_state([("count", json!(10)), ("name", json!("Alice"))]);
    let mut session = sessions.create(new).await?;

    // Step 1: what is committed. The view has no pending changes.
    let state = session.state().to_state().with_delta_tracking();
    println!("1. count {}, pending changes: {}", state.get::<u32>("count").unwrap_or(0), state.has_delta());

    // Step 2: changes gather in the view, and its reads see them first.
    state.set("count", 15);
    state.set("name", "Bob");
    println!(
        "2. count {}, name {}",
        state.get::<u32>("count").unwrap_or(0),
        state.get::<String>("name").unwrap_or_default()
    );

    // Step 3: other sessions do not see them yet.
    println!(
        "3. pending changes: {}, stored count: {}",
        state.has_delta(),
        session.state().get::<u32>("count").unwrap_or(0)
    );

    // Step 4: an event carries them …
    let event = Event::new("user").with_actions(EventActions::from_delta(state.delta()));
    println!("4. delta {}", json!(event.actions)["stateDelta"]);

    // Step 5: … and appending it commits them, with the event or not at all.
    sessions.append(&mut session, event).await?;
    state.commit();
    let stored = sessions.get(session.key(), EventWindow::ALL).await?.ok_or("the session is gone")?;
    println!("5. stored {}, pending changes: {}", json!(stored.state().to_map()), state.has_delta());

    // Step 6: new changes, a new delta.
    state.set("count", 20);
    let event = Event::new("user").with_actions(EventActions::from_delta(state.delta()));
    println!(
        "6. count {}, delta {}",
        state.get::<u32>("count").unwrap_or(0),
        json!(event.actions)["stateDelta"]
    );
    state.rollback();
    println!("   after a rollback: count {}", state.get::<u32>("count").unwrap_or(0));
    Ok(())
}
