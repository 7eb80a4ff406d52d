//! The built-in tools, which files use by name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sessile_agent::{AgentError, FunctionTool, LlmAgentBuilder, ToolContext};
use sessile_session::BoxError;

use crate::file::did_you_mean;

const KNOWN: [&str; 3] = ["exit_loop", "load_memory", "AgentTool"];

/// Adds a tool by its name.
pub(crate) fn add(builder: LlmAgentBuilder, name: &str) -> Result<LlmAgentBuilder, String> {
    match name {
        "exit_loop" => Ok(builder.tool(FunctionTool::new(
            name,
            "Ends the loop. Call it only when you were told to.",
            async |_: Nothing, ctx: ToolContext| {
                ctx.escalate();
                ctx.skip_summarization();
                Ok::<_, BoxError>(Value::Null)
            },
        ))),
        "load_memory" => Ok(builder.tool(FunctionTool::new(
            name,
            "Looks for what earlier conversations with this user say about a query.",
            async |query: Query, ctx: ToolContext| {
                let found = ctx.search_memory(&query.query).await?;
                let memories: Vec<Value> = found
                    .iter()
                    .map(|entry| {
                        json!({ "content": entry.content, "author": entry.author, "timestamp": entry.timestamp })
                    })
                    .collect();
                Ok::<_, AgentError>(json!({ "memories": memories }))
            },
        ))),
        name if name.contains('.') => {
            Err(format!("`{name}` is code; tools that are code are written in Rust"))
        }
        name => {
            let hint = did_you_mean(name, &KNOWN);
            Err(format!("there is no tool `{name}` here{hint} (there are {})", KNOWN.join(", ")))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// What to look for.
    query: String,
}
