//! Traces of recent runs: spans that are made from their events.
//!
//! A run is a span, and so is each agent in it, each answer of a model and each call of a tool. The
//! newest few thousand are kept in memory, for the web UI.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::{Map, Value, json};
use sessile_session::{Clock, Event, Ids, SessionKey};

/// How many spans are kept.
const KEPT: usize = 10_000;

/// The spans of recent runs.
pub(crate) struct Traces {
    spans: Mutex<VecDeque<Kept>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

struct Kept {
    key: SessionKey,
    span: Arc<Span>,
}

/// Something that took time, as the web UI reads it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Span {
    name: String,
    /// Nanoseconds since 1970.
    start_time: u64,
    end_time: u64,
    trace_id: u128,
    pub(crate) span_id: u64,
    parent_span_id: Option<u64>,
    pub(crate) attributes: Map<String, Value>,
    logs: [(); 0],
}

impl Traces {
    pub(crate) fn new(clock: Arc<dyn Clock>, ids: Arc<dyn Ids>) -> Self {
        Self { spans: Mutex::default(), clock, ids }
    }

    /// Begins to record a run.
    pub(crate) fn record(self: &Arc<Self>, key: SessionKey, app: &str) -> Recorder {
        let now = self.now();
        let trace_id = u128::from(self.new_id()) << 64 | u128::from(self.new_id());
        let root = Span {
            name: format!("invocation {app}"),
            start_time: now,
            end_time: now,
            trace_id,
            span_id: self.new_id(),
            parent_span_id: None,
            attributes: Map::new(),
            logs: [],
        };
        Recorder { traces: self.clone(), key, root, agent: None, calls: Vec::new(), since: now }
    }

    /// The spans of a session, in the order of their ends; of one user only, if one is given.
    pub(crate) fn of_session(&self, app: &str, session: &str, user: Option<&str>) -> Vec<Arc<Span>> {
        let is_it = |kept: &&Kept| {
            let key = &kept.key;
            key.app() == app && key.id() == session && user.is_none_or(|user| key.user() == user)
        };
        self.spans().iter().filter(is_it).map(|kept| kept.span.clone()).collect()
    }

    /// The span in which an event was made.
    pub(crate) fn of_event(&self, app: &str, event: &str, user: Option<&str>) -> Option<Arc<Span>> {
        let is_it = |kept: &&Kept| {
            kept.key.app() == app
                && user.is_none_or(|user| kept.key.user() == user)
                && kept.span.attributes.get(EVENT).is_some_and(|id| id == event)
        };
        self.spans().iter().rev().find(is_it).map(|kept| kept.span.clone())
    }

    fn keep(&self, key: &SessionKey, span: Span) {
        let mut spans = self.spans();
        spans.push_back(Kept { key: key.clone(), span: Arc::new(span) });
        if spans.len() > KEPT {
            spans.pop_front();
        }
    }

    fn spans(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times since 1970 fit for centuries"
    )]
    fn now(&self) -> u64 {
        (self.clock.now() * 1e9) as u64
    }

    /// A number from a new id. The web UI reads it as a double, so it has at most 53 bits.
    fn new_id(&self) -> u64 {
        let id = self.ids.new_id();
        let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        hash >> 11
    }
}

const EVENT: &str = "gcp.vertex.agent.event_id";
const INVOCATION: &str = "gcp.vertex.agent.invocation_id";

/// Makes spans of a run's events. Dropping it ends the run's own span.
pub(crate) struct Recorder {
    traces: Arc<Traces>,
    key: SessionKey,
    root: Span,
    /// The current agent and its span.
    agent: Option<(String, Span)>,
    /// Calls of tools that were not answered yet, by id, and when they were made.
    calls: Vec<(String, u64)>,
    /// When the last event was.
    since: u64,
}

impl Recorder {
    /// Records an event.
    pub(crate) fn event(&mut self, event: &Event) {
        if event.is_partial() {
            return;
        }
        let now = self.traces.now();
        self.root.attributes.entry(INVOCATION).or_insert_with(|| json!(event.invocation_id));
        if event.author != "user" {
            self.speaks(&event.author);
            let responses: Vec<_> = event.function_responses().collect();
            for response in &responses {
                let id = response.id.as_deref().unwrap_or("");
                let begun = self.calls.iter().position(|(call, _)| call == id);
                let start = begun.map_or(self.since, |index| self.calls.swap_remove(index).1);
                let tool = response.name.clone().unwrap_or_default();
                let attributes = json!({ "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": id });
                self.keep(format!("execute_tool {tool}"), start, now, event, attributes);
            }
            if responses.is_empty() {
                self.keep("call_llm".to_owned(), self.since, now, event, answer(event));
            }
            self.calls.extend(event.function_calls().filter_map(|call| Some((call.id.clone()?, now))));
        }
        self.since = now;
        self.root.end_time = now;
        if let Some((_, span)) = &mut self.agent {
            span.end_time = now;
        }
    }

    /// Another agent's span begins, if another agent speaks.
    fn speaks(&mut self, author: &str) {
        if self.agent.as_ref().is_some_and(|(name, _)| name == author) {
            return;
        }
        if let Some((_, span)) = self.agent.take() {
            self.traces.keep(&self.key, span);
        }
        let mut span = self.root.clone();
        span.name = format!("invoke_agent {author}");
        (span.span_id, span.parent_span_id) = (self.traces.new_id(), Some(self.root.span_id));
        (span.start_time, span.end_time) = (self.since, self.since);
        span.attributes.insert("gen_ai.agent.name".to_owned(), json!(author));
        self.agent = Some((author.to_owned(), span));
    }

    fn keep(&self, name: String, start_time: u64, end_time: u64, event: &Event, attributes: Value) {
        let Value::Object(mut attributes) = attributes else { return };
        attributes.insert(EVENT.to_owned(), json!(event.id));
        attributes.insert(INVOCATION.to_owned(), json!(event.invocation_id));
        attributes.insert("gen_ai.conversation.id".to_owned(), json!(self.key.id()));
        attributes.insert("gen_ai.agent.name".to_owned(), json!(event.author));
        let parent = self.agent.as_ref().map_or(self.root.span_id, |(_, span)| span.span_id);
        let span_id = self.traces.new_id();
        let trace_id = self.root.trace_id;
        let span = Span {
            name,
            start_time,
            end_time,
            trace_id,
            span_id,
            parent_span_id: Some(parent),
            attributes,
            logs: [],
        };
        self.traces.keep(&self.key, span);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some((_, span)) = self.agent.take() {
            self.traces.keep(&self.key, span);
        }
        self.traces.keep(&self.key, self.root.clone());
    }
}

/// The attributes of a model's answer.
fn answer(event: &Event) -> Value {
    let mut attributes = json!({ "gen_ai.operation.name": "generate_content" });
    if let Some(model) = &event.model_version {
        attributes["gen_ai.response.model"] = json!(model);
    }
    if let Some(reason) = &event.finish_reason {
        attributes["gen_ai.response.finish_reasons"] = json!([reason]);
    }
    if let Some(usage) = &event.usage_metadata {
        let count = |name: &str| usage.value().get(name).cloned();
        if let Some(tokens) = count("prompt_token_count") {
            attributes["gen_ai.usage.input_tokens"] = tokens;
        }
        if let Some(tokens) = count("candidates_token_count") {
            attributes["gen_ai.usage.output_tokens"] = tokens;
        }
    }
    if let Some(code) = &event.error_code {
        attributes["error.type"] = json!(code);
    }
    attributes
}
