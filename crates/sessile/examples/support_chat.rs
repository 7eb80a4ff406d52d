//! A support chat: counts of the conversation, a history of the customer, and scratch work that is
//! never stored.
//!
//! `cargo run -p sessile --example support_chat`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "common/model.rs"]
mod model;
#[path = "common/say.rs"]
mod say;

use serde_json::json;
use sessile::model::reply;
use sessile::{
    CallbackContext, CreateSession, EventWindow, LlmAgent, MemoryStore, RunRequest, Runner, SessionService,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = LlmAgent::builder("support_agent")
        .model(model::gemini_or([
            reply("Of course. What is the number of your order?"),
            reply("Thank you, I have found it."),
            reply("Glad to hear it!"),
        ])?)
        .instruction("You are a helpful customer support agent.")
        .after_agent(async |ctx: CallbackContext| {
            // What a request brought under `temp:` is there for the whole run, and gone after it.
            if let Some(time) = ctx.state().get::<f64>("temp:processing_time") {
                println!("(processing time: {time}s)");
            }
            Ok(None)
        })
        .build()?;
    let sessions = SessionService::new(MemoryStore::new());
    let runner = Runner::builder("support_app", agent, sessions.clone()).build()?;

    let new = CreateSession::new("support_app", "customer_456").with_id("support_chat_001").with_state([
        ("conversation_topic", json!(null)),
        ("message_count", json!(0)),
        ("escalation_level", json!("tier1")),
        ("user:total_tickets", json!(3)),
        ("user:satisfaction_score", json!(4.5)),
        ("app:business_hours", json!("9am-5pm EST")),
    ]);
    let session = sessions.create(new).await?;

    let chat = || RunRequest::new("customer_456", "support_chat_001");
    let request = chat().with_text("I need help with my order").with_delta([
        ("conversation_topic", json!("order_issue")),
        ("message_count", json!(1)),
        ("temp:processing_time", json!(0.5)), // never stored
    ]);
    say::say(&runner, request).await?;
    let request = chat().with_text("Order #12345").with_delta([
        ("message_count", json!(2)),
        ("order_id", json!("12345")),
        ("user:last_contact_date", json!("2024-01-15")),
    ]);
    say::say(&runner, request).await?;
    let request = chat().with_text("Thank you! Issue resolved").with_delta([
        ("message_count", json!(3)),
        ("escalation_level", json!("resolved")),
        ("user:total_tickets", json!(4)),
        ("user:satisfaction_score", json!(4.7)),
    ]);
    say::say(&runner, request).await?;

    let session = sessions.get(session.key(), EventWindow::NONE).await?.ok_or("the session is gone")?;
    let state = session.state();
    println!("\n=== Support Chat Summary ===");
    println!("Topic: {}", state.get::<String>("conversation_topic").unwrap_or_default());
    println!("Messages: {}", state.get::<u32>("message_count").unwrap_or_default());
    println!("Status: {}", state.get::<String>("escalation_level").unwrap_or_default());
    println!("Order ID: {}", state.get::<String>("order_id").unwrap_or_default());
    println!("User total tickets: {}", state.get::<u32>("user:total_tickets").unwrap_or_default());
    println!("User satisfaction: {}", state.get::<f64>("user:satisfaction_score").unwrap_or_default());
    println!("Processing time stored: {}", state.contains("temp:processing_time"));

    let new = CreateSession::new("support_app", "customer_456").with_id("support_chat_002");
    let session = sessions.create(new).await?;
    let state = session.state();
    println!("\n=== New Chat Session ===");
    println!("Messages: {}", state.get::<u32>("message_count").unwrap_or(0));
    println!("Topic: {:?}", state.get::<String>("conversation_topic"));
    println!("User total tickets: {}", state.get::<u32>("user:total_tickets").unwrap_or_default());
    Ok(())
}
