use futures_util::stream::BoxStream;
use serde::Deserialize;
use sessile_agent::{ModelError, ModelResponse, ModelStream};
use sessile_session::{Content, Opaque, Part};

use crate::answer::{Answer, Join, as_they_come, content};
use crate::http::error_in_body;

/// The JSON of a response, whole or partial.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Generated {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<PromptFeedback>,
    usage_metadata: Option<Opaque>,
    model_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: u32,
    content: Option<Content>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    grounding_metadata: Option<Opaque>,
    citation_metadata: Option<Opaque>,
    logprobs_result: Option<Opaque>,
    avg_logprobs: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

/// Reads a response that was not streamed.
pub(super) fn whole(model: &str, body: &[u8]) -> Result<ModelResponse, ModelError> {
    let generated: Generated = serde_json::from_slice(body)
        .map_err(|error| malformed(model, format!("it is not the JSON expected: {error}")))?;
    let mut joining = Joining::new(model.to_owned());
    joining.add(generated)?;
    joining.ended = true;
    joining.finish()
}

/// Streams partial responses as they arrive, and then the whole one.
pub(super) fn pieces(model: String, events: BoxStream<'static, Result<String, ModelError>>) -> ModelStream {
    as_they_come(Joining::new(model), events)
}

/// A streamed response in progress.
struct Joining {
    model: String,
    answer: Answer,
    /// Whether the model has sent a finish reason.
    ended: bool,
}

impl Joining {
    fn new(model: String) -> Self {
        Self { model, answer: Answer::default(), ended: false }
    }

    /// Adds a piece, and returns what is new in it. Only the first candidate counts.
    fn add(&mut self, generated: Generated) -> Result<Vec<Part>, ModelError> {
        let about = &mut self.answer.about;
        replace(&mut about.usage_metadata, generated.usage_metadata);
        replace(&mut about.model_version, generated.model_version);
        if let Some(feedback) = generated.prompt_feedback
            && let Some(reason) = feedback.block_reason
        {
            self.ended = true;
            about.error_message =
                feedback.block_reason_message.or_else(|| Some("the prompt was blocked".to_owned()));
            about.error_code = Some(reason);
        }
        let Some(candidate) = generated.candidates.into_iter().find(|candidate| candidate.index == 0) else {
            return Ok(Vec::new());
        };
        self.ended |= candidate.finish_reason.is_some();
        replace(&mut about.finish_reason, candidate.finish_reason);
        replace(&mut about.error_message, candidate.finish_message);
        replace(&mut about.grounding_metadata, candidate.grounding_metadata);
        replace(&mut about.citation_metadata, candidate.citation_metadata);
        replace(&mut about.logprobs_result, candidate.logprobs_result);
        replace(&mut about.avg_logprobs, candidate.avg_logprobs);
        let parts = candidate.content.and_then(|content| content.parts).into_iter().flatten();
        let new: Vec<Part> =
            parts.filter(|part| *part != Part::text("") && *part != Part::default()).collect();
        for part in &new {
            if part
                .function_call
                .as_ref()
                .is_some_and(|call| call.will_continue.is_some() || call.partial_args.is_some())
            {
                let reason =
                    "it gives the arguments of calls in pieces; turn streamFunctionCallArguments off";
                return Err(malformed(&self.model, reason.to_owned()));
            }
            self.answer.push(part.clone());
        }
        Ok(new)
    }
}

impl Join for Joining {
    fn read(&mut self, data: &str) -> Result<Option<ModelResponse>, ModelError> {
        if let Some(error) = error_in_body(&self.model, data) {
            return Err(error);
        }
        let generated = serde_json::from_str(data).map_err(|error| {
            malformed(&self.model, format!("a piece of it is not the JSON expected: {error}"))
        })?;
        let new = self.add(generated)?;
        Ok((!new.is_empty()).then(|| ModelResponse {
            partial: Some(true),
            model_version: self.answer.about.model_version.clone(),
            ..ModelResponse::from(content(new))
        }))
    }

    fn finish(self) -> Result<ModelResponse, ModelError> {
        if !self.ended {
            let message = "the response broke off before its end".to_owned();
            return Err(ModelError::Unavailable { model: self.model, message, source: None });
        }
        let mut response = self.answer.finish();
        if response.error_code.is_none() {
            response.error_message = None;
        }
        Ok(response)
    }
}

fn replace<T>(old: &mut Option<T>, new: Option<T>) {
    if new.is_some() {
        *old = new;
    }
}

fn malformed(model: &str, reason: String) -> ModelError {
    ModelError::Malformed { model: model.to_owned(), reason }
}
