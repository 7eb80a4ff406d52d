//! A model that says what a test wants, and sessions to run it on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream;
use serde_json::{Map, Value, json};
use sessile_agent::{
    Agent, LlmAgent, LlmAgentBuilder, Model, ModelError, ModelRequest, ModelResponse, ModelStream, RunError,
    RunRequest, Runner, Streaming,
};
use sessile_session::{
    Content, CreateSession, Event, EventWindow, FunctionCall, MemoryStore, Part, Session, SessionKey,
    SessionService,
};

/// What the model does when it is asked.
pub(crate) enum Turn {
    Says(Vec<ModelResponse>),
    Fails(ModelError),
    /// It never answers.
    Hangs,
}

/// Says `text`.
pub(crate) fn reply(text: &str) -> Turn {
    Turn::Says(vec![ModelResponse::text(text)])
}

/// Says `text` in pieces, then whole.
pub(crate) fn pieces(texts: &[&str]) -> Turn {
    let piece = |text: &&str| ModelResponse { partial: Some(true), ..ModelResponse::text(*text) };
    let mut responses: Vec<_> = texts.iter().map(piece).collect();
    responses.push(ModelResponse::text(texts.concat()));
    Turn::Says(responses)
}

/// Calls a tool.
pub(crate) fn call(name: &str, args: Value) -> Turn {
    calls([(name, args)])
}

/// Calls several tools at once.
pub(crate) fn calls<const N: usize>(calls: [(&str, Value); N]) -> Turn {
    let parts = calls.into_iter().map(|(name, args)| call_part(name, args)).collect();
    Turn::Says(vec![Content { role: Some("model".into()), parts: Some(parts), ..Content::default() }.into()])
}

pub(crate) fn call_part(name: &str, args: Value) -> Part {
    let args: Option<Map<String, Value>> = serde_json::from_value(args).unwrap();
    let args = args.map(|args| args.into_iter().map(|(name, value)| (name, value.into())).collect());
    FunctionCall { name: Some(name.into()), args, ..FunctionCall::default() }.into()
}

pub(crate) fn fails(code: &str) -> Turn {
    Turn::Fails(ModelError::Other { code: code.into(), message: format!("the model says {code}") })
}

/// A model that follows a script, and remembers what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Script {
    turns: Arc<Mutex<VecDeque<Turn>>>,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl Script {
    pub(crate) fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { turns: Arc::new(Mutex::new(turns.into_iter().collect())), asked: Arc::default() }
    }

    pub(crate) fn then(&self, turn: Turn) {
        self.turns.lock().unwrap().push_back(turn);
    }

    /// Forgets what was left, and goes on with this.
    pub(crate) fn now(&self, turns: impl IntoIterator<Item = Turn>) {
        *self.turns.lock().unwrap() = turns.into_iter().collect();
    }

    pub(crate) fn asked(&self) -> Vec<ModelRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn last_asked(&self) -> ModelRequest {
        self.asked().pop().expect("the model was asked")
    }
}

#[async_trait]
impl Model for Script {
    fn name(&self) -> &str {
        "script"
    }

    async fn generate(&self, request: ModelRequest, streaming: Streaming) -> Result<ModelStream, ModelError> {
        self.asked.lock().unwrap().push(request);
        let turn = self.turns.lock().unwrap().pop_front();
        match turn {
            Some(Turn::Says(mut responses)) => {
                if streaming == Streaming::Whole {
                    responses.retain(|response| !response.is_partial());
                }
                Ok(Box::pin(stream::iter(responses.into_iter().map(Ok))))
            }
            Some(Turn::Fails(error)) => Err(error),
            Some(Turn::Hangs) => std::future::pending().await,
            None => {
                Err(ModelError::Other { code: "SCRIPT_ENDED".into(), message: "the script has ended".into() })
            }
        }
    }
}

/// A model that says the same for ever.
#[derive(Clone)]
pub(crate) struct Says(pub(crate) &'static str);

#[async_trait]
impl Model for Says {
    fn name(&self) -> &str {
        "says"
    }

    async fn generate(&self, _: ModelRequest, _: Streaming) -> Result<ModelStream, ModelError> {
        Ok(Box::pin(stream::iter([Ok(ModelResponse::text(self.0))])))
    }
}

pub(crate) fn key() -> SessionKey {
    SessionKey::new("app", "ada", "s1").unwrap()
}

/// Sessions in memory, with one of Ada's.
pub(crate) async fn sessions() -> SessionService {
    with_session(SessionService::new(MemoryStore::new()), json!({})).await
}

pub(crate) async fn with_session(sessions: SessionService, state: Value) -> SessionService {
    let state: Map<String, Value> = serde_json::from_value(state).unwrap();
    sessions.create(CreateSession::new("app", "ada").with_id("s1").with_state(state)).await.unwrap();
    sessions
}

pub(crate) async fn session(sessions: &SessionService) -> Session {
    sessions.get(&key(), EventWindow::ALL).await.unwrap().expect("the session is there")
}

pub(crate) async fn state(sessions: &SessionService) -> Value {
    Value::Object(session(sessions).await.state().to_map())
}

/// An agent named `agent` with a script.
pub(crate) fn agent(turns: impl IntoIterator<Item = Turn>) -> LlmAgentBuilder {
    LlmAgent::builder("agent").model(Script::new(turns))
}

pub(crate) fn runner(agent: impl Agent + 'static, sessions: &SessionService) -> Runner {
    Runner::builder("app", agent, sessions.clone()).build().unwrap()
}

pub(crate) fn says(text: &str) -> RunRequest {
    RunRequest::new("ada", "s1").with_text(text)
}

/// Runs an agent on a message, and returns its events.
pub(crate) async fn run(
    agent: impl Agent + 'static,
    sessions: &SessionService,
    text: &str,
) -> Result<Vec<Arc<Event>>, RunError> {
    runner(agent, sessions).run(says(text)).collect().await
}

/// The text of an event.
pub(crate) fn text(event: &Event) -> String {
    event.content.iter().flat_map(Content::parts).filter_map(|part| part.text.as_deref()).collect()
}

/// The whole conversation, one line for each event: `author: text`, `author calls x`,
/// `author: x -> {…}`.
pub(crate) async fn log(sessions: &SessionService) -> Vec<String> {
    session(sessions).await.events().iter().map(|event| line(event)).collect()
}

pub(crate) fn line(event: &Event) -> String {
    let mut line = format!("{}:", event.author);
    for part in event.content.iter().flat_map(Content::parts) {
        if let Some(text) = &part.text {
            line += &format!(" {text}");
        }
        if let Some(call) = &part.function_call {
            line += &format!(" calls {}", call.name.as_deref().unwrap_or("?"));
        }
        if let Some(response) = &part.function_response {
            let result = serde_json::to_string(&response.response).unwrap();
            line += &format!(" {} -> {result}", response.name.as_deref().unwrap_or("?"));
        }
    }
    if let Some(code) = &event.error_code {
        line += &format!(" !{code}");
    }
    line
}
