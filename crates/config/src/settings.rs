//! The parameters of a model (`generate_content_config`).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use serde_saphyr::Spanned;
use sessile_agent::GenerationConfig;

use crate::error::ConfigError;
use crate::file::{Source, did_you_mean};

const FIELD: &str = "generate_content_config";

/// The fields of google-adk that are sent to the model.
const KNOWN: [&str; 26] = [
    "temperature",
    "top_p",
    "top_k",
    "candidate_count",
    "max_output_tokens",
    "stop_sequences",
    "response_logprobs",
    "logprobs",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "response_mime_type",
    "response_json_schema",
    "response_modalities",
    "routing_config",
    "model_selection_config",
    "safety_settings",
    "tool_config",
    "labels",
    "cached_content",
    "media_resolution",
    "speech_config",
    "audio_timestamp",
    "thinking_config",
    "image_config",
    "service_tier",
];

/// Fields that belong elsewhere, and where.
const ELSEWHERE: [(&str, &str); 6] = [
    ("tools", "tools are given in `tools` of the agent"),
    ("system_instruction", "the instruction is given in `instruction` of the agent"),
    ("response_schema", "the shape of the answer is given in `output_schema` of the agent"),
    ("http_options", "timeouts and retries are not settings of an agent"),
    ("automatic_function_calling", "the runner calls tools, never the model's client"),
    ("should_return_http_response", "only the Python client has it"),
];

/// Reads the settings, one by one, so that an error has a position.
pub(crate) fn generation(
    source: &Source,
    fields: &BTreeMap<String, Spanned<Value>>,
) -> Result<GenerationConfig, ConfigError> {
    let mut all = serde_json::Map::new();
    for (name, value) in fields {
        let snake = in_snake(name);
        let path = format!("{FIELD}.{name}");
        let wrong = |problem: String| source.wrong(value.referenced, &path, problem);
        if let Some((_, reason)) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == snake) {
            return Err(wrong((*reason).to_owned()));
        }
        let hint = did_you_mean(&snake, &KNOWN);
        if !KNOWN.contains(&snake.as_str()) && !hint.is_empty() {
            return Err(wrong(format!("there is no such setting{hint}")));
        }
        let alone = json!({ snake.as_str(): value.value });
        if let Err(error) = serde_json::from_value::<GenerationConfig>(alone) {
            return Err(wrong(error.to_string()));
        }
        let name = if KNOWN.contains(&snake.as_str()) { snake } else { name.clone() };
        all.insert(name, value.value.clone());
    }
    serde_json::from_value(Value::Object(all))
        .map_err(|error| source.wrong(serde_saphyr::Location::UNKNOWN, FIELD, error.to_string()))
}

/// `topP` as `top_p`.
fn in_snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// A schema has at least one of these keywords.
const KEYWORDS: [&str; 10] = [
    "type",
    "properties",
    "items",
    "enum",
    "const",
    "anyOf",
    "oneOf",
    "allOf",
    "$ref",
    "additionalProperties",
];

/// Checks that a value is a JSON Schema, and not the name of a class.
pub(crate) fn output_schema(schema: &Value) -> Result<Value, String> {
    let code = |name: &str| {
        Err(format!("`{name}` is code; write the JSON Schema of the answer here, or the agent in Rust"))
    };
    match schema {
        Value::String(name) => code(name),
        Value::Object(fields) if KEYWORDS.iter().any(|keyword| fields.contains_key(*keyword)) => {
            Ok(schema.clone())
        }
        Value::Object(fields) => match fields.get("name") {
            Some(Value::String(name)) => code(name),
            _ => Err("it is not a JSON Schema: it has neither `type` nor `properties`".to_owned()),
        },
        _ => Err("it is not a JSON Schema, which is a mapping".to_owned()),
    }
}
