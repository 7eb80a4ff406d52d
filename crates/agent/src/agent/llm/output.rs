//! Storing an answer under the output key, and checking it against the output schema.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sessile_session::Event;
use sessile_state::{Operation, Reducer, SharedValue};

use super::LlmAgent;
use crate::context::InvocationContext;
use crate::error::AgentError;
use crate::json_schema::schema_of;

/// The shape of an answer.
pub(super) struct OutputSchema {
    pub(super) schema: SharedValue,
    check: Check,
}

/// Checks that a text has the shape.
type Check = Arc<dyn Fn(&str) -> Result<(), serde_json::Error> + Send + Sync>;

impl OutputSchema {
    pub(super) fn of<T: DeserializeOwned + JsonSchema>() -> Self {
        Self { schema: schema_of::<T>(), check: Arc::new(|text| serde_json::from_str::<T>(text).map(drop)) }
    }

    pub(super) fn json(schema: SharedValue) -> Self {
        Self { schema, check: Arc::new(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).map(drop)) }
    }
}

impl LlmAgent {
    /// Puts the agent's answer into the event, under its output key, if the event is its final one.
    /// If the key has a reducer that collects, the answer is added to what is stored.
    ///
    /// # Errors
    ///
    /// [`AgentError::Output`] if it does not fit the agent's schema; the event is as it was then.
    pub(crate) fn keep_output(&self, ctx: &InvocationContext, event: &mut Event) -> Result<(), AgentError> {
        if self.output_key.is_none() && self.output_schema.is_none() {
            return Ok(());
        }
        if event.is_partial() || !event.is_final_response() {
            return Ok(());
        }
        let text = answer_text(event);
        let value = match &self.output_schema {
            _ if text.is_empty() => return Ok(()),
            None => SharedValue::from(Value::from(text)),
            Some(_) if text.trim().is_empty() => return Ok(()),
            Some(schema) => {
                (schema.check)(&text).map_err(|error| self.misfit(&error))?;
                without_nulls(SharedValue::from_json(&text).map_err(|error| self.misfit(&error))?)
            }
        };
        if let Some(key) = &self.output_key {
            let delta = &mut event.actions.state_delta;
            match ctx.frame.rules.reducers.get(key).and_then(|reducer| collected(*reducer, &value)) {
                Some(operation) => delta.try_operate(key, operation).map_err(AgentError::other)?,
                None => delta.set(key, value),
            }
        }
        Ok(())
    }

    fn misfit(&self, error: &serde_json::Error) -> AgentError {
        AgentError::Output { agent: self.name.clone(), reason: error.to_string() }
    }
}

/// The operation that adds an answer to a list or an object; `None` if the reducer does not
/// collect. An answer that is itself a list or an object is added item by item or field by field.
fn collected(reducer: Reducer, answer: &SharedValue) -> Option<Operation> {
    let items = || match &**answer {
        Value::Array(_) => answer.to_items(),
        _ => vec![answer.clone()],
    };
    match (reducer, &**answer) {
        (Reducer::Last | Reducer::Add, _) => None,
        (Reducer::Append, _) => Some(Operation::append(items())),
        (Reducer::Union, Value::Object(_)) => Some(Operation::union_fields(answer.to_fields())),
        (Reducer::Union, _) => Some(Operation::union(items())),
    }
}

/// What the event says, without the model's thoughts.
fn answer_text(event: &Event) -> String {
    let parts = event.content.iter().flat_map(|content| content.parts());
    let said = parts.filter(|part| part.thought != Some(true));
    said.filter_map(|part| part.text.as_deref()).collect()
}

/// The object without its fields that are null, which say that there is nothing.
fn without_nulls(value: SharedValue) -> SharedValue {
    match &*value {
        Value::Object(fields) if fields.values().any(Value::is_null) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect()).into()
        }
        _ => value,
    }
}
