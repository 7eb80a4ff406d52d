use std::collections::BTreeMap;

use sessile_session::{Content, Opaque};
use sessile_state::SharedValue;

/// What a model answers: all of it, or a piece.
#[derive(Debug, Clone, Default)]
pub struct ModelResponse {
    /// What it says, and the tools that it calls.
    pub content: Option<Content>,
    /// Whether it is a piece of an answer that is still coming.
    pub partial: Option<bool>,
    /// Whether the model's turn is over, in live sessions.
    pub turn_complete: Option<bool>,
    /// Whether the user interrupted it, in live sessions.
    pub interrupted: Option<bool>,
    /// Why it stopped.
    pub finish_reason: Option<String>,
    /// What went wrong, for programs.
    pub error_code: Option<String>,
    /// What went wrong, for people.
    pub error_message: Option<String>,
    /// Tokens that were used.
    pub usage_metadata: Option<Opaque>,
    /// Sources of the answer.
    pub grounding_metadata: Option<Opaque>,
    /// Quotations in the answer.
    pub citation_metadata: Option<Opaque>,
    /// How sure it was, token by token.
    pub logprobs_result: Option<Opaque>,
    /// How sure it was.
    pub avg_logprobs: Option<f64>,
    /// The model that answered.
    pub model_version: Option<String>,
    /// Notes for the event.
    pub custom_metadata: BTreeMap<String, SharedValue>,
}

impl ModelResponse {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::from(Content::text("model", text))
    }

    /// Whether it is a piece of an answer that is still coming.
    pub fn is_partial(&self) -> bool {
        self.partial == Some(true)
    }
}

impl From<Content> for ModelResponse {
    fn from(content: Content) -> Self {
        Self { content: Some(content), ..Self::default() }
    }
}
