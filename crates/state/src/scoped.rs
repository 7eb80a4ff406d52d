use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{StateError, or_panic};
use crate::key::{DERIVED, joined};
use crate::number::Addend;
use crate::operation::Operations;
use crate::state::State;
use crate::value::SharedValue;

/// The keys of a state that share a prefix, read and written without it.
///
/// ```
/// use sessile_state::State;
///
/// let state = State::new();
/// state.app().set("flag", true); // the same as state.set("app:flag", true)
/// assert_eq!(state.get::<bool>("app:flag"), Some(true));
/// assert_eq!(state.app().keys(), ["flag"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Scoped<'a> {
    reads: ReadOnlyScoped<'a>,
}

/// Computed variables, which only their rules write: reads of a [`Scoped`], no writes.
#[derive(Debug, Clone, Copy)]
pub struct ReadOnlyScoped<'a> {
    state: &'a State,
    prefix: &'static str,
}

/// Scopes.
impl State {
    /// The `app:` keys: shared by all users and sessions of an application.
    pub fn app(&self) -> Scoped<'_> {
        self.scoped(Self::APP_PREFIX)
    }

    /// The `user:` keys: shared by all sessions of a user.
    pub fn user(&self) -> Scoped<'_> {
        self.scoped(Self::USER_PREFIX)
    }

    /// The `temp:` keys: one invocation, never stored.
    pub fn temp(&self) -> Scoped<'_> {
        self.scoped(Self::TEMP_PREFIX)
    }

    /// The `session:` keys: signals of a live session. Keys of an ordinary session have no prefix.
    pub fn session(&self) -> Scoped<'_> {
        self.scoped("session:")
    }

    /// The `turn:` keys: one turn of a live session.
    pub fn turn(&self) -> Scoped<'_> {
        self.scoped("turn:")
    }

    /// The `bg:` keys: written by background tools.
    pub fn bg(&self) -> Scoped<'_> {
        self.scoped("bg:")
    }

    /// The `derived:` keys: computed variables, read only.
    pub fn derived(&self) -> ReadOnlyScoped<'_> {
        ReadOnlyScoped { state: self, prefix: DERIVED }
    }

    fn scoped(&self, prefix: &'static str) -> Scoped<'_> {
        Scoped { reads: ReadOnlyScoped { state: self, prefix } }
    }
}

impl ReadOnlyScoped<'_> {
    /// [`State::get`] in this scope.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.full(key, |key| self.state.get(key))
    }

    /// [`State::try_get`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_get`].
    pub fn try_get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, StateError> {
        self.full(key, |key| self.state.try_get(key))
    }

    /// [`State::get_raw`] in this scope.
    pub fn get_raw(&self, key: &str) -> Option<SharedValue> {
        self.full(key, |key| self.state.get_raw(key))
    }

    /// [`State::with`] in this scope.
    pub fn with<R>(&self, key: &str, read: impl FnOnce(&Value) -> R) -> Option<R> {
        self.full(key, |key| self.state.with(key, read))
    }

    /// [`State::contains`] in this scope.
    pub fn contains(&self, key: &str) -> bool {
        self.full(key, |key| self.state.contains(key))
    }

    /// The keys of this scope without their prefix, in key order. Costs what it returns.
    pub fn keys(&self) -> Vec<String> {
        let index = self.state.index();
        index.keys(self.prefix).into_iter().map(|key| key[self.prefix.len()..].to_owned()).collect()
    }

    /// Keys and values of this scope at one moment, copied into a JSON object in key order.
    pub fn to_map(&self) -> Map<String, Value> {
        let now = self.state.snapshot();
        let keys = now.index().keys(self.prefix).into_iter();
        keys.filter_map(|key| Some((key[self.prefix.len()..].to_owned(), now.find(key)?.into_value())))
            .collect()
    }

    fn full<R>(&self, key: &str, with: impl FnOnce(&str) -> R) -> R {
        joined((self.prefix, key), with)
    }
}

/// Reads are those of [`ReadOnlyScoped`].
impl<'a> std::ops::Deref for Scoped<'a> {
    type Target = ReadOnlyScoped<'a>;

    fn deref(&self) -> &ReadOnlyScoped<'a> {
        &self.reads
    }
}

