use std::collections::BTreeMap;
use std::fmt;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use serde_json::{Map, Value, json};
use sessile_agent::{ModelError, ModelResponse, ModelStream, Streaming};
use sessile_session::{Content, FunctionCall, Part};
use sessile_state::SharedValue;

/// One answer of a [`Scripted`](crate::Scripted) model.
#[derive(Clone)]
pub struct Turn {
    pub(super) answer: ModelResponse,
    /// The pieces of the text if it is streamed; `None` splits it by words.
    pub(super) pieces: Option<Vec<String>>,
    error: Option<Arc<dyn Fn() -> ModelError + Send + Sync>>,
    delay: Duration,
    delay_between: Duration,
}

/// A call of a tool; made by [`call`] or from a name and arguments.
#[derive(Debug, Clone)]
pub struct Call(pub(super) FunctionCall);

impl Call {
    /// Calls a tool with arguments, which must be a JSON object.
    ///
    /// # Panics
    ///
    /// If the arguments are anything else.
    pub fn new(name: impl Into<String>, args: Value) -> Self {
        let Value::Object(args) = args else {
            panic!("the arguments of a call are a JSON object, not {args}")
        };
        Self::from_object(name.into(), args)
    }

    pub(super) fn from_object(name: String, args: Map<String, Value>) -> Self {
        let args: BTreeMap<_, _> =
            args.into_iter().map(|(key, value)| (key, SharedValue::from(value))).collect();
        Self(FunctionCall { name: Some(name), args: Some(args), ..FunctionCall::default() })
    }

    /// With an id; by default, the runner generates one.
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.0.id = Some(id.into());
        self
    }
}

/// Says a text.
pub fn reply(text: impl Into<String>) -> Turn {
    respond(ModelResponse { finish_reason: Some("STOP".to_owned()), ..ModelResponse::text(text) })
}

/// Calls a tool with arguments, which must be a JSON object.
///
/// # Panics
///
/// If the arguments are anything else.
pub fn call(name: impl Into<String>, args: Value) -> Turn {
    calls([Call::new(name, args)])
}

/// Calls several tools at once.
pub fn calls(calls: impl IntoIterator<Item = Call>) -> Turn {
    calls.into_iter().fold(Turn::empty(), Turn::and_call)
}

/// Fails with a code and a message.
pub fn fail(code: impl Into<String>, message: impl Into<String>) -> Turn {
    let (code, message) = (code.into(), message.into());
    Turn::empty().then_fail(move || ModelError::Other { code: code.clone(), message: message.clone() })
}

/// Answers with exactly this.
pub fn respond(answer: ModelResponse) -> Turn {
    Turn { answer, pieces: None, error: None, delay: Duration::ZERO, delay_between: Duration::ZERO }
}

impl Turn {
    pub(super) fn empty() -> Self {
        let content =
            Content { role: Some("model".to_owned()), parts: Some(Vec::new()), ..Content::default() };
        respond(ModelResponse { finish_reason: Some("STOP".to_owned()), ..ModelResponse::from(content) })
    }

    /// Adds a call of a tool.
    pub fn and_call(self, call: Call) -> Self {
        self.and_part(call.0.into())
    }

    /// Adds a text.
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and_part(Part::text(text))
    }

    /// Adds a thought.
    pub fn and_thought(self, text: impl Into<String>) -> Self {
        self.and_part(Part { thought: Some(true), ..Part::text(text) })
    }

    fn and_part(mut self, part: Part) -> Self {
        let content = self
            .answer
            .content
            .get_or_insert_with(|| Content { role: Some("model".to_owned()), ..Content::default() });
        content.parts.get_or_insert_default().push(part);
        self
    }

    /// Streams these pieces; together they are the text of the answer.
    pub fn in_pieces<P: Into<String>>(self, pieces: impl IntoIterator<Item = P>) -> Self {
        let pieces: Vec<String> = pieces.into_iter().map(Into::into).collect();
        Self { pieces: Some(pieces.clone()), ..self.and_text(pieces.concat()) }
    }

    /// Reports the tokens of the prompt and of the answer.
    pub fn with_usage(mut self, prompt: u64, answer: u64) -> Self {
        let usage = json!({
            "promptTokenCount": prompt,
            "candidatesTokenCount": answer,
            "totalTokenCount": prompt.saturating_add(answer),
        });
        self.answer.usage_metadata = Some(usage.into());
        self
    }

    /// With another finish reason than `STOP`, such as `MAX_TOKENS`.
    pub fn with_finish_reason(mut self, reason: impl Into<String>) -> Self {
        self.answer.finish_reason = Some(reason.into());
        self
    }

    /// Waits before it begins.
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Waits before each piece except the first, and before the whole response.
    pub fn with_delay_between(self, delay: Duration) -> Self {
        Self { delay_between: delay, ..self }
    }

    /// Fails instead of the whole response. If it is streamed, the pieces come before the failure.
    pub fn then_fail(self, error: impl Fn() -> ModelError + Send + Sync + 'static) -> Self {
        Self { error: Some(Arc::new(error)), ..self }
    }

    /// The stream of this answer.
    pub(super) fn play(self, streaming: Streaming) -> ModelStream {
        let mut items: Vec<Result<ModelResponse, ModelError>> = match streaming {
            Streaming::Whole => Vec::new(),
            Streaming::Pieces => self.partials().map(Ok).collect(),
        };
        items.push(match &self.error {
            Some(error) => Err(error()),
            None if streaming == Streaming::Pieces => {
                Ok(ModelResponse { partial: Some(false), ..self.answer.clone() })
            }
            None => Ok(self.answer.clone()),
        });
        let delays = iter::once(self.delay).chain(iter::repeat(self.delay_between));
        stream::iter(items.into_iter().zip(delays))
            .then(|(item, delay)| async move {
                if !delay.is_zero() {
                    tokio::time::sleep(delay).await;
                }
                item
            })
            .boxed()
    }

    /// Each piece of text, thought or call as a separate response.
    fn partials(&self) -> impl Iterator<Item = ModelResponse> {
        let parts = self.answer.content.iter().flat_map(|content| content.parts());
        let pieces = parts.flat_map(|part| match (&part.text, &self.pieces) {
            (Some(_), Some(pieces)) if part.thought != Some(true) => {
                spoken(part, pieces.iter().map(String::as_str))
            }
            (Some(text), _) => spoken(part, text.split_inclusive(' ')),
            (None, _) => vec![part.clone()],
        });
        pieces.map(|part| {
            let role = self.answer.content.as_ref().and_then(|content| content.role.clone());
            let content = Content { role, parts: Some(vec![part]), ..Content::default() };
            ModelResponse { partial: Some(true), ..ModelResponse::from(content) }
        })
    }
}

fn spoken<'a>(part: &Part, pieces: impl Iterator<Item = &'a str>) -> Vec<Part> {
    pieces.map(|piece| Part { thought: part.thought, ..Part::text(piece) }).collect()
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("answer", &self.answer)
            .field("pieces", &self.pieces)
            .field("fails", &self.error.is_some())
            .field("delay", &self.delay)
            .field("delay_between", &self.delay_between)
            .finish_non_exhaustive()
    }
}
