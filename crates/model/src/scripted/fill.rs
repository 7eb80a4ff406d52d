use std::collections::BTreeMap;

use serde_json::Value;
use sessile_state::SharedValue;

use super::turn::Turn;

/// The values of the placeholders `{name}` in an answer.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, Value>);

impl Names {
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), Value::from(value));
    }

    pub(super) fn extend(&mut self, captures: Vec<(String, String)>) {
        self.0.extend(captures.into_iter().map(|(name, value)| (name, Value::from(value))));
    }

    /// Adds the fields of a tool's result as `result.field`.
    pub(super) fn results<'a>(&mut self, fields: impl Iterator<Item = (&'a String, &'a SharedValue)>) {
        self.0.extend(fields.map(|(field, value)| (format!("result.{field}"), value.clone().into_value())));
    }
}

/// The answer with its placeholders replaced; braces around anything else stay as they are.
pub(super) fn fill(mut turn: Turn, names: &Names) -> Turn {
    let parts = turn.answer.content.iter_mut().flat_map(|content| content.parts.iter_mut().flatten());
    for part in parts {
        if let Some(text) = &mut part.text {
            *text = fill_text(text, names);
        }
        for value in
            part.function_call.iter_mut().flat_map(|call| call.args.iter_mut().flatten()).map(|arg| arg.1)
        {
            *value = fill_value(value.clone().into_value(), names).into();
        }
    }
    for piece in turn.pieces.iter_mut().flatten() {
        *piece = fill_text(piece, names);
    }
    turn
}

/// A text that is only one placeholder becomes its value, and keeps the type of the value.
fn fill_value(value: Value, names: &Names) -> Value {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            match name.and_then(|name| names.0.get(name)) {
                Some(value) => value.clone(),
                None => Value::String(fill_text(&text, names)),
            }
        }
        Value::Array(items) => items.into_iter().map(|item| fill_value(item, names)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, fill_value(value, names))).collect()
        }
        scalar => scalar,
    }
}

fn fill_text(text: &str, names: &Names) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, braced) = rest.split_at(open);
        filled.push_str(before);
        let named = braced.find('}').and_then(|close| Some((close, names.0.get(&braced[1..close])?)));
        match named {
            Some((close, value)) => {
                match value {
                    Value::String(text) => filled.push_str(text),
                    value => filled.push_str(&value.to_string()),
                }
                rest = &braced[close + 1..];
            }
            None => {
                filled.push('{');
                rest = &braced[1..];
            }
        }
    }
    filled.push_str(rest);
    filled
}
