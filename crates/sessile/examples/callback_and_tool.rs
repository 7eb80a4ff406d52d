//! State in callbacks and tools: what they write is committed with the event that they make.
//!
//! `cargo run -p sessile --example callback_and_tool`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

#[path = "common/model.rs"]
mod model;
#[path = "common/say.rs"]
mod say;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sessile::agent::ModelRequest;
use sessile::model::{call, reply};
use sessile::{
    BoxError, CallbackContext, CreateSession, EventWindow, FunctionTool, LlmAgent, MemoryStore, RunRequest,
    Runner, SessionService, ToolContext,
};

/// What the model may say to the tool.
#[derive(Deserialize, JsonSchema)]
struct Item {
    /// The item to put into the cart.
    name: String,
}

/// A tool is an async function.
async fn add_to_cart(item: Item, ctx: ToolContext) -> Result<usize, BoxError> {
    let cart = ctx.state().try_modify("cart", Vec::new(), |mut cart: Vec<String>| {
        cart.push(item.name);
        cart
    })?;
    // For the rest of this run only: the callback after the agent reads it.
    ctx.state().set("temp:last_operation_status", "success");
    Ok(cart.len())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = LlmAgent::builder("StateTrackingAgent")
        .model(model::gemini_or([
            call("add_to_cart", json!({ "name": "book" })),
            reply("The book is in your cart."),
        ])?)
        .instruction("Put what the user wants into the cart with the tool. The cart: {cart?}")
        .tool(FunctionTool::new("add_to_cart", "Puts an item into the cart.", add_to_cart))
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().modify("user_action_count", 0_u32, |n| n + 1);
            Ok(None) // an answer here would be the agent's
        })
        .before_model(async |ctx: CallbackContext, request: ModelRequest| {
            ctx.state().set("user:last_model_call", "2024-01-15");
            ctx.state().modify("user:total_calls", 0_u32, |n| n + 1);
            ctx.state().modify("app:total_model_calls", 0_u32, |n| n + 1);
            Ok(request.into()) // an answer here would be the model's
        })
        .after_agent(async |ctx: CallbackContext| {
            let status: Option<String> = ctx.state().get("temp:last_operation_status");
            println!("(last operation: {})", status.unwrap_or_default());
            Ok(None)
        })
        .build()?;
    let sessions = SessionService::new(MemoryStore::new());
    let session = sessions.create(CreateSession::new("app", "user1").with_id("session1")).await?;
    let runner = Runner::builder("app", agent, sessions.clone()).build()?;
    say::say(&runner, RunRequest::new("user1", "session1").with_text("Add a book, please.")).await?;

    let session = sessions.get(session.key(), EventWindow::ALL).await?.ok_or("the session is gone")?;
    println!("State: {}", json!(session.state().to_map()));
    for event in session.events() {
        println!("Event of {}: {}", event.author, json!(event.actions)["stateDelta"]);
    }
    Ok(())
}
