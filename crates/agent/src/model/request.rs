use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sessile_session::Content;
use sessile_state::SharedValue;

/// What a model is asked.
#[derive(Debug, Clone, Default)]
pub struct ModelRequest {
    /// Another model's name in the place of the model's own.
    pub model: Option<String>,
    /// The conversation, oldest first.
    pub contents: Vec<Content>,
    /// What the model is told before the conversation.
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

/// How a model should answer. Read in both spellings; what is not known here is kept and sent on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GenerationConfig {
    /// How much chance plays a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much of the likely words are considered.
    #[serde(alias = "top_p", skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// How many likely words are considered.
    #[serde(alias = "top_k", skip_serializing_if = "Option::is_none")]
    pub top_k: Option<f64>,
    /// How long the answer may be.
    #[serde(alias = "max_output_tokens", skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Texts at which the answer ends.
    #[serde(alias = "stop_sequences", skip_serializing_if = "Option::is_none")]
    pub stop_sequences: Option<Vec<String>>,
    /// For answers that can be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Against words that were there already.
    #[serde(alias = "presence_penalty", skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Against words that were there often.
    #[serde(alias = "frequency_penalty", skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// The type of the answer, such as `application/json`.
    #[serde(alias = "response_mime_type", skip_serializing_if = "Option::is_none")]
    pub response_mime_type: Option<String>,
    /// What is refused, as the model's interface describes it.
    #[serde(
        alias = "safety_settings",
        default,
        deserialize_with = "any_value",
        skip_serializing_if = "Option::is_none"
    )]
    pub safety_settings: Option<SharedValue>,
    /// Everything else.
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
