//! A shopping cart: what belongs to the session, to the user and to the application.
//!
//! `cargo run -p sessile --example shopping_cart`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "common/model.rs"]
mod model;
#[path = "common/say.rs"]
mod say;

use serde_json::json;
use sessile::model::reply;
use sessile::{CreateSession, EventWindow, LlmAgent, MemoryStore, RunRequest, Runner, SessionService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = LlmAgent::builder("shopping_assistant")
        .model(model::gemini_or([reply("The iPhone 15 is in your cart."), reply("And the AirPods Pro.")])?)
        .instruction("You are a shopping assistant. Help users with their cart.")
        .build()?;
    let sessions = SessionService::new(MemoryStore::new());
    let runner = Runner::builder("ecommerce_app", agent, sessions.clone()).build()?;

    let new = CreateSession::new("ecommerce_app", "user123").with_id("shopping_session_001").with_state([
        ("cart_items", json!([])),            // this session
        ("cart_total", json!(0.0)),           // this session
        ("user:loyalty_points", json!(1000)), // all sessions of this user
        ("app:tax_rate", json!(0.08)),        // all users
    ]);
    let session = sessions.create(new).await?;
    let state = session.state();
    println!("=== Initial State ===");
    println!("Cart items: {:?}", state.get::<Vec<String>>("cart_items").unwrap_or_default());
    println!("Cart total: ${:.2}", state.get::<f64>("cart_total").unwrap_or_default());
    println!("Loyalty points: {}", state.get::<u32>("user:loyalty_points").unwrap_or_default());
    println!("Tax rate: {}", state.get::<f64>("app:tax_rate").unwrap_or_default());

    // A delta comes with the message, and is committed with it.
    println!("\n=== After Adding Item ===");
    let request =
        RunRequest::new("user123", "shopping_session_001").with_text("Add iPhone 15 to cart").with_delta([
            ("cart_items", json!(["iPhone 15"])),
            ("cart_total", json!(999.99)),
            ("user:last_purchase_category", json!("electronics")),
        ]);
    say::say(&runner, request).await?;
    // A session in hand is a picture of its moment: look again to see what happened since.
    let session = sessions.get(session.key(), EventWindow::NONE).await?.ok_or("the session is gone")?;
    let state = session.state();
    println!("Cart items: {:?}", state.get::<Vec<String>>("cart_items").unwrap_or_default());
    println!("Cart total: ${:.2}", state.get::<f64>("cart_total").unwrap_or_default());
    println!("Last category: {}", state.get::<String>("user:last_purchase_category").unwrap_or_default());

    println!("\n=== After Adding Second Item ===");
    let request = RunRequest::new("user123", "shopping_session_001")
        .with_text("Add AirPods Pro too")
        .with_delta([("cart_items", json!(["iPhone 15", "AirPods Pro"])), ("cart_total", json!(1299.98))]);
    say::say(&runner, request).await?;
    let session = sessions.get(session.key(), EventWindow::NONE).await?.ok_or("the session is gone")?;
    let state = session.state();
    println!("Cart items: {:?}", state.get::<Vec<String>>("cart_items").unwrap_or_default());
    println!("Cart total: ${:.2}", state.get::<f64>("cart_total").unwrap_or_default());

    // The cart belonged to the first session; the points and the category belong to the user.
    let new = CreateSession::new("ecommerce_app", "user123").with_id("shopping_session_002");
    let session = sessions.create(new).await?;
    let state = session.state();
    println!("\n=== New Session (Same User) ===");
    println!("Cart items: {:?}", state.get::<Vec<String>>("cart_items").unwrap_or_default());
    println!("Loyalty points: {}", state.get::<u32>("user:loyalty_points").unwrap_or_default());
    println!("Last category: {}", state.get::<String>("user:last_purchase_category").unwrap_or_default());
    Ok(())
}
