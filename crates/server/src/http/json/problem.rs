use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::parse::Malformed;

/// One thing that is wrong with a request, as ADK's clients expect it.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Problem {
    r#type: &'static str,
    loc: Vec<Step>,
    msg: String,
    input: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ctx: Option<Value>,
}

/// A step of the path to the value with the problem.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
#[serde(untagged)]
pub(crate) enum Step {
    Name(String),
    Index(usize),
}

/// Longer inputs are not sent back.
const LONGEST_INPUT: usize = 4096;

impl Problem {
    /// A problem of a kind at a path, with the input that was found there.
    pub(crate) fn new(kind: &'static str, loc: Vec<Step>, msg: impl Into<String>, input: &str) -> Self {
        Self { r#type: kind, loc, msg: msg.into(), input: shown(input), ctx: None }
    }

    #[must_use]
    pub(crate) fn with_ctx(mut self, ctx: Value) -> Self {
        self.ctx = Some(ctx);
        self
    }

    /// The body is not JSON.
    pub(crate) fn malformed(error: &Malformed) -> Self {
        let loc = vec![Step::name("body"), Step::Index(error.position)];
        Self::new("json_invalid", loc, "JSON decode error", "{}").with_ctx(json!({ "error": error.message }))
    }

    /// A parameter of the path, the query or a header is not valid.
    pub(crate) fn parameter(
        kind: &'static str,
        part: &'static str,
        name: &str,
        msg: &str,
        input: &str,
    ) -> Self {
        Self::new(kind, vec![Step::name(part), Step::name(name)], msg, &Value::from(input).to_string())
    }
}

impl Step {
    pub(crate) fn name(name: impl Into<String>) -> Self {
        Self::Name(name.into())
    }
}

/// The input, if it is JSON of a reasonable size.
fn shown(input: &str) -> Box<RawValue> {
    let text = if input.len() > LONGEST_INPUT {
        let start: String = input.chars().take(200).collect();
        Value::from(format!("{start}… ({} bytes)", input.len())).to_string()
    } else {
        input.to_owned()
    };
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
