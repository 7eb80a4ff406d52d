//! An agent of ADK-Rust whose tool counts as its documentation teaches: it reads the state, and
//! sets a key of the delta.

use std::sync::Arc;

use adk_agent::LlmAgentBuilder;
use adk_core::{
    Content, EventActions, FinishReason, IncludeContents, Llm, LlmRequest, LlmResponse, LlmResponseStream, Part,
    Result, Tool, ToolContext,
};
use adk_runner::Runner;
use adk_session::SessionService;
use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};
use sessile_contestant::Failure;

const COUNTER: &str = "user:counter";

/// One run. The runner is made anew, which costs little beside the database.
pub(crate) async fn run(sessions: Arc<dyn SessionService>, id: &str) -> std::result::Result<(), Failure> {
    let agent = LlmAgentBuilder::new("counter")
        .model(Arc::new(Calls))
        .tool(Arc::new(Count))
        .include_contents(IncludeContents::None)
        .build()
        .map_err(super::failure)?;
    let runner = Runner::builder().app_name("bench").agent(Arc::new(agent)).session_service(sessions);
    let runner = runner.build().map_err(super::failure)?;
    let message = Content::new("user").with_text("count");
    let mut events = runner.run_str("user", id, message).await.map_err(super::failure)?;
    while let Some(event) = events.next().await {
        event.map_err(super::failure)?;
    }
    Ok(())
}

struct Calls;

#[async_trait]
impl Llm for Calls {
    fn name(&self) -> &str {
        "calls"
    }

    async fn generate_content(&self, request: LlmRequest, _: bool) -> Result<LlmResponseStream> {
        let last = request.contents.last().and_then(|content| content.parts.last());
        let part = match last {
            Some(Part::FunctionResponse { .. }) => Part::Text { text: "done".to_owned() },
            _ => Part::FunctionCall { name: "count".to_owned(), args: json!({}), id: None, thought_signature: None },
        };
        let response = LlmResponse {
            content: Some(Content { role: "model".to_owned(), parts: vec![part] }),
            finish_reason: Some(FinishReason::Stop),
            turn_complete: true,
            ..LlmResponse::default()
        };
        Ok(Box::pin(futures_util::stream::iter([Ok(response)])))
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
        let session = context.session().expect("its runner gives the tool its session");
        let now = session.state().get(COUNTER).and_then(|value| value.as_i64()).unwrap_or(0);
        let mut actions: EventActions = context.actions();
        actions.state_delta.insert(COUNTER.to_owned(), json!(now + 1));
        context.set_actions(actions);
        Ok(json!({"counted": true}))
    }
}
