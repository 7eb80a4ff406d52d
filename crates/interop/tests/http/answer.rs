//! What a server answers, comparable.

use serde_json::{Map, Value};

use crate::call::Call;

/// A status and a body without what each server makes by itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn new(status: u16, text: &str) -> Self {
        let mut body = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        neutralise(&mut body);
        Self { status, body }
    }

    /// The reference's answer as Sessile means to give it.
    pub(crate) fn with_wanted_differences(mut self, call: &Call) -> Self {
        if let Call::Patch { .. } = call
            && let Some(Value::Object(state)) = self.body.get_mut("state")
        {
            // `temp:` keys are never echoed.
            state.retain(|key, _| !key.starts_with("temp:"));
        }
        if self.status == 500 && self.body == "Internal Server Error" {
            // Every error is JSON.
            self.body = serde_json::json!({"detail": "Internal Server Error"});
        }
        self
    }
}

/// Puts the same in the place of every id and time that a server made.
fn neutralise(value: &mut Value) {
    match value {
        Value::Object(object) => neutralise_fields(object),
        Value::Array(values) => values.iter_mut().for_each(neutralise),
        _ => {}
    }
}

fn neutralise_fields(object: &mut Map<String, Value>) {
    let is_event = object.contains_key("author") && object.contains_key("actions");
    for (name, field) in object.iter_mut() {
        match name.as_str() {
            "timestamp" | "lastUpdateTime" | "createTime" if field.is_number() => {
                *field = Value::from("time")
            }
            "invocationId" => *field = Value::from(kind_of_id(field)),
            "id" if is_event || is_made(field) => *field = Value::from("id"),
            // Application data, where equal names mean nothing.
            "state" | "stateDelta" => {}
            _ => neutralise(field),
        }
    }
}

/// What is left of an invocation's id: whether it is a run's (`e-`) or a patch's (`p-`).
fn kind_of_id(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), |id| id.chars().take(2).collect())
}

/// Whether an id was made by a server: the tests' own are short.
fn is_made(id: &Value) -> bool {
    id.as_str().is_some_and(|id| id.len() == 36)
}
