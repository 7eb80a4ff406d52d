use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use sessile_session::{Content, CreateSession, Event, MemoryStore, SessionService};
use sessile_state::{Delta, Scope};

use crate::agent::Agent;
use crate::context::{Outer, ToolContext};
use crate::error::ToolError;
use crate::model::FunctionDeclaration;
use crate::run_request::{RunConfig, RunRequest};
use crate::runner::Runner;
use crate::tool::Tool;

/// An agent as a tool: another agent asks it and reads its answer.
///
/// It runs in a session of its own, which begins with the state that the asking agent sees and is
/// gone afterwards; what it changes becomes the tool's changes, and what it changes with operations
/// stays operations.
pub struct AgentTool {
    agent: Arc<dyn Agent>,
    skip_summarization: bool,
}

impl AgentTool {
    /// A tool that asks this agent.
    pub fn new(agent: impl Agent + 'static) -> Self {
        Self { agent: Arc::new(agent), skip_summarization: false }
    }

    /// Makes the answer of the agent the final one: the model of the asking agent is not asked
    /// again.
    #[must_use]
    pub fn skip_summarization(mut self) -> Self {
        self.skip_summarization = true;
        self
    }
}

/// The argument that holds the question.
const REQUEST: &str = "request";

#[async_trait]
impl Tool for AgentTool {
    fn name(&self) -> &str {
        self.agent.name()
    }

    fn description(&self) -> &str {
        self.agent.description()
    }

    fn declaration(&self) -> Option<FunctionDeclaration> {
        let parameters = json!({
            "type": "object",
            "properties": { REQUEST: { "type": "string", "description": "What the agent is asked." } },
            "required": [REQUEST],
        });
        Some(FunctionDeclaration {
            name: self.agent.name().to_owned(),
            description: self.agent.description().to_owned(),
            parameters: Some(parameters.into()),
        })
    }

    async fn call(&self, args: Map<String, Value>, ctx: &ToolContext) -> Result<Option<Value>, ToolError> {
        let Some(question) = args.get(REQUEST).and_then(Value::as_str) else {
            let reason = format!("`{REQUEST}` is to be a text");
            return Err(ToolError::Arguments { tool: self.name().to_owned(), reason });
        };
        if self.skip_summarization {
            ctx.skip_summarization();
        }
        let answer = self.ask(question, ctx).await?;
        Ok(Some(Value::from(answer)))
    }
}

impl AgentTool {
    async fn ask(&self, question: &str, ctx: &ToolContext) -> Result<String, ToolError> {
        // The same address as the session of the asking agent, so that artifacts are shared.
        let key = ctx.session_key();
        let sessions = SessionService::new(MemoryStore::new());
        let seen = ctx.state().snapshot();
        let state: Delta = seen
            .iter()
            .filter(|(name, _)| !name.starts_with("_adk") && Scope::of(name).0 != Scope::Temp)
            .collect();
        let new = CreateSession::new(key.app(), key.user()).with_id(key.id()).with_state(state);
        sessions.create(new).await.map_err(ToolError::failed)?;
        let outer = Arc::new(Outer::new(ctx, seen));
        let mut builder = Runner::builder(key.app(), self.agent.clone(), sessions).inside(outer.clone());
        if let Some(artifacts) = &ctx.invocation.services.artifacts {
            builder = builder.artifacts(artifacts.clone());
        }
        if let Some(memory) = &ctx.invocation.services.memory {
            builder = builder.memory(memory.clone());
        }
        let runner = builder.build().map_err(ToolError::failed)?;
        // The question is not part of the answer.
        let config = RunConfig { yield_user_message: false, ..ctx.config().clone() };
        let request = RunRequest::new(key.user(), key.id()).with_text(question).with_config(config);
        let mut events = runner.run(request);
        let mut answer = String::new();
        while let Some(event) = events.next().await {
            let event = event.map_err(ToolError::failed)?;
            if event.is_partial() {
                continue;
            }
            outer.take_over(&event)?;
            let text = text_of(&event);
            if !text.is_empty() {
                answer = text;
            }
        }
        Ok(answer)
    }
}

/// The text of an event without thoughts.
fn text_of(event: &Event) -> String {
    let parts = event.content.iter().flat_map(Content::parts).filter(|part| part.thought != Some(true));
    parts.filter_map(|part| part.text.as_deref()).collect::<Vec<_>>().join("\n")
}

impl fmt::Debug for AgentTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTool").field("name", &self.agent.name()).finish_non_exhaustive()
    }
}
