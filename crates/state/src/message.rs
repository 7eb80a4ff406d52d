//! Parts of error messages: names of types, and reasons that do not reveal the value.

use serde_json::Value;

/// The JSON type of a value with its article, for messages.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The deserializer's reason, without text that comes from the value.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    without_texts(&error.to_string())
}

/// Removes text that comes from a value from a message: what is between quotes may be secret.
pub(crate) fn without_texts(text: &str) -> String {
    let text = match (text.find('"'), text.rfind('"')) {
        (Some(start), Some(end)) if start < end => format!("{}…{}", &text[..=start], &text[end..]),
        _ => text.to_owned(),
    };
    if text.chars().count() > 200 { text.chars().take(200).chain(['…']).collect() } else { text }
}

/// A type's name without module paths: `Option<String>` for `core::option::Option<…>`.
pub(crate) fn short_name(full: &str) -> String {
    let mut short = String::new();
    for character in full.chars() {
        short.push(character);
        if short.ends_with("::") {
            let start = short[..short.len() - 2]
                .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map_or(0, |before| before + 1);
            short.truncate(start);
        }
    }
    short
}
