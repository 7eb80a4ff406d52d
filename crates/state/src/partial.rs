//! Whether some fields of an object could be those of a type.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::message::without_texts;
use crate::value::SharedValue;

/// Reads fields as those of a `T`. Missing fields of `T` are not an error: a union of fields leaves
/// them as they are.
pub(crate) fn check_fields<T: DeserializeOwned>(fields: &[(String, SharedValue)]) -> Result<(), String> {
    let whole: Value = fields.iter().map(|(name, value)| (name.clone(), (**value).clone())).collect();
    if T::deserialize(&whole).is_ok() {
        return Ok(());
    }
    match T::deserialize(Partial(fields)) {
        Ok(_) | Err(PartialError::Missing) => Ok(()),
        Err(PartialError::Other(reason)) => Err(without_texts(&reason)),
    }
}

/// An object of which only some fields are given.
struct Partial<'a>(&'a [(String, SharedValue)]);

impl<'de> Deserializer<'de> for Partial<'de> {
    type Error = PartialError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PartialError> {
        visitor.visit_map(Fields { rest: self.0, value: None })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, PartialError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, PartialError> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

struct Fields<'a> {
    rest: &'a [(String, SharedValue)],
    value: Option<&'a SharedValue>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = PartialError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, PartialError> {
        let Some(((name, value), rest)) = self.rest.split_first() else { return Ok(None) };
        (self.rest, self.value) = (rest, Some(value));
        let name: StrDeserializer<'_, PartialError> = name.as_str().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, PartialError> {
        let Some(value) = self.value.take() else {
            return Err(PartialError::custom("a value was asked for before its name"));
        };
        // Errors inside a value are those of serde_json: a field that is missing there is an error.
        seed.deserialize(&**value).map_err(PartialError::custom)
    }
}

#[derive(Debug)]
enum PartialError {
    /// A field of the object itself is not given.
    Missing,
    Other(String),
}

impl Error for PartialError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Other(message.to_string())
    }

    fn missing_field(_: &'static str) -> Self {
        Self::Missing
    }
}

impl fmt::Display for PartialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("a field is missing"),
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for PartialError {}
