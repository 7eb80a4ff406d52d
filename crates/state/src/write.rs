//! The writes of [`State`].

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::convert::{json_of, read};
use crate::delta::Delta;
use crate::error::{StateError, or_panic};
use crate::state::State;
use crate::value::{SharedValue, Slot};

/// Writes.
impl State {
    /// Sets a key to any serializable value.
    ///
    /// # Panics
    ///
    /// Where [`try_set`](Self::try_set) returns an error, with its text.
    #[track_caller]
    pub fn set(&self, key: impl AsRef<str>, value: impl Serialize) {
        or_panic(self.try_set(key, value));
    }

    /// Sets a key to any serializable value.
    ///
    /// # Errors
    ///
    /// - [`StateError::NotJson`] if the value has no JSON form: NaN, infinity, a map whose keys are
    ///   not strings, more than 200 levels of nesting;
    /// - [`StateError::Schema`] if the state's schema does not allow it;
    /// - [`StateError::Reentrant`] or [`StateError::Busy`] if a `modify` closure holds the key and
    ///   cannot finish first.
    pub fn try_set(&self, key: impl AsRef<str>, value: impl Serialize) -> Result<(), StateError> {
        let key = key.as_ref();
        let value = json_of(key, &value)?;
        self.check(key, &value)?;
        self.put(key, value.into())
    }

    /// Sets a key to a JSON value without copying it.
    ///
    /// # Panics
    ///
    /// Where [`try_set_raw`](Self::try_set_raw) returns an error, with its text.
    #[track_caller]
    pub fn set_raw(&self, key: impl AsRef<str>, value: impl Into<SharedValue>) {
        or_panic(self.try_set_raw(key, value));
    }

    /// Sets a key to a JSON value without copying it.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set), but the value always has a JSON form.
    pub fn try_set_raw(&self, key: impl AsRef<str>, value: impl Into<SharedValue>) -> Result<(), StateError> {
        let (key, value) = (key.as_ref(), value.into());
        self.check(key, &value)?;
        self.put(key, value.into())
    }

    /// Sets a key, by an operation if a reducer is declared for it.
    fn put(&self, key: &str, value: Slot) -> Result<(), StateError> {
        match self.reducer(key) {
            None => self.node.put(key, value),
            Some(reducer) => self.node.reduce(key, reducer, value.into()),
        }
    }

    /// The value of a key, which is set to `default` first if it is absent.
    ///
    /// ```
    /// let state = sessile_state::State::new();
    /// assert_eq!(state.set_default("age", 0), 0);
    /// state.set("age", 30);
    /// assert_eq!(state.set_default("age", 0), 30);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_set_default`](Self::try_set_default) returns an error, with its text.
    #[track_caller]
    pub fn set_default<T: Serialize + DeserializeOwned>(&self, key: &str, default: T) -> T {
        or_panic(self.try_set_default(key, default))
    }

