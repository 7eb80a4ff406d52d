//! Rust values into JSON and back, with errors that name the key.

use std::any::type_name;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::StateError;
use crate::message::{reason, short_name, type_of};
use crate::to_json::to_json;
use crate::value::{SharedValue, Slot};

/// Reads a stored value as a `T`.
pub(crate) fn read<T: DeserializeOwned>(key: &str, slot: Slot) -> Result<T, StateError> {
    let value = SharedValue::from(slot);
    value.read().map_err(|error| StateError::WrongType {
        key: key.to_owned(),
        expected: short_name(type_name::<T>()),
        found: type_of(&value),
        reason: reason(&error),
    })
}

/// The JSON form of the value that is to be written to `key`.
pub(crate) fn json_of<T: Serialize + ?Sized>(key: &str, value: &T) -> Result<Value, StateError> {
    to_json(value).map_err(|source| StateError::NotJson { key: key.to_owned(), source })
}
