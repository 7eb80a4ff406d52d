//! Writes of [`State`] to keys with a reducer: sets that become operations.

use std::sync::Arc;

use serde::Serialize;

use crate::change::Change;
use crate::convert::json_of;
use crate::delta::Delta;
use crate::error::{StateError, or_panic};
use crate::reducer::{Reducer, Reducers};
use crate::state::State;
use crate::value::SharedValue;

/// Reducers.
impl State {
    /// This state, with `set` and `modify` of these keys turned into operations in the views made
    /// from the returned handle. On a state that is not a view they are ordinary writes.
    ///
    /// ```
    /// use sessile_state::{Reducer, Reducers, State};
    ///
    /// let state = State::new();
    /// state.set("points", 5);
    /// let reducing = state.with_reducers(Reducers::from([("points".to_owned(), Reducer::Add)]));
    /// let (one, other) = (reducing.with_delta_tracking(), reducing.with_delta_tracking());
    /// one.set("points", 6);
    /// other.modify("points", 0, |n| n + 1);
    /// one.commit();
    /// other.commit();
    /// assert_eq!(state.get("points"), Some(7));
    /// ```
    pub fn with_reducers(&self, reducers: impl Into<Arc<Reducers>>) -> Self {
        Self { reducers: Some(reducers.into()), ..self.clone() }
    }

    /// Overwrites a key, ignoring concurrent writes, even if a reducer is declared for it.
    ///
    /// # Panics
    ///
    /// Where [`try_replace`](Self::try_replace) returns an error, with its text.
    #[track_caller]
    pub fn replace(&self, key: impl AsRef<str>, value: impl Serialize) {
        or_panic(self.try_replace(key, value));
    }

    /// Overwrites a key, ignoring concurrent writes, even if a reducer is declared for it.
    ///
    /// # Errors
    ///
    /// As [`try_set`](Self::try_set), but never [`StateError::Reducer`].
    pub fn try_replace(&self, key: impl AsRef<str>, value: impl Serialize) -> Result<(), StateError> {
        let key = key.as_ref();
        let value = json_of(key, &value)?;
        self.check(key, &value)?;
        self.node.put(key, value.into())
    }

    /// The reducer of a key that is not [`Reducer::Last`].
    pub(crate) fn reducer(&self, key: &str) -> Option<Reducer> {
        let reducer = self.reducers.as_ref()?.get(key).copied();
        reducer.filter(|reducer| reducer.is_operation())
    }

    /// The keys that have such a reducer.
    pub(crate) fn reduced_keys(&self) -> impl Iterator<Item = &str> {
        let reducers = self.reducers.iter().flat_map(|reducers| reducers.iter());
        reducers.filter(|(_, reducer)| reducer.is_operation()).map(|(key, _)| key.as_str())
    }

    /// No reducer can express that a key is removed.
    pub(crate) fn check_removal(&self, key: &str) -> Result<(), StateError> {
        match self.reducer(key) {
            Some(reducer) if self.is_tracking_delta() => {
                Err(StateError::reducer(key, reducer.name(), "the removal of the key"))
            }
            _ => Ok(()),
        }
    }

    /// The delta with sets of keys that have a reducer turned into operations; `None` if it has
    /// none of them.
    pub(crate) fn reduced(&self, delta: &Delta) -> Result<Option<Delta>, StateError> {
        if !self.is_tracking_delta() || !delta.iter().any(|(key, _)| self.reducer(key).is_some()) {
            return Ok(None);
        }
        let mut reduced = delta.clone();
        for (key, change) in delta.iter() {
            let Some(reducer) = self.reducer(key) else { continue };
            match change {
                Change::Operate(_) => {}
                Change::Remove => self.check_removal(key)?,
                Change::Set(value) => {
                    let shown = self.node.peek(key).map(SharedValue::from);
                    let operation = reducer.difference(key, shown.as_ref(), value)?;
                    reduced.retain(|other| other != key);
                    if let Some(operation) = operation {
                        reduced.try_operate(key, operation)?;
                    }
                }
            }
        }
        Ok(Some(reduced))
    }
}
