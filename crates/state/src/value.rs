use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A JSON value that many readers share: cloning it never copies an object, an array or a text.
///
/// It reads as the [`Value`] it holds (`Deref`), compares with one, and turns into one with
/// [`into_value`](Self::into_value).
#[derive(Clone)]
pub struct SharedValue(Repr);

#[derive(Clone)]
enum Repr {
    /// Null, booleans and numbers: smaller than a pointer to them would be worth.
    Inline(Value),
    Shared(Arc<Value>),
}

impl SharedValue {
    /// The value itself: moved out if nobody shares it, copied otherwise.
    pub fn into_value(self) -> Value {
        match self.0 {
            Repr::Inline(value) => value,
            Repr::Shared(value) => Arc::unwrap_or_clone(value),
        }
    }

    /// Whether both are the same value in memory, which is cheaper to know than equality.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Repr::Shared(a), Repr::Shared(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

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

impl From<Value> for SharedValue {
    fn from(value: Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self(Repr::Inline(value)),
            Value::String(_) | Value::Array(_) | Value::Object(_) => Self(Repr::Shared(Arc::new(value))),
        }
    }
}

impl From<SharedValue> for Value {
    fn from(value: SharedValue) -> Self {
        value.into_value()
    }
}

impl Deref for SharedValue {
    type Target = Value;

    fn deref(&self) -> &Value {
        match &self.0 {
            Repr::Inline(value) => value,
            Repr::Shared(value) => value,
        }
    }
}

impl PartialEq for SharedValue {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other) || **self == **other
    }
}

impl Eq for SharedValue {}

impl PartialEq<Value> for SharedValue {
    fn eq(&self, other: &Value) -> bool {
        **self == *other
    }
}

impl PartialEq<SharedValue> for Value {
    fn eq(&self, other: &SharedValue) -> bool {
        *self == **other
    }
}

impl fmt::Debug for SharedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for SharedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for SharedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}