/// Each write is that of [`State`] with the same name, in this scope; it panics or fails for the
/// same reasons.
impl Scoped<'_> {
    /// [`State::set`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::set`].
    #[track_caller]
    pub fn set(&self, key: impl AsRef<str>, value: impl Serialize) {
        or_panic(self.try_set(key, value));
    }

    /// [`State::try_set`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_set`].
    pub fn try_set(&self, key: impl AsRef<str>, value: impl Serialize) -> Result<(), StateError> {
        self.full(key.as_ref(), |key| self.state.try_set(key, value))
    }

    /// [`State::replace`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::replace`].
    #[track_caller]
    pub fn replace(&self, key: impl AsRef<str>, value: impl Serialize) {
        or_panic(self.try_replace(key, value));
    }

    /// [`State::try_replace`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_replace`].
    pub fn try_replace(&self, key: impl AsRef<str>, value: impl Serialize) -> Result<(), StateError> {
        self.full(key.as_ref(), |key| self.state.try_replace(key, value))
    }

    /// [`State::set_default`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::set_default`].
    #[track_caller]
    pub fn set_default<T: Serialize + DeserializeOwned>(&self, key: &str, default: T) -> T {
        or_panic(self.try_set_default(key, default))
    }

    /// [`State::try_set_default`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_set_default`].
    pub fn try_set_default<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        default: T,
    ) -> Result<T, StateError> {
        self.full(key, |key| self.state.try_set_default(key, default))
    }

    /// [`State::set_raw`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::set_raw`].
    #[track_caller]
    pub fn set_raw(&self, key: impl AsRef<str>, value: impl Into<SharedValue>) {
        or_panic(self.try_set_raw(key, value));
    }

    /// [`State::try_set_raw`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_set_raw`].
    pub fn try_set_raw(&self, key: impl AsRef<str>, value: impl Into<SharedValue>) -> Result<(), StateError> {
        self.full(key.as_ref(), |key| self.state.try_set_raw(key, value))
    }

    /// [`State::update`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::update`].
    #[track_caller]
    pub fn update<K: AsRef<str>, V: Serialize>(&self, entries: impl IntoIterator<Item = (K, V)>) {
        or_panic(self.try_update(entries));
    }

    /// [`State::try_update`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_update`].
    pub fn try_update<K: AsRef<str>, V: Serialize>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), StateError> {
        let full = |key: K| format!("{}{}", self.prefix, key.as_ref());
        self.state.try_update(entries.into_iter().map(|(key, value)| (full(key), value)))
    }

    /// [`State::modify`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::modify`].
    #[track_caller]
    pub fn modify<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        default: T,
        change: impl FnOnce(T) -> T,
    ) -> T {
        or_panic(self.try_modify(key, default, change))
    }

    /// [`State::try_modify`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_modify`].
    pub fn try_modify<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        default: T,
        change: impl FnOnce(T) -> T,
    ) -> Result<T, StateError> {
        self.full(key, |key| self.state.try_modify(key, default, change))
    }

    /// [`State::add`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::add`].
    #[track_caller]
    pub fn add(&self, key: impl AsRef<str>, by: impl Addend) {
        or_panic(self.try_add(key, by));
    }

    /// [`State::try_add`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_add`].
    pub fn try_add(&self, key: impl AsRef<str>, by: impl Addend) -> Result<(), StateError> {
        self.full(key.as_ref(), |key| self.state.try_add(key, by))
    }

    /// [`State::append`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::append`].
    #[track_caller]
    pub fn append(&self, key: impl AsRef<str>, items: impl Serialize) {
        or_panic(self.try_append(key, items));
    }

    /// [`State::try_append`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_append`].
    pub fn try_append(&self, key: impl AsRef<str>, items: impl Serialize) -> Result<(), StateError> {
        self.full(key.as_ref(), |key| self.state.try_append(key, items))
    }

    /// [`State::union`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::union`].
    #[track_caller]
    pub fn union(&self, key: impl AsRef<str>, items: impl Serialize) {
        or_panic(self.try_union(key, items));
    }

    /// [`State::try_union`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_union`].
    pub fn try_union(&self, key: impl AsRef<str>, items: impl Serialize) -> Result<(), StateError> {
        self.full(key.as_ref(), |key| self.state.try_union(key, items))
    }

    /// [`State::operate`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::operate`].
    #[track_caller]
    pub fn operate(&self, key: impl AsRef<str>, operations: impl Into<Operations>) {
        or_panic(self.try_operate(key, operations));
    }

    /// [`State::try_operate`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_operate`].
    pub fn try_operate(
        &self,
        key: impl AsRef<str>,
        operations: impl Into<Operations>,
    ) -> Result<(), StateError> {
        self.full(key.as_ref(), |key| self.state.try_operate(key, operations))
    }

    /// [`State::remove`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::remove`].
    #[track_caller]
    pub fn remove(&self, key: &str) -> Option<Value> {
        or_panic(self.try_remove(key))
    }

    /// [`State::try_remove`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_remove`].
    pub fn try_remove(&self, key: &str) -> Result<Option<Value>, StateError> {
        self.full(key, |key| self.state.try_remove(key))
    }

    /// [`State::rename`] in this scope.
    ///
    /// # Panics
    ///
    /// As [`State::rename`].
    #[track_caller]
    pub fn rename(&self, from: &str, to: &str) -> bool {
        or_panic(self.try_rename(from, to))
    }

    /// [`State::try_rename`] in this scope.
    ///
    /// # Errors
    ///
    /// As [`State::try_rename`].
    pub fn try_rename(&self, from: &str, to: &str) -> Result<bool, StateError> {
        self.full(from, |from| self.full(to, |to| self.state.try_rename(from, to)))
    }

    /// Copies every key of another state into this scope, so that `x` becomes `app:x`.
    ///
    /// # Panics
    ///
    /// As [`State::merge`].
    #[track_caller]
    pub fn merge(&self, other: &State) {
        or_panic(self.try_merge(other));
    }

    /// Copies every key of another state into this scope, or none.
    ///
    /// # Errors
    ///
    /// As [`State::try_merge`].
    pub fn try_merge(&self, other: &State) -> Result<(), StateError> {
        let other = other.snapshot();
        self.state
            .try_apply(&other.iter().map(|(key, value)| (format!("{}{key}", self.prefix), value)).collect())
    }

    /// Removes the keys of this scope whose name starts with `prefix`; all of them if it is empty.
    ///
    /// # Panics
    ///
    /// As [`State::clear_prefix`].
    #[track_caller]
    pub fn clear_prefix(&self, prefix: &str) -> usize {
        or_panic(self.try_clear_prefix(prefix))
    }

    /// Removes the keys of this scope whose name starts with `prefix`; all of them if it is empty.
    ///
    /// # Errors
    ///
    /// As [`State::try_clear_prefix`].
    pub fn try_clear_prefix(&self, prefix: &str) -> Result<usize, StateError> {
        self.full(prefix, |prefix| self.state.try_clear_prefix(prefix))
    }
}
