use std::collections::BTreeMap;

use futures_util::stream::BoxStream;
use serde::Deserialize;
use sessile_agent::{ModelError, ModelResponse, ModelStream};
use sessile_session::Part;

use super::response::{Message, ToolCall, Usage, end, malformed, spoken, usage};
use crate::answer::{Answer, Join, as_they_come, content};
use crate::http::error_in_body;

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Usage>,
    model: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u32,
    #[serde(default)]
    delta: Message,
    finish_reason: Option<String>,
}

/// The data of the event that ends a stream.
const DONE: &str = "[DONE]";

/// Streams pieces of text as they arrive, and then the whole response with its calls.
pub(super) fn pieces(model: String, events: BoxStream<'static, Result<String, ModelError>>) -> ModelStream {
    let joining = Joining {
        model,
        answer: Answer::default(),
        calls: BTreeMap::new(),
        finish_reason: None,
        done: false,
    };
    as_they_come(joining, events)
}

/// A streamed response in progress.
struct Joining {
    model: String,
    answer: Answer,
    calls: BTreeMap<u64, ToolCall>,
    finish_reason: Option<String>,
    done: bool,
}

impl Join for Joining {
    fn read(&mut self, data: &str) -> Result<Option<ModelResponse>, ModelError> {
        if data == DONE {
            self.done = true;
            return Ok(None);
        }
        if let Some(error) = error_in_body(&self.model, data) {
            return Err(error);
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| {
            malformed(&self.model, format!("a piece of it is not the JSON expected: {error}"))
        })?;
        if let Some(counted) = chunk.usage {
            self.answer.about.usage_metadata = Some(usage(counted));
        }
        if chunk.model.is_some() {
            self.answer.about.model_version = chunk.model;
        }
        let Some(choice) = chunk.choices.into_iter().find(|choice| choice.index == 0) else {
            return Ok(None);
        };
        if choice.finish_reason.is_some() {
            self.finish_reason = choice.finish_reason;
        }
        let new: Vec<Part> = spoken(&choice.delta).collect();
        for part in &new {
            self.answer.push(part.clone());
        }
        for piece in choice.delta.tool_calls.into_iter().flatten() {
            self.add_call(piece);
        }
        Ok((!new.is_empty()).then(|| ModelResponse {
            partial: Some(true),
            model_version: self.answer.about.model_version.clone(),
            ..ModelResponse::from(content(new))
        }))
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn finish(self) -> Result<ModelResponse, ModelError> {
        if !self.done && self.finish_reason.is_none() {
            let message = "the response broke off before its end".to_owned();
            return Err(ModelError::Unavailable { model: self.model, message, source: None });
        }
        let calls =
            self.calls.into_values().map(|call| (call.id, call.function.name, call.function.arguments));
        end(self.answer, calls, self.finish_reason.as_deref())
    }
}

impl Joining {
    /// Joins a piece of a call to its beginning. If a server sends no indexes, each id begins a new
    /// call.
    fn add_call(&mut self, piece: ToolCall) {
        let last = self.calls.last_key_value().map(|(index, _)| *index);
        let index = piece.index.unwrap_or(match (last, &piece.id) {
            (None, _) => 0,
            (Some(last), Some(_)) => last.saturating_add(1),
            (Some(last), None) => last,
        });
        let call = self.calls.entry(index).or_default();
        if piece.id.is_some() {
            call.id = piece.id;
        }
        let extend = |old: &mut Option<String>, new: Option<String>| {
            if let Some(new) = new {
                old.get_or_insert_default().push_str(&new);
            }
        };
        extend(&mut call.function.name, piece.function.name);
        extend(&mut call.function.arguments, piece.function.arguments);
    }
}
