//! The agents that answer: one at once, one with the help of a tool that writes state.

use std::sync::Arc;

use adk_agent::{LlmAgent, LlmAgentBuilder};
use adk_core::{
    Content, EventActions, FinishReason, IncludeContents, Llm, LlmRequest, LlmResponse, LlmResponseStream, Part,
    Result, Tool, ToolContext,
};
use async_trait::async_trait;
use serde_json::{Value, json};

/// Says "ok" to everything.
pub fn echo() -> Result<LlmAgent> {
    LlmAgentBuilder::new("echo").model(Arc::new(Says)).build()
}

/// Calls the tool at every message, then says "done".
pub fn counter() -> Result<LlmAgent> {
    LlmAgentBuilder::new("counter")
        .model(Arc::new(Calls))
        .tool(Arc::new(Count))
        .include_contents(IncludeContents::None)
        .build()
}

struct Says;

#[async_trait]
impl Llm for Says {
    fn name(&self) -> &str {
        "says"
    }

    async fn generate_content(&self, _: LlmRequest, _: bool) -> Result<LlmResponseStream> {
        Ok(answer(Part::Text { text: "ok".to_owned() }))
    }
}

struct Calls;

#[async_trait]
impl Llm for Calls {
    fn name(&self) -> &str {
        "calls"
    }

    async fn generate_content(&self, request: LlmRequest, _: bool) -> Result<LlmResponseStream> {
        let last = request.contents.last().and_then(|content| content.parts.last());
        Ok(answer(match last {
            Some(Part::FunctionResponse { .. }) => Part::Text { text: "done".to_owned() },
            _ => Part::FunctionCall {
                name: "count".to_owned(),
                args: json!({}),
                id: None,
                thought_signature: None,
            },
        }))
    }
}

struct Count;

#[async_trait]
impl Tool for Count {
    fn name(&self) -> &str {
        "count"
    }

    fn description(&self) -> &str {
        "Counts."
    }

    async fn execute(&self, context: Arc<dyn ToolContext>, _: Value) -> Result<Value> {
        let mut actions: EventActions = context.actions();
        actions.state_delta.insert("count".to_owned(), json!(1));
        context.set_actions(actions);
        Ok(json!({"count": 1}))
    }
}

fn answer(part: Part) -> LlmResponseStream {
    let content = Content { role: "model".to_owned(), parts: vec![part] };
    let response = LlmResponse {
        content: Some(content),
        finish_reason: Some(FinishReason::Stop),
        turn_complete: true,
        ..LlmResponse::default()
    };
    Box::pin(futures_util::stream::iter([Ok(response)]))
}
