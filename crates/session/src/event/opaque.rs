use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::record::{Spell, Spelling};

/// A model's object that Sessile passes on without looking inside, such as usage metadata. The
/// names of its fields, at every depth, follow the spelling of the event; headers of requests keep
/// theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opaque(Value);

impl Opaque {
    /// The object, with its fields in snake_case.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for Opaque {
    fn from(value: Value) -> Self {
        Self(in_snake(value))
    }
}

impl<'de> Deserialize<'de> for Opaque {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl Spell for Opaque {
    fn spell<S: Serializer>(&self, spelling: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
        match spelling {
            Spelling::Snake => self.0.serialize(serializer),
            Spelling::Camel => InCamel(&self.0).serialize(serializer),
        }
    }
}

/// The one field whose keys are the user's.
const HEADERS: &str = "additional_headers";

fn in_snake(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value)| match snake(name) {
                name if name == HEADERS => (name, value),
                name => (name, in_snake(value)),
            };
            fields.into_iter().map(field).collect()
        }
        Value::Array(items) => items.into_iter().map(in_snake).collect(),
        scalar => scalar,
    }
}

struct InCamel<'a>(&'a Value);

impl Serialize for InCamel<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    match name.as_str() {
                        HEADERS => map.serialize_entry(&camel(name), value)?,
                        _ => map.serialize_entry(&camel(name), &InCamel(value))?,
                    }
                }
                map.end()
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&InCamel(item))?;
                }
                list.end()
            }
            scalar => scalar.serialize(serializer),
        }
    }
}

/// `promptTokenCount` as `prompt_token_count`; a name that would not come back stays as it is.
fn snake(name: String) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    if camel(&snake) == name { snake } else { name }
}

/// `prompt_token_count` as `promptTokenCount`.
fn camel(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut upper = false;
    for character in name.chars() {
        if character == '_' && !camel.is_empty() {
            upper = true;
        } else {
            camel.push(if upper { character.to_ascii_uppercase() } else { character });
            upper = false;
        }
    }
    camel
}
