//! The calls that a model makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Map, Value};
use sessile_session::{Event, FunctionCall, ToolConfirmation};
use sessile_state::SharedValue;

use super::LlmAgent;
use super::answers::{Answer, Answers};
use super::step::Next;
use super::transfer::{AGENT_NAME, TRANSFER};
use crate::agent::callback::call_guarded;
use crate::agent::callback::{BeforeTool, ToolCall};
use crate::catch_panic::catch_panic;
use crate::context::{InvocationContext, ToolContext};
use crate::error::{AgentError, ToolError, untold};
use crate::tool::Tool;

/// The outcome of a call.
struct Called {
    name: String,
    id: String,
    /// `None`: it will come later.
    response: Option<BTreeMap<String, SharedValue>>,
    ctx: ToolContext,
    /// What ends the run, after the response is stored.
    failure: Option<AgentError>,
}

impl Called {
    fn answer(self) -> Answer {
        let Self { name, id, response, ctx, .. } = self;
        Answer::new(name, id, response, ctx.changes.take())
    }
}

impl LlmAgent {
    pub(super) fn find_tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Runs the calls of an event concurrently, and commits their responses and changes in one
    /// event.
    pub(super) async fn call_tools(
        &self,
        ctx: &InvocationContext,
        event: &Event,
    ) -> Result<Next, AgentError> {
        let calls: Vec<(&FunctionCall, Option<ToolConfirmation>)> =
            event.function_calls().map(|call| (call, None)).collect();
        self.run_calls(ctx, calls).await
    }

    pub(super) async fn run_calls(
        &self,
        ctx: &InvocationContext,
        calls: Vec<(&FunctionCall, Option<ToolConfirmation>)>,
    ) -> Result<Next, AgentError> {
        let all: Vec<&FunctionCall> = calls.iter().map(|(call, _)| *call).collect();
        let before = (calls.len() != 1).then(|| ctx.state());
        let mut called = Vec::with_capacity(calls.len());
        if calls.len() == 1 {
            for (call, confirmation) in calls {
                called.push(self.call_tool(ctx, call, confirmation).await);
            }
        } else {
            called =
                join_all(calls.into_iter().map(|(call, answer)| self.call_tool(ctx, call, answer))).await;
        }
        let failure = called.iter_mut().find_map(|called| called.failure.take());
        let answers = called.into_iter().map(Called::answer).collect();
        let mut answers = Answers::new(&self.name, answers, before);
        let append = answers.append()?;
        let answered = append.event.function_responses().next().is_some();
        if let Some(asks) = self.confirmation_event(ctx, &all, &append.event) {
            ctx.emit_as(asks).await?;
        }
        let event = answers.commit(ctx, append).await?;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let skips = event.is_some_and(|event| event.actions.skip_summarization == Some(true));
        let done = !answered || skips || ctx.frame.transfer().is_some() || ctx.is_stopped();
        Ok(if done { Next::Done } else { Next::AskAgain })
    }

    async fn call_tool(
        &self,
        ctx: &InvocationContext,
        call: &FunctionCall,
        confirmation: Option<ToolConfirmation>,
    ) -> Called {
        let (name, id) = (call.name.clone().unwrap_or_default(), call.id.clone().unwrap_or_default());
        let tool_ctx = ToolContext::new(ctx, &id, confirmation);
        let mut failure = None;
        let response = if name == TRANSFER {
            self.transfer(ctx, call, &tool_ctx, &mut failure)
        } else {
            match self.find_tool(&name) {
                Some(tool) => {
                    let args = call.args.iter().flatten();
                    let args = args.map(|(name, value)| (name.clone(), Value::clone(value))).collect();
                    let result = self.call_with_callbacks(ctx, tool.clone(), args, &tool_ctx).await;
                    result.unwrap_or_else(|error| {
                        tool_ctx.changes.forget();
                        let text = error.to_string();
                        failure = Some(error);
                        Some(error_response(text))
                    })
                }
                None => Some(error_response(self.unknown_tool(&name))),
            }
        };
        Called { name, id, response: response.map(to_object), ctx: tool_ctx, failure }
    }

