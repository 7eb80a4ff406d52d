use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sessile_agent::{GenerationConfig, Model, ModelRequest, ModelResponse, Streaming};
use sessile_session::{BoxError, Content};

use super::TurnExtractor;
use crate::tool::schema;
use crate::transcript::LiveTurn;

/// Lets a model fill a type from the transcript.
pub(super) struct FromModel {
    model: Arc<dyn Model>,
    prompt: String,
    schema: Value,
    /// The fields of the type: the model may not write others.
    fields: Option<BTreeSet<String>>,
    check: fn(&Value) -> Result<(), serde_json::Error>,
}

impl FromModel {
    pub(super) fn new<T: DeserializeOwned + JsonSchema>(model: Arc<dyn Model>, prompt: String) -> Self {
        let schema = schema::<T>();
        let properties = schema.get("properties").and_then(Value::as_object);
        let fields = properties.map(|properties| properties.keys().cloned().collect());
        Self { model, prompt, schema, fields, check: |value| T::deserialize(value).map(drop) }
    }

    fn request(&self, turns: &[Arc<LiveTurn>]) -> ModelRequest {
        let mut text = String::new();
        for turn in turns {
            for (speaker, text_of_turn) in [("User", turn.user()), ("Assistant", turn.model())] {
                if !text_of_turn.trim().is_empty() {
                    writeln!(text, "{speaker}: {}", text_of_turn.trim())
                        .expect("writing to a text cannot fail");
                }
            }
        }
        ModelRequest {
            contents: vec![Content::text("user", text)],
            system_instruction: Some(self.prompt.clone()),
            config: GenerationConfig {
                response_mime_type: Some("application/json".to_owned()),
                ..GenerationConfig::default()
            },
            output_schema: Some(self.schema.clone().into()),
            ..ModelRequest::default()
        }
    }

    fn read(&self, answer: &str) -> Result<Value, BoxError> {
        let mut value: Value = serde_json::from_str(unfenced(answer))
            .map_err(|error| format!("the model did not answer with JSON: {error}"))?;
        (self.check)(&value).map_err(|error| format!("the model's answer does not fit: {error}"))?;
        if let (Some(fields), Some(object)) = (&self.fields, value.as_object_mut()) {
            object.retain(|name, _| fields.contains(name));
        }
        Ok(value)
    }
}

#[async_trait]
impl TurnExtractor for FromModel {
    async fn extract(&self, turns: &[Arc<LiveTurn>]) -> Result<Value, BoxError> {
        let mut answers = self.model.generate(self.request(turns), Streaming::Whole).await?;
        let mut last = None;
        while let Some(answer) = answers.next().await {
            last = Some(answer?);
        }
        let last = last.ok_or("the model did not answer")?;
        if let Some(message) = last.error_message.as_ref().or(last.error_code.as_ref()) {
            return Err(format!("the model failed: {message}").into());
        }
        self.read(&text(&last))
    }
}

/// The text of an answer, without the reasoning.
fn text(response: &ModelResponse) -> String {
    let parts = response.content.iter().flat_map(Content::parts);
    parts.filter(|part| part.thought != Some(true)).filter_map(|part| part.text.as_deref()).collect()
}

/// Removes the Markdown fence that some models put around JSON.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    inner.map_or(answer, |inner| inner.strip_prefix("json").unwrap_or(inner).trim())
}
