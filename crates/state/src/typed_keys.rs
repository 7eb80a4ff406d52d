//! The operations of [`State`] on typed keys.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::StateError;
use crate::state::State;
use crate::state_key::StateKey;

/// Typed keys.
impl State {
    /// [`get`](Self::get) with a typed key.
    pub fn get_key<T: DeserializeOwned>(&self, key: &StateKey<T>) -> Option<T> {
        self.get(key.key())
    }

    /// [`try_get`](Self::try_get) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_get`](Self::try_get).
    pub fn try_get_key<T: DeserializeOwned>(&self, key: &StateKey<T>) -> Result<Option<T>, StateError> {
        self.try_get(key.key())
    }

    /// [`set`](Self::set) with a typed key.
    ///
    /// # Panics
    ///
    /// As [`set`](Self::set).
    #[track_caller]
    pub fn set_key<T: Serialize>(&self, key: &StateKey<T>, value: T) {
        self.set(key.key(), value);
    }

    /// [`try_set`](Self::try_set) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set).
    pub fn try_set_key<T: Serialize>(&self, key: &StateKey<T>, value: T) -> Result<(), StateError> {
        self.try_set(key.key(), value)
    }

    /// [`replace`](Self::replace) with a typed key.
    ///
    /// # Panics
    ///
    /// As [`replace`](Self::replace).
    #[track_caller]
    pub fn replace_key<T: Serialize>(&self, key: &StateKey<T>, value: T) {
        self.replace(key.key(), value);
    }

    /// [`try_replace`](Self::try_replace) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_replace`](Self::try_replace).
    pub fn try_replace_key<T: Serialize>(&self, key: &StateKey<T>, value: T) -> Result<(), StateError> {
        self.try_replace(key.key(), value)
    }

    /// [`with`](Self::with) with a typed key.
    pub fn with_key<T, R>(&self, key: &StateKey<T>, read: impl FnOnce(&Value) -> R) -> Option<R> {
        self.with(key.key(), read)
    }

    /// [`modify`](Self::modify) with a typed key.
    ///
    /// # Panics
    ///
    /// As [`modify`](Self::modify).
    #[track_caller]
    pub fn modify_key<T: Serialize + DeserializeOwned>(
        &self,
        key: &StateKey<T>,
        default: T,
        change: impl FnOnce(T) -> T,
    ) -> T {
        self.modify(key.key(), default, change)
    }

    /// [`try_modify`](Self::try_modify) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_modify`](Self::try_modify).
    pub fn try_modify_key<T: Serialize + DeserializeOwned>(
        &self,
        key: &StateKey<T>,
        default: T,
        change: impl FnOnce(T) -> T,
    ) -> Result<T, StateError> {
        self.try_modify(key.key(), default, change)
    }
}
