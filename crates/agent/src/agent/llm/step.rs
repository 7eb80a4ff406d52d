//! One call of the model, with the callbacks around it, and the event that it results in.

use std::sync::Arc;

use futures_util::StreamExt;
use sessile_session::{Append, Event};

use super::LlmAgent;
use crate::agent::callback::BeforeModel;
use crate::agent::callback::call_guarded;
use crate::context::{CallbackContext, InvocationContext, add_changes};
use crate::error::AgentError;
use crate::model::{ModelError, ModelRequest, ModelResponse};

/// Whether the model is asked again.
pub(super) enum Next {
    AskAgain,
    Done,
}

/// What the callbacks before a model call decided together.
enum Asked {
    /// The model is asked with this request.
    Model(ModelRequest),
    /// A callback answered in the model's place.
    Answered(ModelResponse),
}

impl LlmAgent {
    /// Asks the model and calls the tools that it asks for, until it has answered.
    pub(super) async fn answer(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        if let Next::Done = self.resume(ctx).await? {
            return Ok(());
        }
        while let Next::AskAgain = self.step(ctx).await? {}
        Ok(())
    }

    async fn step(&self, ctx: &InvocationContext) -> Result<Next, AgentError> {
        let request = self.request(ctx).await?;
        let changes = CallbackContext::new(ctx);
        let Some(event) = self.ask(ctx, request, &changes).await.inspect_err(|_| changes.changes.forget())?
        else {
            return Ok(Next::Done);
        };
        if ctx.frame.transfer().is_some() || event.function_calls().next().is_none() || ctx.is_stopped() {
            return Ok(Next::Done);
        }
        self.call_tools(ctx, &event).await
    }

    /// Asks the model, and commits its answer with what the callbacks around it changed. `None` if
    /// there is nothing to commit.
    async fn ask(
        &self,
        ctx: &InvocationContext,
        request: ModelRequest,
        changes: &CallbackContext,
    ) -> Result<Option<Arc<Event>>, AgentError> {
        let id = ctx.invocation.services.sessions.new_id();
        let request = match self.before_model(ctx, request, changes).await? {
            Asked::Model(request) => request,
            Asked::Answered(response) => return self.commit(ctx, response, id, changes).await,
        };
        ctx.invocation.count_model_call()?;
        let Some(model) = ctx.invocation.tree.model(&self.name) else {
            return Err(ModelError::Configuration {
                model: String::new(),
                reason: format!("agent `{}` has no model, and no agent above it has one", self.name),
            }
            .into());
        };
        // Copied only if there are callbacks that see it when the model fails.
        let asked = (!self.llm_callbacks.on_model_error.is_empty()).then(|| Arc::new(request.clone()));
        let mut answers = match model.generate(request, ctx.config().streaming).await {
            Ok(answers) => answers,
            Err(error) => {
                let response = self.on_model_error(ctx, asked, error, changes).await?;
                return self.commit(ctx, response, id, changes).await;
            }
        };
        loop {
            let response = match answers.next().await {
                Some(Ok(response)) => self.after_model(ctx, response, changes).await?,
                Some(Err(error)) => self.on_model_error(ctx, asked.clone(), error, changes).await?.whole(),
                None => {
                    let reason = "it ended without a whole response".to_owned();
                    let error = ModelError::Malformed { model: model.name().to_owned(), reason };
                    self.on_model_error(ctx, asked.clone(), error, changes).await?.whole()
                }
            };
            if !response.is_partial() {
                return self.commit(ctx, response, id, changes).await;
            }
            ctx.emit_as(self.event(response, id.clone())).await?;
        }
    }

    async fn commit(
        &self,
        ctx: &InvocationContext,
        response: ModelResponse,
        id: String,
        changes: &CallbackContext,
    ) -> Result<Option<Arc<Event>>, AgentError> {
        let mut event = self.event(response.whole(), id);
        self.name_calls(ctx, &mut event);
        let guards = add_changes(&mut event, changes.changes.take())?;
        let kept = self.keep_output(ctx, &mut event);
        if event.content.is_none() && event.error_code.is_none() && event.actions == Default::default() {
            return Ok(None);
        }
        let event = ctx.emit_as(Append::new(event).guarded(guards)).await?;
        kept.map(|()| Some(event))
    }

