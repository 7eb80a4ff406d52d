use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::StateError;
use crate::state::State;

/// A key and the type of its value, as a constant.
///
/// ```
/// use sessile_state::{State, StateKey};
///
/// const TURN_COUNT: StateKey<u32> = StateKey::new("session:turn_count");
///
/// let state = State::new();
/// state.set_key(&TURN_COUNT, 5);
/// assert_eq!(state.get_key(&TURN_COUNT), Some(5));
/// ```
pub struct StateKey<T> {
    key: &'static str,
    /// A key makes and takes `T`s but holds none, so it is `Send` and `Sync` whatever `T` is.
    value: PhantomData<fn(T) -> T>,
}

impl<T> StateKey<T> {
    /// A key for values of type `T`.
    pub const fn new(key: &'static str) -> Self {
        Self { key, value: PhantomData }
    }

    /// The key as text, prefix included.
    pub const fn key(&self) -> &'static str {
        self.key
    }
}

impl<T> Clone for StateKey<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StateKey<T> {}

impl<T> fmt::Debug for StateKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateKey({:?})", self.key)
    }
}

/// Typed keys.
impl State {
    /// [`get`](Self::get) with a typed key.
    pub fn get_key<T: DeserializeOwned>(&self, key: &StateKey<T>) -> Option<T> {
        self.get(key.key)
    }

    /// [`try_get`](Self::try_get) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_get`](Self::try_get).
    pub fn try_get_key<T: DeserializeOwned>(&self, key: &StateKey<T>) -> Result<Option<T>, StateError> {
        self.try_get(key.key)
    }

    /// [`set`](Self::set) with a typed key.
    ///
    /// # Panics
    ///
    /// As [`set`](Self::set).
    #[track_caller]
    pub fn set_key<T: Serialize>(&self, key: &StateKey<T>, value: T) {
        self.set(key.key, value);
    }

    /// [`try_set`](Self::try_set) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set).
    pub fn try_set_key<T: Serialize>(&self, key: &StateKey<T>, value: T) -> Result<(), StateError> {
        self.try_set(key.key, value)
    }

    /// [`replace`](Self::replace) with a typed key.
    ///
    /// # Panics
    ///
    /// As [`replace`](Self::replace).
    #[track_caller]
    pub fn replace_key<T: Serialize>(&self, key: &StateKey<T>, value: T) {
        self.replace(key.key, value);
    }

    /// [`try_replace`](Self::try_replace) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_replace`](Self::try_replace).
    pub fn try_replace_key<T: Serialize>(&self, key: &StateKey<T>, value: T) -> Result<(), StateError> {
        self.try_replace(key.key, value)
    }

    /// [`with`](Self::with) with a typed key.
    pub fn with_key<T, R>(&self, key: &StateKey<T>, read: impl FnOnce(&Value) -> R) -> Option<R> {
        self.with(key.key, read)
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
        self.modify(key.key, default, change)
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
        self.try_modify(key.key, default, change)
    }
}
