//! Tools that ask the user first.
//!
//! A tool that calls
//! [`ToolContext::request_confirmation`](crate::ToolContext::request_confirmation) makes the agent
//! emit a call of `adk_request_confirmation`, which the client answers like a long-running tool.
//! The tool is called again with that answer.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use sessile_session::{Content, Event, FunctionCall, FunctionResponse, Session, ToolConfirmation};
use sessile_state::SharedValue;

use super::LlmAgent;
use super::step::Next;
use crate::context::InvocationContext;
use crate::error::AgentError;
use crate::history::{call_event, newest_first};

/// The call that asks the user.
const REQUEST: &str = "adk_request_confirmation";
/// Its arguments.
const ORIGINAL_CALL: &str = "originalFunctionCall";
const CONFIRMATION: &str = "toolConfirmation";

impl LlmAgent {
    /// The event that asks the user to confirm, if tools requested it.
    pub(super) fn confirmation_event(
        &self,
        ctx: &InvocationContext,
        calls: &[&FunctionCall],
        responses: &Event,
    ) -> Option<Event> {
        let requested = &responses.actions.requested_tool_confirmations;
        if requested.is_empty() {
            return None;
        }
        let mut ids = BTreeSet::new();
        let mut parts = Vec::new();
        for call in calls {
            let Some(request) = call.id.as_ref().and_then(|id| requested.get(id)) else { continue };
            let id = format!("adk-{}", ctx.invocation.services.sessions.new_id());
            let args =
                [(ORIGINAL_CALL.to_owned(), as_json(call)), (CONFIRMATION.to_owned(), as_json(request))];
            ids.insert(id.clone());
            let name = Some(REQUEST.to_owned());
            parts.push(
                FunctionCall { id: Some(id), name, args: Some(args.into()), ..FunctionCall::default() }
                    .into(),
            );
        }
        let content = Content { role: Some("model".to_owned()), parts: Some(parts), ..Content::default() };
        let mut event = Event::new(&self.name).with_content(content);
        event.long_running_tool_ids = Some(ids);
        Some(event)
    }

    /// Calls the tools again whose questions the message answers, before the model is asked.
    pub(super) async fn resume(&self, ctx: &InvocationContext) -> Result<Next, AgentError> {
        let answers: Vec<&FunctionResponse> = ctx
            .user_content()
            .iter()
            .flat_map(|content| content.parts())
            .filter_map(|part| part.function_response.as_deref())
            .filter(|response| response.name.as_deref() == Some(REQUEST))
            .collect();
        if answers.is_empty() {
            return Ok(Next::AskAgain);
        }
        let confirmed = ctx.with_session(|session| self.confirmed(session, &answers)).await;
        if confirmed.is_empty() {
            return Ok(Next::AskAgain);
        }
        let calls = confirmed.iter().map(|(call, answer)| (call, Some(answer.clone()))).collect();
        self.run_calls(ctx, calls).await
    }

    /// The calls of this agent that the answers are about and that wait for them, with the answers.
    fn confirmed(
        &self,
        session: &Session,
        answers: &[&FunctionResponse],
    ) -> Vec<(FunctionCall, ToolConfirmation)> {
        let mut confirmed = Vec::new();
        for answer in answers {
            let Some(id) = answer.id.as_deref() else { continue };
            let Some(event) = call_event(session.events(), id).filter(|event| event.author == self.name)
            else {
                continue;
            };
            let mut calls = event.function_calls();
            let request =
                calls.find(|call| call.id.as_deref() == Some(id) && call.name.as_deref() == Some(REQUEST));
            let original = request.and_then(|request| original_call(request.args.as_ref()?));
            if let Some(call) = original
                && !is_answered_since(session, id, call.id.as_deref())
            {
                confirmed.push((call, confirmation(answer.response.as_ref())));
            }
        }
        confirmed
    }
}

/// Whether the call was run again since the user answered.
fn is_answered_since(session: &Session, question: &str, call: Option<&str>) -> bool {
    let is_answer =
        |event: &Event| event.function_responses().any(|response| response.id.as_deref() == Some(question));
    let since = newest_first(session.events()).take_while(|event| !is_answer(event));
    since.flat_map(|event| event.function_responses()).any(|response| response.id.as_deref() == call)
}

fn original_call(args: &BTreeMap<String, SharedValue>) -> Option<FunctionCall> {
    args.get(ORIGINAL_CALL)?.read().ok()
}

/// The user's answer: the fields themselves, or their JSON as a text under `response`.
fn confirmation(response: Option<&BTreeMap<String, SharedValue>>) -> ToolConfirmation {
    let fields = response.map_or(Value::Null, |fields| json!(fields));
    let inner = fields.get("response").and_then(Value::as_str);
    let fields = inner.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(fields);
    ToolConfirmation {
        hint: fields.get("hint").and_then(Value::as_str).map(str::to_owned),
        // What is not clearly a yes is a no.
        confirmed: Some(fields.get("confirmed").and_then(Value::as_bool) == Some(true)),
        payload: fields
            .get("payload")
            .filter(|payload| !payload.is_null())
            .map(|payload| payload.clone().into()),
        ..ToolConfirmation::default()
    }
}

fn as_json(record: &impl serde::Serialize) -> SharedValue {
    SharedValue::from_serialize(record).expect("calls and confirmations are JSON")
}