    /// A response as an event.
    fn event(&self, response: ModelResponse, id: String) -> Event {
        let mut event = Event { id, content: response.content, ..Event::new(&self.name) };
        if let Some(content) = &mut event.content
            && content.role.is_none()
        {
            content.role = Some("model".to_owned());
        }
        event.partial = response.partial;
        event.turn_complete = response.turn_complete;
        event.interrupted = response.interrupted;
        // Setting one of these fields allocates the extras of the event, so they are set only if
        // the response has them.
        macro_rules! set {
            ($($field:ident),*) => {
                $(if response.$field.is_some() { event.$field = response.$field; })*
            };
        }
        set!(
            finish_reason,
            error_code,
            error_message,
            usage_metadata,
            grounding_metadata,
            citation_metadata,
            logprobs_result,
            avg_logprobs,
            model_version
        );
        if !response.custom_metadata.is_empty() {
            event.custom_metadata = Some(response.custom_metadata);
        }
        event
    }

    /// Gives an id to each call without one, and records which calls are of long-running tools.
    fn name_calls(&self, ctx: &InvocationContext, event: &mut Event) {
        let Some(parts) = event.content.as_mut().and_then(|content| content.parts.as_mut()) else { return };
        let mut long_running = None;
        for call in parts.iter_mut().filter_map(|part| part.function_call.as_mut()) {
            let id = match &call.id {
                Some(id) if !id.is_empty() => id,
                _ => call.id.insert(format!("adk-{}", ctx.invocation.services.sessions.new_id())),
            };
            let ids: &mut std::collections::BTreeSet<String> = long_running.get_or_insert_default();
            let tool = call.name.as_deref().and_then(|name| self.find_tool(name));
            if tool.is_some_and(|tool| tool.is_long_running()) {
                ids.insert(id.clone());
            }
        }
        if long_running.is_some() {
            event.long_running_tool_ids = long_running;
        }
    }

    async fn before_model(
        &self,
        ctx: &InvocationContext,
        mut request: ModelRequest,
        changes: &CallbackContext,
    ) -> Result<Asked, AgentError> {
        for callback in &self.llm_callbacks.before_model {
            // The callback gets a copy, so that it can continue without handing the request back.
            let call = async { callback((changes.clone(), request.clone())).await };
            match call_guarded(ctx, "before_model", call).await? {
                BeforeModel::Continue => {}
                BeforeModel::Ask(changed) => request = changed,
                BeforeModel::Answer(response) => return Ok(Asked::Answered(response)),
            }
        }
        Ok(Asked::Model(request))
    }

    async fn after_model(
        &self,
        ctx: &InvocationContext,
        response: ModelResponse,
        changes: &CallbackContext,
    ) -> Result<ModelResponse, AgentError> {
        if self.llm_callbacks.after_model.is_empty() {
            return Ok(response);
        }
        let response = Arc::new(response);
        for callback in &self.llm_callbacks.after_model {
            let call = async { callback((changes.clone(), response.clone())).await };
            if let Some(mut other) = call_guarded(ctx, "after_model", call).await? {
                other.partial = other.partial.or(response.partial);
                other.turn_complete = other.turn_complete.or(response.turn_complete);
                other.usage_metadata = other.usage_metadata.or_else(|| response.usage_metadata.clone());
                return Ok(other);
            }
        }
        Ok(Arc::unwrap_or_clone(response))
    }

    async fn on_model_error(
        &self,
        ctx: &InvocationContext,
        request: Option<Arc<ModelRequest>>,
        error: ModelError,
        changes: &CallbackContext,
    ) -> Result<ModelResponse, AgentError> {
        let Some(request) = request else { return Err(error.into()) };
        let error = Arc::new(error);
        for callback in &self.llm_callbacks.on_model_error {
            let call = async { callback((changes.clone(), request.clone(), error.clone())).await };
            if let Some(response) = call_guarded(ctx, "on_model_error", call).await? {
                return Ok(response);
            }
        }
        match Arc::try_unwrap(error) {
            Ok(error) => Err(error.into()),
            // A callback still holds the error; the event needs only its text and code.
            Err(error) => {
                Err(ModelError::Other { code: error.code().to_owned(), message: error.to_string() }.into())
            }
        }
    }
}

impl ModelResponse {
    /// The response as one that is not partial.
    fn whole(mut self) -> Self {
        if self.is_partial() {
            self.partial = None;
        }
        self
    }
}
