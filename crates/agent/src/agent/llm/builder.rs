use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sessile_session::{BoxError, Content, OnOverwrite};
use sessile_state::{Reducer, SharedValue};

use super::instruction::Instruction;
use super::output::OutputSchema;
use super::transfer::TRANSFER;
use super::{IncludeContents, LlmAgent};
use crate::agent::Agent;
use crate::agent::callback::{BeforeModel, BeforeTool, ToolCall};
use crate::agent::tree;
use crate::context::{CallbackContext, ReadonlyContext, ToolContext};
use crate::error::{BuildError, ToolError};
use crate::model::{GenerationConfig, Model, ModelError, ModelRequest, ModelResponse};
use crate::tool::Tool;

/// Builds an [`LlmAgent`].
///
/// Callbacks are async closures over owned arguments. Each may be given several times: they run in
/// order until one answers.
///
/// ```
/// use sessile_agent::{BeforeModel, CallbackContext, LlmAgent, ModelRequest, ModelResponse};
///
/// let agent = LlmAgent::builder("polite")
///     .instruction("Answer {user:name?} politely.")
///     .before_model(async |ctx: CallbackContext, mut request: ModelRequest| {
///         if ctx.state().get::<bool>("quiet") == Some(true) {
///             return Ok(ModelResponse::text("…").into());
///         }
///         request.add_instruction("Use few words.");
///         Ok(request.into())
///     })
///     .build()?;
/// # Ok::<(), sessile_agent::BuildError>(())
/// ```
#[must_use]
pub struct LlmAgentBuilder {
    agent: LlmAgent,
}

impl LlmAgentBuilder {
    pub(super) fn new(name: String) -> Self {
        let agent = LlmAgent {
            name,
            description: String::new(),
            model: None,
            instruction: Instruction::None,
            global_instruction: Instruction::None,
            static_instruction: None,
            include_contents: IncludeContents::Default,
            generation_config: GenerationConfig::default(),
            tools: Vec::new(),
            sub_agents: Vec::new(),
            disallow_transfer_to_parent: false,
            disallow_transfer_to_peers: false,
            output_key: None,
            output_schema: None,
            callbacks: Default::default(),
            llm_callbacks: Default::default(),
            reducers: Default::default(),
            on_overwrite: None,
        };
        Self { agent }
    }

    /// The model that it asks. By default, the model of the nearest agent above that has one.
    pub fn model(mut self, model: impl Model + 'static) -> Self {
        self.agent.model = Some(Arc::new(model));
        self
    }