    /// The value of a key, which is set to `default` first if it is absent.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set), and [`StateError::WrongType`] if there is a value and it
    /// does not read as a `T`.
    pub fn try_set_default<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        default: T,
    ) -> Result<T, StateError> {
        let mut claimed = self.node.claim(key)?;
        claimed.note_read();
        if let Some(value) = claimed.value.take() {
            drop(claimed);
            return read(key, value);
        }
        let value = json_of(key, &default)?;
        self.check(key, &value)?;
        claimed.finish(value.into());
        Ok(default)
    }

    /// Sets many keys atomically.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let state = sessile_state::State::new();
    /// state.update([
    ///     ("step", json!("payment")),
    ///     ("user:last_action", json!("checkout")),
    ///     ("temp:validation_results", json!({ "valid": true })),
    /// ]);
    /// assert_eq!(state.len(), 3);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_update`](Self::try_update) returns an error, with its text.
    #[track_caller]
    pub fn update<K: AsRef<str>, V: Serialize>(&self, entries: impl IntoIterator<Item = (K, V)>) {
        or_panic(self.try_update(entries));
    }

    /// Sets many keys atomically, or none.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set), for the first entry that cannot be set.
    pub fn try_update<K: AsRef<str>, V: Serialize>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<(), StateError> {
        let mut delta = Delta::new();
        for (key, value) in entries {
            delta.set(&key, json_of(key.as_ref(), &value)?);
        }
        self.try_apply(&delta)
    }

    /// Replaces a value by what `change` makes of it, or of `default` if the key is absent;
    /// returns the new value.
    ///
    /// The update is atomic: no other write of this key comes in between, from any thread. `change`
    /// may read the whole state and write other keys; writing this key inside it is an error.
    ///
    /// ```
    /// let state = sessile_state::State::new();
    /// assert_eq!(state.modify("turn_count", 0u32, |n| n + 1), 1);
    /// assert_eq!(state.modify("muted", false, |b| !b), true);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_modify`](Self::try_modify) returns an error, with its text.
    #[track_caller]
    pub fn modify<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        default: T,
        change: impl FnOnce(T) -> T,
    ) -> T {
        or_panic(self.try_modify(key, default, change))
    }

    /// Replaces a value by what `change` makes of it, or of `default` if the key is absent;
    /// returns the new value.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set), and [`StateError::WrongType`] if there is a value and it
    /// does not read as a `T`. Then, or if `change` panics, the key keeps its value.
    pub fn try_modify<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        default: T,
        change: impl FnOnce(T) -> T,
    ) -> Result<T, StateError> {
        let reducer = self.reducer(key);
        let mut claimed = self.node.claim(key)?;
        claimed.note_read();
        let shown = match reducer {
            Some(_) => claimed.value.clone().map(SharedValue::from),
            None => None,
        };
        let old = match claimed.value.take() {
            Some(value) => read(key, value)?,
            None => default,
        };
        let new = change(old);
        let value = json_of(key, &new)?;
        self.check(key, &value)?;
        match reducer {
            None => claimed.finish(value.into()),
            Some(reducer) => claimed.finish_reduced(reducer, shown.as_ref(), value.into())?,
        }
        Ok(new)
    }

    /// Removes a key and returns what it held.
    ///
    /// # Panics
    ///
    /// Where [`try_remove`](Self::try_remove) returns an error, with its text.
    #[track_caller]
    pub fn remove(&self, key: &str) -> Option<Value> {
        or_panic(self.try_remove(key))
    }

    /// Removes a key and returns what it held.
    ///
    /// # Errors
    ///
    /// [`StateError::Reentrant`] or [`StateError::Busy`] if a `modify` closure holds the key and
    /// cannot finish first; [`StateError::Reducer`] if a reducer is declared for the key.
    pub fn try_remove(&self, key: &str) -> Result<Option<Value>, StateError> {
        self.check_removal(key)?;
        Ok(self.node.take(key)?.map(Slot::into_value))
    }

    /// Moves a value to another key, replacing what that key held. Returns whether there was a
    /// value.
    ///
    /// # Panics
    ///
    /// Where [`try_rename`](Self::try_rename) returns an error, with its text.
    #[track_caller]
    pub fn rename(&self, from: &str, to: &str) -> bool {
        or_panic(self.try_rename(from, to))
    }

    /// Moves a value to another key, replacing what that key held. Returns whether there was a
    /// value.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set) on `to`.
    pub fn try_rename(&self, from: &str, to: &str) -> Result<bool, StateError> {
        self.node.note_listing();
        self.check_removal(from)?;
        if let Some(reducer) = self.reducer(to) {
            return Err(StateError::reducer(to, reducer.name(), "a value that is moved from another key"));
        }
        while let Some(value) = self.node.get(from).map(SharedValue::from) {
            self.check(to, &value)?;
            if from == to {
                return Ok(true);
            }
            let mut moved = false;
            self.node.write(&mut |now| {
                let mut delta = Delta::new();
                moved = now.find(from).as_ref() == Some(&value);
                if moved {
                    delta.set(to, value.clone());
                    delta.remove(from);
                }
                delta
            })?;
            if moved {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies every key of another state into this one, over what is here; others see all of it
    /// or nothing. The other state may be this one, or a view of it: then only the values that
    /// are pending in the view are copied.
    ///
    /// # Panics
    ///
    /// Where [`try_merge`](Self::try_merge) returns an error, with its text.
    #[track_caller]
    pub fn merge(&self, other: &State) {
        or_panic(self.try_merge(other));
    }

    /// Copies every key of another state into this one, or none.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set), for the first key that cannot be set.
    pub fn try_merge(&self, other: &State) -> Result<(), StateError> {
        let from = other.snapshot();
        match other.views_above(self) {
            // Values that come from this state itself are not written back: they may have changed
            // since.
            Some(views) => self.try_apply(&from.values_of_last(views)),
            None => self.try_apply(&from.iter().collect()),
        }
    }

    /// Applies all changes of a delta atomically: sets, removals and operations.
    ///
    /// # Panics
    ///
    /// Where [`try_apply`](Self::try_apply) returns an error, with its text.
    #[track_caller]
    pub fn apply(&self, delta: &Delta) {
        or_panic(self.try_apply(delta));
    }

    /// Applies all changes of a delta atomically, or none.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set), for the first change that cannot be made.
    pub fn try_apply(&self, delta: &Delta) -> Result<(), StateError> {
        self.check_all(delta)?;
        match self.reduced(delta)? {
            None => self.node.apply(delta),
            Some(reduced) => self.node.apply(&reduced),
        }
    }

    /// Applies, atomically, those changes of a delta whose keys still hold the values in `before`;
    /// a key that was changed since keeps its value. A key that is not in `before` is expected to
    /// be absent. Returns the changes that were made.
    ///
    /// ```
    /// use serde_json::json;
    /// use sessile_state::{Delta, State};
    ///
    /// let state = State::new();
    /// state.update([("color", "red"), ("size", "small")]);
    /// let before = state.snapshot_values(&["color", "size"]);
    /// state.set("size", "large");
    ///
    /// let wanted = Delta::from([("color", json!("blue")), ("size", json!("medium"))]);
    /// let made = state.try_apply_unchanged(&wanted, &before)?;
    /// assert_eq!(made, Delta::from([("color", json!("blue"))]));
    /// assert_eq!(state.get::<String>("size").as_deref(), Some("large"));
    /// # Ok::<(), sessile_state::StateError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_apply`](Self::try_apply), for any change of the delta; nothing is changed then.
    pub fn try_apply_unchanged(
        &self,
        delta: &Delta,
        before: &BTreeMap<String, SharedValue>,
    ) -> Result<Delta, StateError> {
        self.node.note_listing();
        self.check_all(delta)?;
        let mut made = Delta::new();
        self.node.write(&mut |now| {
            made = delta.clone();
            made.retain(|key| now.find(key).as_ref() == before.get(key));
            made.clone()
        })?;
        Ok(made)
    }

    /// Removes every key that starts with `prefix`, atomically; returns how many there were.
    ///
    /// # Panics
    ///
    /// Where [`try_clear_prefix`](Self::try_clear_prefix) returns an error, with its text.
    #[track_caller]
    pub fn clear_prefix(&self, prefix: &str) -> usize {
        or_panic(self.try_clear_prefix(prefix))
    }

    /// Removes every key that starts with `prefix`, atomically; returns how many there were.
    ///
    /// # Errors
    ///
    /// As [`try_remove`](Self::try_remove), for the first key that cannot be removed.
    pub fn try_clear_prefix(&self, prefix: &str) -> Result<usize, StateError> {
        self.node.note_listing();
        if let Some(key) = self.reduced_keys().find(|key| key.starts_with(prefix)) {
            self.check_removal(key)?;
        }
        let mut removed = 0;
        self.node.write(&mut |now| {
            let mut delta = Delta::new();
            now.index().keys(prefix).into_iter().for_each(|key| delta.remove(key));
            removed = delta.len();
            delta
        })?;
        Ok(removed)
    }

    pub(crate) fn check_all(&self, delta: &Delta) -> Result<(), StateError> {
        if self.schema.is_some() {
            for (key, value) in delta.values() {
                self.check(key, value)?;
            }
            for (key, operations) in delta.operations() {
                let held = self.node.peek(key).map(SharedValue::from);
                let value = operations.apply(held.as_ref());
                let value: SharedValue = value.map_err(|source| StateError::operation(key, source))?;
                self.check(key, &value)?;
            }
        }
        Ok(())
    }

    pub(crate) fn check(&self, key: &str, value: &Value) -> Result<(), StateError> {
        match &self.schema {
            Some(schema) => Ok(schema.check(key, value)?),
            None => Ok(()),
        }
    }
}