    /// The result of a call; `None` if it comes later. An error ends the run.
    async fn call_with_callbacks(
        &self,
        ctx: &InvocationContext,
        tool: Arc<dyn Tool>,
        args: Map<String, Value>,
        tool_ctx: &ToolContext,
    ) -> Result<Option<Value>, AgentError> {
        let mut call = ToolCall { tool, args };
        let mut result = None;
        for callback in &self.llm_callbacks.before_tool {
            let decides = async { callback((tool_ctx.clone(), call.clone())).await };
            match call_guarded(ctx, "before_tool", decides).await? {
                BeforeTool::Continue => {}
                BeforeTool::Call(args) => call.args = args,
                BeforeTool::Answer(value) => {
                    result = Some(value);
                    break;
                }
            }
        }
        let watched =
            !self.llm_callbacks.after_tool.is_empty() || !self.llm_callbacks.on_tool_error.is_empty();
        let seen = watched.then(|| Arc::new(call.clone()));
        if result.is_none() {
            let ToolCall { tool, args } = call;
            let outcome = match catch_panic(tool.call(args, tool_ctx)).await {
                Ok(outcome) => outcome,
                Err(message) => Err(ToolError::Panicked { tool: tool.name().to_owned(), message }),
            };
            match outcome {
                Ok(value) => result = value.or_else(|| (!tool.is_long_running()).then_some(Value::Null)),
                Err(error) => {
                    tool_ctx.changes.forget();
                    let text = error.to_string();
                    if let Some(cause) = untold(&error) {
                        tracing::error!(session = %ctx.session_key(), tool = tool.name(), %error, %cause, "a tool failed");
                    }
                    match self.on_tool_error(ctx, seen.as_ref(), error, tool_ctx).await? {
                        Some(value) => result = Some(value),
                        None => return Ok(Some(error_response(text))),
                    }
                }
            }
        }
        let Some(seen) = seen.filter(|_| !self.llm_callbacks.after_tool.is_empty()) else {
            return Ok(result);
        };
        let result_seen = Arc::new(result.clone().unwrap_or(Value::Null));
        for callback in &self.llm_callbacks.after_tool {
            let replaces = async { callback((tool_ctx.clone(), seen.clone(), result_seen.clone())).await };
            if let Some(other) = call_guarded(ctx, "after_tool", replaces).await? {
                return Ok(Some(other));
            }
        }
        Ok(result)
    }

    async fn on_tool_error(
        &self,
        ctx: &InvocationContext,
        call: Option<&Arc<ToolCall>>,
        error: ToolError,
        tool_ctx: &ToolContext,
    ) -> Result<Option<Value>, AgentError> {
        let Some(call) = call else { return Ok(None) };
        let error = Arc::new(error);
        for callback in &self.llm_callbacks.on_tool_error {
            let replaces = async { callback((tool_ctx.clone(), call.clone(), error.clone())).await };
            if let Some(value) = call_guarded(ctx, "on_tool_error", replaces).await? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Transfers to the agent that the call names. If that is not allowed, the error ends the run.
    fn transfer(
        &self,
        ctx: &InvocationContext,
        call: &FunctionCall,
        tool_ctx: &ToolContext,
        failure: &mut Option<AgentError>,
    ) -> Option<Value> {
        let target = call.args.as_ref().and_then(|args| args.get(AGENT_NAME)?.as_str());
        let targets = self.transfer_targets(&ctx.invocation.tree);
        if let Some(target) = target.filter(|target| targets.iter().any(|agent| agent.name() == *target)) {
            tool_ctx.transfer_to(target);
            return Some(Value::Null);
        }
        let names: Vec<&str> = targets.iter().map(|agent| agent.name()).collect();
        let reason = match names.as_slice() {
            [] => "it has no agents to hand over to".to_owned(),
            names => format!("it may hand over to {}", names.join(", ")),
        };
        let target = target.unwrap_or_default().to_owned();
        let error = AgentError::Transfer { agent: self.name.clone(), target, reason };
        let response = error_response(error.to_string());
        *failure = Some(error);
        Some(response)
    }

    fn unknown_tool(&self, name: &str) -> String {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.name()).collect();
        match names.as_slice() {
            [] => format!("there is no tool `{name}`, and no other"),
            names => format!("there is no tool `{name}`; the tools are {}", names.join(", ")),
        }
    }
}

fn error_response(text: impl Into<String>) -> Value {
    Value::Object(Map::from_iter([("error".to_owned(), Value::from(text.into()))]))
}

/// A result as the object that models read.
fn to_object(result: Value) -> BTreeMap<String, SharedValue> {
    match result {
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, value.into())).collect(),
        result => [("result".to_owned(), result.into())].into(),
    }
}
