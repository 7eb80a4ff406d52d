//! Agents that ask a model.

mod answers;
mod builder;
mod confirm;
mod contents;
mod instruction;
mod output;
mod request;
mod step;
mod tools;
mod transfer;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use sessile_session::{Content, OnOverwrite};
use sessile_state::Reducers;

pub use builder::LlmAgentBuilder;
pub use instruction::inject_session_state;

use crate::agent::Agent;
use crate::agent::callback::{AgentCallbacks, LlmCallbacks};
use crate::context::InvocationContext;
use crate::error::AgentError;
use crate::model::{GenerationConfig, Model};
use crate::tool::Tool;
use instruction::Instruction;
use output::OutputSchema;

/// An agent that asks a model, calls the tools that the model asks for, and transfers to other
/// agents.
///
/// Built with [`LlmAgent::builder`].
pub struct LlmAgent {
    name: String,
    description: String,
    /// `None`: the model of the nearest agent above that has one.
    model: Option<Arc<dyn Model>>,
    instruction: Instruction,
    global_instruction: Instruction,
    static_instruction: Option<Content>,
    include_contents: IncludeContents,
    generation_config: GenerationConfig,
    tools: Vec<Arc<dyn Tool>>,
    sub_agents: Vec<Arc<dyn Agent>>,
    disallow_transfer_to_parent: bool,
    disallow_transfer_to_peers: bool,
    output_key: Option<String>,
    output_schema: Option<OutputSchema>,
    callbacks: AgentCallbacks,
    llm_callbacks: LlmCallbacks,
    reducers: Reducers,
    on_overwrite: Option<OnOverwrite>,
}

/// How much of the conversation an agent reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeContents {
    /// All of it.
    #[default]
    Default,
    /// Only the turn that it answers.
    None,
}

impl LlmAgent {
    /// Begins to build an agent with this name.
    pub fn builder(name: impl Into<String>) -> LlmAgentBuilder {
        LlmAgentBuilder::new(name.into())
    }

    /// Its own model, if it has one; otherwise it uses that of the nearest agent above.
    pub fn model(&self) -> Option<&Arc<dyn Model>> {
        self.model.as_ref()
    }

    /// The template of its instruction; `None` if a provider makes the instruction.
    pub fn instruction(&self) -> Option<&str> {
        self.instruction.source()
    }

    /// Its tools.
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// The key of the state that its answers are stored under.
    pub fn output_key(&self) -> Option<&str> {
        self.output_key.as_deref()
    }

    /// Whether its model may transfer to the agent above.
    pub(crate) fn may_transfer_to_parent(&self) -> bool {
        !self.disallow_transfer_to_parent
    }
}

#[async_trait]
impl Agent for LlmAgent {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn sub_agents(&self) -> &[Arc<dyn Agent>] {
        &self.sub_agents
    }

    fn callbacks(&self) -> Option<&AgentCallbacks> {
        Some(&self.callbacks)
    }

    fn reducers(&self) -> Option<&Reducers> {
        Some(&self.reducers)
    }

    fn on_overwrite(&self) -> Option<OnOverwrite> {
        self.on_overwrite
    }

    fn reads_history(&self) -> bool {
        self.include_contents == IncludeContents::Default
            || self.sub_agents.iter().any(|agent| agent.reads_history())
    }

    fn as_llm(&self) -> Option<&LlmAgent> {
        Some(self)
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        self.answer(ctx).await
    }
}

impl fmt::Debug for LlmAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmAgent").field("name", &self.name).finish_non_exhaustive()
    }
}
