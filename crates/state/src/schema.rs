use std::any::type_name;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{reason, short_name};
use crate::key::StateKey;
use crate::nearest::nearest;
use crate::snapshot::Snapshot;
use crate::value::type_of;

/// Which keys a state may hold, and the types of their values.
///
/// Every write through [`State::with_schema`](crate::State::with_schema) is checked: a key that
/// is not declared, or a value that does not read as the declared type, is refused. Keys with a
/// prefix are free as long as no key with that prefix is declared; the first declaration closes
/// the prefix too.
///
/// ```
/// use sessile_state::{State, StateSchema};
///
/// let schema = StateSchema::new().key::<u32>("count").key::<Option<String>>("user:name");
/// let state = State::new().with_schema(schema);
///
/// state.set("count", 1);
/// state.set("temp:anything", "goes");
/// assert_eq!(
///     state.try_set("count", "one").unwrap_err().to_string(),
///     "state key `count` is declared as `u32` and cannot hold a string: \
///      invalid type: string \"…\", expected u32",
/// );
/// assert_eq!(
///     state.try_set("user:nmae", "Ada").unwrap_err().to_string(),
///     "state key `user:nmae` (a string) is not declared in the schema; did you mean `user:name`?",
/// );
/// ```
#[derive(Debug, Clone, Default)]
pub struct StateSchema {
    keys: BTreeMap<String, Declared>,
}

#[derive(Debug, Clone)]
struct Declared {
    /// The Rust type's name without its paths.
    type_name: String,
    check: fn(&Value) -> Result<(), serde_json::Error>,
}

impl StateSchema {
    /// A schema that declares no key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares a key, prefix included, with the type of its value. `Option<T>` also takes null.
    #[must_use]
    pub fn key<T: DeserializeOwned>(mut self, key: impl Into<String>) -> Self {
        let declared = Declared {
            type_name: short_name(type_name::<T>()),
            check: |value| T::deserialize(value).map(drop),
        };
        self.keys.insert(key.into(), declared);
        self
    }

    /// Declares a typed key.
    #[must_use]
    pub fn typed_key<T: DeserializeOwned>(self, key: &StateKey<T>) -> Self {
        self.key::<T>(key.key())
    }

    /// Whether `key` may hold `value`.
    ///
    /// # Errors
    ///
    /// [`SchemaError`] says why not.
    pub fn check(&self, key: &str, value: &Value) -> Result<(), SchemaError> {
        let Some(declared) = self.keys.get(key) else {
            return if self.is_free(key) { Ok(()) } else { Err(self.undeclared(key, value)) };
        };
        (declared.check)(value).map_err(|error| SchemaError::WrongType {
            key: key.to_owned(),
            declared: declared.type_name.clone(),
            given: type_of(value),
            reason: reason(&error),
        })
    }

    /// Everything in a state that the schema does not allow, in key order.
    pub fn check_all(&self, state: impl Into<Snapshot>) -> Vec<SchemaError> {
        let state = state.into();
        state.iter().filter_map(|(key, value)| self.check(key, &value).err()).collect()
    }

    /// Whether the key has a prefix that the schema says nothing about.
    fn is_free(&self, key: &str) -> bool {
        match key.find(':') {
            None => false,
            Some(colon) => !self.keys.keys().any(|declared| declared.starts_with(&key[..=colon])),
        }
    }

    fn undeclared(&self, key: &str, value: &Value) -> SchemaError {
        let nearest = nearest(key, self.keys.keys().map(String::as_str)).map(str::to_owned);
        SchemaError::Undeclared { key: key.to_owned(), given: type_of(value), nearest }
    }
}

/// Why a schema refuses a value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The schema does not declare the key.
    #[error("state key `{key}` ({given}) is not declared in the schema{}", hint(nearest))]
    Undeclared {
        /// The key that was to be written.
        key: String,
        /// The JSON type of the value it was to hold.
        given: &'static str,
        /// The declared key that looks most like it.
        nearest: Option<String>,
    },

    /// The value does not read as the declared type.
    #[error("state key `{key}` is declared as `{declared}` and cannot hold {given}: {reason}")]
    WrongType {
        /// The key that was to be written.
        key: String,
        /// The Rust type in the schema.
        declared: String,
        /// The JSON type of the value.
        given: &'static str,
        /// What the declared type itself says about the value, without the value.
        reason: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    match nearest {
        Some(key) => format!("; did you mean `{key}`?"),
        None => "; declare it, or check its spelling".to_owned(),
    }
}
