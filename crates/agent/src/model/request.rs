use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sessile_session::Content;
use sessile_state::SharedValue;

/// A request to a model.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// The name of another model to use instead of the model's own.
    pub model: Option<String>,
    /// The conversation, oldest first.
    pub contents: Vec<Content>,
    /// The system instruction.
    pub system_instruction: Option<String>,
    /// The tools that it may call.
    pub tools: Vec<FunctionDeclaration>,
    /// How it should answer.
    pub config: GenerationConfig,
    /// The JSON Schema of the answer, if it is to be an object.
    pub output_schema: Option<SharedValue>,
}

impl ModelRequest {
    /// Adds a paragraph to the system instruction.
    pub fn add_instruction(&mut self, text: &str) {
        match &mut self.system_instruction {
            Some(instruction) => {
                instruction.push_str("\n\n");
                instruction.push_str(text);
            }
            None => self.system_instruction = Some(text.to_owned()),
        }
    }
}

/// A tool, as a model sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FunctionDeclaration {
    /// Its name.
    pub name: String,
    /// What it does, and when to call it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Option<SharedValue>,
}

/// The parameters of a model. Both spellings are read (`topP` and `top_p`); unknown fields are kept
/// and sent on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationConfig {
    /// The randomness of the sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling: the cumulative probability of the tokens that are considered.
    #[serde(alias = "top_p", skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// How many of the most likely tokens are considered.
    #[serde(alias = "top_k", skip_serializing_if = "Option::is_none")]
    pub top_k: Option<f64>,
    /// The longest answer, in tokens.
    #[serde(alias = "max_output_tokens", skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Texts that end the answer.
    #[serde(alias = "stop_sequences", skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// The seed of the sampling, for reproducible answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// A penalty for tokens that occurred already.
    #[serde(alias = "presence_penalty", skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// A penalty for tokens that grows with how often they occurred.
    #[serde(alias = "frequency_penalty", skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// The media type of the answer, such as `application/json`.
    #[serde(alias = "response_mime_type", skip_serializing_if = "Option::is_none")]
    pub response_mime_type: Option<String>,
    /// Safety settings, in the format of the model's interface.
    #[serde(
        alias = "safety_settings",
        default,
        deserialize_with = "any_value",
        skip_serializing_if = "Option::is_none"
    )]
    pub safety_settings: Option<SharedValue>,
    /// All other fields, sent as they are.
    #[serde(flatten, deserialize_with = "any_values")]
    pub other: BTreeMap<String, SharedValue>,
}

/// Unlike a shared value itself, this reads from every format.
fn any_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SharedValue>, D::Error> {
    Ok(Option::<Value>::deserialize(deserializer)?.map(SharedValue::from))
}

fn any_values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, SharedValue>, D::Error> {
    let values = BTreeMap::<String, Value>::deserialize(deserializer)?;
    Ok(values.into_iter().map(|(key, value)| (key, value.into())).collect())
}
