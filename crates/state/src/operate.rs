//! The operations of [`State`]: changes that are computed where they are committed.

use serde::Serialize;
use serde_json::Value;

use crate::convert::json_of;
use crate::error::{StateError, or_panic};
use crate::message::type_of;
use crate::not_json::NotJson;
use crate::number::Addend;
use crate::operation::{Operation, Operations};
use crate::state::State;
use crate::state_key::StateKey;
use crate::value::SharedValue;

/// Operations.
///
/// On a delta view an operation stays an operation until it is committed: it is then applied to the
/// stored value, not to the one that was read before, so concurrent writers in other sessions and
/// processes lose no update. Reading through the view shows the value with the operations applied.
impl State {
    /// Adds a number to a key; an absent key counts as 0.
    ///
    /// ```
    /// use sessile_state::State;
    ///
    /// let state = State::new();
    /// let (one, other) = (state.with_delta_tracking(), state.with_delta_tracking());
    /// one.add("user:points", 1);
    /// other.add("user:points", 1);
    /// one.commit();
    /// other.commit();
    /// assert_eq!(state.get("user:points"), Some(2));
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_add`](Self::try_add) returns an error, with its text.
    #[track_caller]
    pub fn add(&self, key: impl AsRef<str>, by: impl Addend) {
        or_panic(self.try_add(key, by));
    }

    /// Adds a number to a key; an absent key counts as 0.
    ///
    /// # Errors
    ///
    /// As [`try_operate`](Self::try_operate), and [`StateError::NotJson`] if the number is NaN or
    /// infinite.
    pub fn try_add(&self, key: impl AsRef<str>, by: impl Addend) -> Result<(), StateError> {
        let key = key.as_ref();
        let operation = Operation::try_add(by);
        self.try_operate(key, operation.map_err(|source| not_json(key, source))?)
    }

    /// Adds the items of a list to the end of the list under a key; an absent key counts as an
    /// empty list.
    ///
    /// ```
    /// let state = sessile_state::State::new();
    /// state.append("log", ["started"]);
    /// state.append("log", ["paid", "sent"]);
    /// assert_eq!(state.get::<Vec<String>>("log").unwrap(), ["started", "paid", "sent"]);
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_append`](Self::try_append) returns an error, with its text.
    #[track_caller]
    pub fn append(&self, key: impl AsRef<str>, items: impl Serialize) {
        or_panic(self.try_append(key, items));
    }

    /// Adds the items of a list to the end of the list under a key; an absent key counts as an
    /// empty list.
    ///
    /// # Errors
    ///
    /// As [`try_operate`](Self::try_operate), and [`StateError::NotJson`] if `items` has no JSON
    /// form or is not a list.
    pub fn try_append(&self, key: impl AsRef<str>, items: impl Serialize) -> Result<(), StateError> {
        let key = key.as_ref();
        match json_of(key, &items)? {
            Value::Array(items) => self.try_operate(key, Operation::append(items)),
            other => {
                let reason =
                    format!("`append` takes a list, not {}; put the item in a list", type_of(&other));
                Err(not_json(key, NotJson::new(reason)))
            }
        }
    }

    /// Adds those items of a list that the list under a key does not have yet, or sets fields of
    /// the object under it.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let state = sessile_state::State::new();
    /// state.union("tags", ["new", "paid"]);
    /// state.union("tags", ["paid", "sent"]);
    /// assert_eq!(state.get_raw("tags").unwrap(), json!(["new", "paid", "sent"]));
    ///
    /// state.union("address", json!({"city": "Paris"}));
    /// state.union("address", json!({"zip": "75001"}));
    /// assert_eq!(state.get_raw("address").unwrap(), json!({"city": "Paris", "zip": "75001"}));
    /// ```
    ///
    /// # Panics
    ///
    /// Where [`try_union`](Self::try_union) returns an error, with its text.
    #[track_caller]
    pub fn union(&self, key: impl AsRef<str>, items: impl Serialize) {
        or_panic(self.try_union(key, items));
    }

