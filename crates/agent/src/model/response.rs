use std::collections::BTreeMap;

use sessile_session::{Content, Opaque};
use sessile_state::SharedValue;

/// A response of a model, whole or partial.
#[derive(Debug, Clone, Default)]
pub struct ModelResponse {
    /// The text of the answer, and the tools that it calls.
    pub content: Option<Content>,
    /// Whether it is a partial response; more follows.
    pub partial: Option<bool>,
    /// Whether the model's turn is over, in live sessions.
    pub turn_complete: Option<bool>,
    /// Whether the user interrupted it, in live sessions.
    pub interrupted: Option<bool>,
    /// Why it stopped.
    pub finish_reason: Option<String>,
    /// The error code, for programs.
    pub error_code: Option<String>,
    /// The error message, for people.
    pub error_message: Option<String>,
    /// The numbers of tokens that were used.
    pub usage_metadata: Option<Opaque>,
    /// Sources of the answer.
    pub grounding_metadata: Option<Opaque>,
    /// The sources that the answer quotes.
    pub citation_metadata: Option<Opaque>,
    /// The log probabilities of the tokens.
    pub logprobs_result: Option<Opaque>,
    /// The average log probability of the tokens.
    pub avg_logprobs: Option<f64>,
    /// The model that answered.
    pub model_version: Option<String>,
    /// Metadata for the event.
    pub custom_metadata: BTreeMap<String, SharedValue>,
}

impl ModelResponse {
    /// An answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::from(Content::text("model", text))
    }

    /// Whether it is a partial response; more follows.
    pub fn is_partial(&self) -> bool {
        self.partial == Some(true)
    }
}

impl From<Content> for ModelResponse {
    fn from(content: Content) -> Self {
        Self { content: Some(content), ..Self::default() }
    }
}
