mod file;
mod fill;
mod pattern;
mod rule;
mod turn;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use sessile_agent::{Model, ModelError, ModelRequest, ModelStream, Streaming};

pub use rule::Rule;
pub use turn::{Call, Turn, call, calls, fail, reply, respond};

/// A model that answers from a script and needs no network.
///
/// A script has *turns*, which are used in order, and *rules*, which are tried first: the first
/// rule that matches the request answers it, any number of times. It is an error if neither a rule
/// nor a turn answers.
///
/// ```
/// use serde_json::json;
/// use sessile_model::{Rule, Scripted, call, reply};
///
/// let in_order = Scripted::new([call("add_item", json!({ "name": "book" })), reply("Added.")]);
/// let by_rules = Scripted::from_rules([
///     Rule::user("my name is {name}")?.then(reply("Hello {name}!")),
///     Rule::always().then(reply("Who are you?")),
/// ]);
/// # Ok::<(), sessile_agent::ModelError>(())
/// ```
///
/// Sessions may use one model concurrently. The turns of [`Scripted::new`] are shared by all
/// requests: each takes the next. [`Scripted::per_conversation`] counts the model's answers in the
/// request and so has no state: every conversation gets the script from its beginning. (An agent
/// that includes no earlier contents begins again with every message.) Rules have no state either.
///
/// In a file it is YAML; `docs/agents-in-yaml.md` describes it:
///
/// ```yaml
/// rules:
///   - when: { user: "my name is {name}" }
///     then: { call: { name: remember, args: { name: "{name}" } } }
///   - when: { tool: remember }
///     then: { reply: "I will not forget you." }
/// turns:
///   - { reply: "Who are you?", delay_ms: 20, usage: { prompt: 3, answer: 4 } }
///   - { error: { code: RESOURCE_EXHAUSTED, message: try later } }
/// repeat: true
/// ```
pub struct Scripted {
    name: String,
    rules: Vec<Rule>,
    turns: Turns,
    cursor: Cursor,
    /// Whether the turns begin again after the last.
    repeat: bool,
    requests: Option<Requests>,
}

enum Turns {
    Listed(Vec<Turn>),
    Made(Box<dyn Fn(&ModelRequest) -> Turn + Send + Sync>),
}

/// How the next turn is found.
enum Cursor {
    /// By one counter for all conversations.
    Shared(AtomicUsize),
    /// By the number of answers of the model in the request.
    Conversation,
}

impl Scripted {
    /// Answers each request with the next of these turns. All conversations share the position.
    pub fn new(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::listed(turns, Cursor::Shared(AtomicUsize::new(0)))
    }

    /// Answers with these turns. Each conversation begins with the first one.
    pub fn per_conversation(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self::listed(turns, Cursor::Conversation)
    }

    /// Answers by rules only.
    pub fn from_rules(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self::per_conversation([]).with_rules(rules)
    }

    /// Answers with the result of a function of the request.
    pub fn from_fn(answer: impl Fn(&ModelRequest) -> Turn + Send + Sync + 'static) -> Self {
        Self { turns: Turns::Made(Box::new(answer)), ..Self::per_conversation([]) }
    }

    /// Reads a script from a YAML file.
    ///
    /// # Errors
    ///
    /// [`ModelError::Configuration`] names the file, the line and what is wrong.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        file::read(path.as_ref())
    }

    /// Reads a script from YAML; errors call it by `name`.
    ///
    /// # Errors
    ///
    /// [`ModelError::Configuration`] names the line and what is wrong.
    pub fn from_yaml(name: &str, yaml: &str) -> Result<Self, ModelError> {
        file::parse(name, yaml)
    }

    fn listed(turns: impl IntoIterator<Item = Turn>, cursor: Cursor) -> Self {
        Self {
            name: "scripted".to_owned(),
            rules: Vec::new(),
            turns: Turns::Listed(turns.into_iter().collect()),
            cursor,
            repeat: false,
            requests: None,
        }
    }

    /// With another name than `scripted`.
    #[must_use]
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// With these rules too, which are tried before the turns.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Begins again with the first turn after the last one.
    #[must_use]
    pub fn with_repeat(self) -> Self {
        Self { repeat: true, ..self }
    }

    /// Records its requests in this list, for tests.
    #[must_use]
    pub fn with_recording(self, requests: &Requests) -> Self {
        Self { requests: Some(requests.clone()), ..self }
    }

    fn answer(&self, request: &ModelRequest) -> Result<Turn, ModelError> {
        if let Some(turn) = self.rules.iter().find_map(|rule| rule.answer(request)) {
            return Ok(turn);
        }
        let turns = match &self.turns {
            Turns::Listed(turns) => turns,
            Turns::Made(answer) => return Ok(answer(request)),
        };
        let index = match &self.cursor {
            Cursor::Shared(next) => next.fetch_add(1, Ordering::Relaxed),
            Cursor::Conversation => answers(request),
        };
        let index = if self.repeat && !turns.is_empty() { index % turns.len() } else { index };
        turns.get(index).cloned().ok_or_else(|| self.no_answer(turns.len()))
    }

    fn no_answer(&self, turns: usize) -> ModelError {
        let message = match (turns, self.rules.len()) {
            (0, _) => {
                format!("no rule of the script {:?} fits the request; add one without \"when\"", self.name)
            }
            (turns, 0) => {
                format!("the script {:?} has only {turns} turns and was asked once more", self.name)
            }
            (turns, _) => {
                format!(
                    "no rule of the script {:?} fits the request, and its {turns} turns are used up",
                    self.name
                )
            }
        };
        ModelError::Other { code: "SCRIPT_ENDED".to_owned(), message }
    }
}

#[async_trait]
impl Model for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    async fn generate(&self, request: ModelRequest, streaming: Streaming) -> Result<ModelStream, ModelError> {
        let answer = self.answer(&request);
        if let Some(requests) = &self.requests {
            requests.push(request);
        }
        Ok(answer?.play(streaming))
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How often the model has answered in this conversation.
fn answers(request: &ModelRequest) -> usize {
    request.contents.iter().filter(|content| content.role.as_deref() == Some("model")).count()
}

/// The requests to a [`Scripted`] model, in order. Clones share the same list.
#[derive(Debug, Clone, Default)]
pub struct Requests(Arc<Mutex<Vec<ModelRequest>>>);

impl Requests {
    /// All requests so far.
    pub fn all(&self) -> Vec<ModelRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The newest request.
    pub fn last(&self) -> Option<ModelRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }

    fn push(&self, request: ModelRequest) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }
}
