use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sessile_agent::{FunctionTool, LlmAgent, ToolContext};
use sessile_session::BoxError;

use super::{built, scripted};

/// Learns the user's name, and knows it in every later session (`user:name`); counts how often it
/// greeted (`greetings`, in the session).
pub(super) fn agent() -> LlmAgent {
    let remember = FunctionTool::new(
        "remember_name",
        "Remembers the user's name, in all sessions.",
        async |person: Person, ctx: ToolContext| {
            let name = person.name.trim().to_owned();
            let before = ctx.state().get::<String>("user:name");
            ctx.state().try_set("user:name", &name)?;
            Ok::<_, BoxError>(json!({ "name": name, "before": before }))
        },
    );
    let forget =
        FunctionTool::new("forget_name", "Forgets the user's name.", async |_: Nothing, ctx: ToolContext| {
            let name = ctx.state().get::<String>("user:name");
            ctx.state().remove("user:name");
            Ok::<_, BoxError>(json!({ "name": name }))
        });
    let greet = FunctionTool::new("greet", "Counts a greeting.", async |_: Nothing, ctx: ToolContext| {
        let greetings = ctx.state().try_modify("greetings", 0_u32, |n| n.saturating_add(1))?;
        Ok::<_, BoxError>(json!({ "greetings": greetings }))
    });
    built(
        scripted("greeter", include_str!("greeter.yaml"))
            .description("Greets, and remembers names across sessions.")
            .instruction("Greet the user. Known name: {user:name?}.")
            .tool(remember)
            .tool(forget)
            .tool(greet)
            .output_key("last_reply"),
    )
}

#[derive(Deserialize, JsonSchema)]
struct Person {
    /// What the user is called.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}