    /// What it is for. The models of other agents read it to decide when to transfer.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.agent.description = description.into();
        self
    }

    /// The instruction for the model, a [`Template`](sessile_state::Template) that is filled in
    /// from the state.
    pub fn instruction(mut self, template: impl Into<String>) -> Self {
        self.agent.instruction = Instruction::template(template.into());
        self
    }

    /// A function that makes the instruction for each call. Its text is used as it is; to fill in
    /// state, use
    /// [`inject_session_state`](crate::inject_session_state).
    pub fn instruction_provider<F, Fut>(mut self, provider: F) -> Self
    where
        F: Fn(ReadonlyContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.agent.instruction = Instruction::provider(provider);
        self
    }

    /// An instruction for the models of all agents, if this agent is the root; a template.
    pub fn global_instruction(mut self, template: impl Into<String>) -> Self {
        self.agent.global_instruction = Instruction::template(template.into());
        self
    }

    /// A function that makes the [`global_instruction`](Self::global_instruction) for each call.
    pub fn global_instruction_provider<F, Fut>(mut self, provider: F) -> Self
    where
        F: Fn(ReadonlyContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.agent.global_instruction = Instruction::provider(provider);
        self
    }

    /// A text without placeholders that is always first in the system instruction, so that the
    /// provider can cache it. The instruction is then sent as part of the conversation.
    pub fn static_instruction(mut self, text: impl Into<String>) -> Self {
        self.agent.static_instruction = Some(Content::text("user", text));
        self
    }

    /// How much of the conversation the model reads.
    pub fn include_contents(mut self, include: IncludeContents) -> Self {
        self.agent.include_contents = include;
        self
    }

    /// The model's parameters, such as its temperature.
    pub fn generation_config(mut self, config: GenerationConfig) -> Self {
        self.agent.generation_config = config;
        self
    }

    /// A tool that the model may call.
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.agent.tools.push(Arc::new(tool));
        self
    }

    /// An agent below, which the model may transfer to.
    pub fn sub_agent(mut self, agent: impl Agent + 'static) -> Self {
        self.agent.sub_agents.push(Arc::new(agent));
        self
    }

    /// Whether the model may not transfer to the agent above.
    pub fn disallow_transfer_to_parent(mut self, disallow: bool) -> Self {
        self.agent.disallow_transfer_to_parent = disallow;
        self
    }

    /// Whether the model may not transfer to the other agents of its parent.
    pub fn disallow_transfer_to_peers(mut self, disallow: bool) -> Self {
        self.agent.disallow_transfer_to_peers = disallow;
        self
    }

    /// The key of the state that its answer is stored under, committed together with the answer.
    pub fn output_key(mut self, key: impl Into<String>) -> Self {
        self.agent.output_key = Some(key.into());
        self
    }

    /// The answer must be a `T` as JSON. Under the output key it is stored as JSON, not as text.
    pub fn output_schema<T: DeserializeOwned + JsonSchema>(mut self) -> Self {
        self.agent.output_schema = Some(OutputSchema::of::<T>());
        self
    }

    /// The answer must be JSON that fits this JSON Schema. The schema is sent to the model; the
    /// answer is only checked to be JSON.
    pub fn output_json_schema(mut self, schema: impl Into<SharedValue>) -> Self {
        self.agent.output_schema = Some(OutputSchema::json(schema.into()));
        self
    }

    /// Turns what callbacks and tools of this agent and those below set under a key into an
    /// operation, so that concurrent writes of tools, branches, sessions and processes all count.
    /// If the key is the output key, an answer is added to the stored list or object.
    pub fn reducer(mut self, key: impl Into<String>, reducer: Reducer) -> Self {
        self.agent.reducers.insert(key.into(), reducer);
        self
    }

    /// What happens when a key that a callback or tool read and then set holds another value at the
    /// commit: the event reports it, or the write is refused. By default, as the agent above or the
    /// runner has it.
    pub fn on_overwrite(mut self, on_overwrite: OnOverwrite) -> Self {
        self.agent.on_overwrite = Some(on_overwrite);
        self
    }

    /// Runs before the agent. A content that it returns is the agent's answer.
    pub fn before_agent<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(CallbackContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Content>, BoxError>> + Send + 'static,
    {
        self.agent.callbacks = self.agent.callbacks.before(callback);
        self
    }

    /// Runs after the agent. A content that it returns is emitted as one more event.
    pub fn after_agent<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(CallbackContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Content>, BoxError>> + Send + 'static,
    {
        self.agent.callbacks = self.agent.callbacks.after(callback);
        self
    }

    /// Runs before the model is asked: continues ([`BeforeModel::Continue`]), passes a changed
    /// request on, or answers in the model's place.
    pub fn before_model<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(CallbackContext, ModelRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BeforeModel, BoxError>> + Send + 'static,
    {
        let callback = Arc::new(move |(ctx, request)| Box::pin(callback(ctx, request)) as _);
        self.agent.llm_callbacks.before_model.push(callback);
        self
    }

    /// Runs after each response of the model, partial ones too. A response that it returns replaces
    /// the model's.
    pub fn after_model<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(CallbackContext, Arc<ModelResponse>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<ModelResponse>, BoxError>> + Send + 'static,
    {
        let callback = Arc::new(move |(ctx, response)| Box::pin(callback(ctx, response)) as _);
        self.agent.llm_callbacks.after_model.push(callback);
        self
    }

    /// Runs when the model failed. A response that it returns replaces the error.
    pub fn on_model_error<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(CallbackContext, Arc<ModelRequest>, Arc<ModelError>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<ModelResponse>, BoxError>> + Send + 'static,
    {
        let callback = Arc::new(move |(ctx, request, error)| Box::pin(callback(ctx, request, error)) as _);
        self.agent.llm_callbacks.on_model_error.push(callback);
        self
    }

    /// Runs before a tool: continues ([`BeforeTool::Continue`]), passes other arguments on, or
    /// answers in the tool's place.
    pub fn before_tool<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(ToolContext, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<BeforeTool, BoxError>> + Send + 'static,
    {
        let callback = Arc::new(move |(ctx, call)| Box::pin(callback(ctx, call)) as _);
        self.agent.llm_callbacks.before_tool.push(callback);
        self
    }

    /// Runs after a tool. A value that it returns replaces the tool's result.
    pub fn after_tool<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(ToolContext, Arc<ToolCall>, Arc<Value>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Value>, BoxError>> + Send + 'static,
    {
        let callback = Arc::new(move |(ctx, call, result)| Box::pin(callback(ctx, call, result)) as _);
        self.agent.llm_callbacks.after_tool.push(callback);
        self
    }

    /// Runs when a tool failed. A value that it returns replaces the error.
    pub fn on_tool_error<F, Fut>(mut self, callback: F) -> Self
    where
        F: Fn(ToolContext, Arc<ToolCall>, Arc<ToolError>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Value>, BoxError>> + Send + 'static,
    {
        let callback = Arc::new(move |(ctx, call, error)| Box::pin(callback(ctx, call, error)) as _);
        self.agent.llm_callbacks.on_tool_error.push(callback);
        self
    }

    /// The agent.
    ///
    /// # Errors
    ///
    /// [`BuildError`] lists all problems: an invalid name or one that it shares with an agent
    /// below, tools that share a name, an empty output key.
    pub fn build(self) -> Result<LlmAgent, BuildError> {
        let agent = self.agent;
        let mut problems = Vec::new();
        let mut names = BTreeSet::new();
        for tool in &agent.tools {
            if tool.name().trim().is_empty() {
                problems.push("a tool has no name; give it one".to_owned());
            } else if tool.name() == TRANSFER {
                problems.push(format!("no tool can be named `{TRANSFER}`: that is how agents hand over"));
            } else if !names.insert(tool.name()) {
                problems.push(format!("two tools are named `{}`; give each its own name", tool.name()));
            }
        }
        if agent.output_key.as_ref().is_some_and(|key| key.trim().is_empty()) {
            problems.push("the output key is blank; name one, or leave it out".to_owned());
        }
        tree::check(&agent.name, &agent.sub_agents, problems)?;
        Ok(agent)
    }
}

impl fmt::Debug for LlmAgentBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmAgentBuilder").field("name", &self.agent.name).finish_non_exhaustive()
    }
}