    /// Adds those items of a list that the list under a key does not have yet, or sets fields of
    /// the object under it.
    ///
    /// # Errors
    ///
    /// As [`try_operate`](Self::try_operate), and [`StateError::NotJson`] if `items` has no JSON
    /// form or is neither a list nor an object.
    pub fn try_union(&self, key: impl AsRef<str>, items: impl Serialize) -> Result<(), StateError> {
        let key = key.as_ref();
        match json_of(key, &items)? {
            Value::Array(items) => self.try_operate(key, Operation::union(items)),
            Value::Object(fields) => self.try_operate(key, Operation::union_fields(fields)),
            other => {
                let reason = format!("`union` takes a list or an object, not {}", type_of(&other));
                Err(not_json(key, NotJson::new(reason)))
            }
        }
    }

    /// Applies any operation, such as an addition with bounds.
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text.
    #[track_caller]
    pub fn operate(&self, key: impl AsRef<str>, operations: impl Into<Operations>) {
        or_panic(self.try_operate(key, operations));
    }

    /// Applies any operation, such as an addition with bounds.
    ///
    /// ```
    /// use sessile_state::{Operation, State};
    ///
    /// let state = State::new();
    /// state.set("stock", 1);
    /// let take_one = || Operation::add(-1).at_least(0);
    /// assert!(state.try_operate("stock", take_one()).is_ok());
    /// assert_eq!(
    ///     state.try_operate("stock", take_one()).unwrap_err().to_string(),
    ///     "cannot change state key `stock`: the sum would be -1, which is below the minimum 0",
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// - [`StateError::Operation`] if it cannot be applied to what the key holds now: another type,
    ///   a sum out of range or bounds;
    /// - [`StateError::Schema`], [`StateError::Reentrant`] or [`StateError::Busy`] as
    ///   [`try_set`](Self::try_set).
    pub fn try_operate(
        &self,
        key: impl AsRef<str>,
        operations: impl Into<Operations>,
    ) -> Result<(), StateError> {
        let key = key.as_ref();
        self.node.operate(key, &operations.into(), &|value: &SharedValue| self.check(key, value))
    }
}

/// Operations with typed keys.
impl State {
    /// [`add`](Self::add) with a typed key.
    ///
    /// # Panics
    ///
    /// As [`add`](Self::add).
    #[track_caller]
    pub fn add_key<T: Addend>(&self, key: &StateKey<T>, by: T) {
        self.add(key.key(), by);
    }

    /// [`try_add`](Self::try_add) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_add`](Self::try_add).
    pub fn try_add_key<T: Addend>(&self, key: &StateKey<T>, by: T) -> Result<(), StateError> {
        self.try_add(key.key(), by)
    }

    /// [`append`](Self::append) with a typed key.
    ///
    /// # Panics
    ///
    /// As [`append`](Self::append).
    #[track_caller]
    pub fn append_key<T: Serialize>(&self, key: &StateKey<Vec<T>>, items: impl IntoIterator<Item = T>) {
        or_panic(self.try_append_key(key, items));
    }

    /// [`try_append`](Self::try_append) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_append`](Self::try_append).
    pub fn try_append_key<T: Serialize>(
        &self,
        key: &StateKey<Vec<T>>,
        items: impl IntoIterator<Item = T>,
    ) -> Result<(), StateError> {
        self.try_append(key.key(), items.into_iter().collect::<Vec<_>>())
    }

    /// [`union`](Self::union) with a typed key.
    ///
    /// # Panics
    ///
    /// As [`union`](Self::union).
    #[track_caller]
    pub fn union_key<T: Serialize>(&self, key: &StateKey<Vec<T>>, items: impl IntoIterator<Item = T>) {
        or_panic(self.try_union_key(key, items));
    }

    /// [`try_union`](Self::try_union) with a typed key.
    ///
    /// # Errors
    ///
    /// As [`try_union`](Self::try_union).
    pub fn try_union_key<T: Serialize>(
        &self,
        key: &StateKey<Vec<T>>,
        items: impl IntoIterator<Item = T>,
    ) -> Result<(), StateError> {
        self.try_union(key.key(), items.into_iter().collect::<Vec<_>>())
    }
}

fn not_json(key: &str, source: NotJson) -> StateError {
    StateError::NotJson { key: key.to_owned(), source }
}
