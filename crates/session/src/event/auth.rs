use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::record::{Spell, Spelling};

/// How to authenticate, as OpenAPI describes it. Its names have one spelling; google-adk stores two
/// of them with an underscore behind, which is taken off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthScheme(Value);

impl AuthScheme {
    /// The description.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for AuthScheme {
    fn from(mut scheme: Value) -> Self {
        if let Value::Object(fields) = &mut scheme {
            for (stored, name) in [("type_", "type"), ("in_", "in")] {
                if let Some(value) = fields.remove(stored) {
                    fields.entry(name).or_insert(value);
                }
            }
        }
        Self(scheme)
    }
}

impl<'de> Deserialize<'de> for AuthScheme {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl Spell for AuthScheme {
    fn spell<S: Serializer>(&self, _: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}
