use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::change::Change;
use crate::changes::{Changes, Iter};
use crate::error::{StateError, or_panic};
use crate::key::Key;
use crate::message::type_of;
use crate::number::Addend;
use crate::operation::{Operation, Operations};
use crate::value::SharedValue;

/// Changes that are not committed yet: keys set, keys removed and operations on keys, in key order.
///
/// ```
/// use sessile_state::Delta;
/// use serde_json::json;
///
/// let mut delta = Delta::new();
/// delta.set("user:theme", json!("dark"));
/// delta.set("temp:scratch", json!(1));
/// delta.remove("step");
///
/// let scoped = delta.split();
/// assert_eq!(scoped.user.get("theme"), Some(&sessile_state::Change::Set(json!("dark").into())));
/// assert_eq!(scoped.session.removed().collect::<Vec<_>>(), ["step"]);
/// assert!(scoped.app.is_empty()); // and temp: is in none of them
/// ```
#[derive(Clone, Default)]
pub struct Delta {
    /// `None` if nothing changes. Most deltas of a scope are empty, and then need no allocation.
    changes: Option<Arc<Changes>>,
}

impl Delta {
    /// A delta that changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys change.
    pub fn len(&self) -> usize {
        self.changes.as_ref().map_or(0, |changes| changes.len())
    }

    /// What happens to `key`, if anything does.
    pub fn get(&self, key: &str) -> Option<&Change> {
        self.changes.as_ref()?.get(key)
    }

    /// The changes in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Change)> {
        self.entries().map(|(key, change)| (&**key, change))
    }

    /// The keys that get a value, with it, in key order.
    pub fn values(&self) -> impl Iterator<Item = (&str, &SharedValue)> {
        self.iter().filter_map(|(key, change)| match change {
            Change::Set(value) => Some((key, value)),
            Change::Remove | Change::Operate(_) => None,
        })
    }

    /// The keys that are removed, in key order.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        self.iter().filter(|(_, change)| matches!(change, Change::Remove)).map(|(key, _)| key)
    }

    /// The keys that are operated on, with the operations, in key order.
    pub fn operations(&self) -> impl Iterator<Item = (&str, &Operations)> {
        self.iter().filter_map(|(key, change)| match change {
            Change::Operate(operations) => Some((key, operations)),
            Change::Set(_) | Change::Remove => None,
        })
    }

    /// Whether some of its changes are operations.
    pub fn has_operations(&self) -> bool {
        self.entries().any(|(_, change)| matches!(change, Change::Operate(_)))
    }

    /// Sets a key, replacing any change of it in the delta.
    pub fn set(&mut self, key: impl AsRef<str>, value: impl Into<SharedValue>) {
        self.insert(key.as_ref().into(), Change::Set(value.into()));
    }

    /// Removes a key, replacing any change of it in the delta.
    pub fn remove(&mut self, key: impl AsRef<str>) {
        self.insert(key.as_ref().into(), Change::Remove);
    }

    /// Adds a number to what is stored under a key, see [`Operation::add`].
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text; if the number is
    /// NaN or infinite.
    #[track_caller]
    pub fn add(&mut self, key: impl AsRef<str>, by: impl Addend) {
        self.operate(key, Operation::add(by));
    }

    /// Adds items to the end of the list under a key, see [`Operation::append`].
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text.
    #[track_caller]
    pub fn append<V: Into<SharedValue>>(&mut self, key: impl AsRef<str>, items: impl IntoIterator<Item = V>) {
        self.operate(key, Operation::append(items));
    }

    /// Adds items to the list under a key that are not in it yet, see [`Operation::union`].
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text.
    #[track_caller]
    pub fn union<V: Into<SharedValue>>(&mut self, key: impl AsRef<str>, items: impl IntoIterator<Item = V>) {
        self.operate(key, Operation::union(items));
    }

    /// Operates on a key, after any change of it that is already in the delta.
    ///
    /// # Panics
    ///
    /// Where [`try_operate`](Self::try_operate) returns an error, with its text.
    #[track_caller]
    pub fn operate(&mut self, key: impl AsRef<str>, operations: impl Into<Operations>) {
        or_panic(self.try_operate(key, operations));
    }

    /// Operates on a key, after any change of it that is already in the delta.
    ///
    /// # Errors
    ///
    /// [`StateError::Operation`] if the delta sets the key to a value that the operation cannot be
    /// applied to.
    pub fn try_operate(
        &mut self,
        key: impl AsRef<str>,
        operations: impl Into<Operations>,
    ) -> Result<(), StateError> {
        self.compose(key.as_ref().into(), &Change::Operate(operations.into()))
    }

    /// Adds the changes of another delta, each after any change of its key that is already in this
    /// one.
    ///
    /// # Errors
    ///
    /// [`StateError::Operation`] if this delta sets a key to a value that an operation of the other
    /// cannot be applied to; this delta is then unchanged.
    pub fn merge(&mut self, later: &Self) -> Result<(), StateError> {
        let mut merged = self.clone();
        for (key, change) in later.entries() {
            merged.compose(key.clone(), change)?;
        }
        *self = merged;
        Ok(())
    }

    /// The delta with its operations replaced by their results: only sets and removals are left.
    ///
    /// # Errors
    ///
    /// [`StateError::Operation`] names the first key whose operation cannot be applied to its
    /// value.
    pub fn resolved(&self, value_of: impl Fn(&str) -> Option<SharedValue>) -> Result<Self, StateError> {
        let mut resolved = self.clone();
        for (key, operations) in self.operations() {
            let value = operations.apply(value_of(key).as_ref());
            let value = value.map_err(|source| StateError::operation(key, source))?;
            resolved.set(key, value);
        }
        Ok(resolved)
    }

    /// A delta of these changes; of several changes of a key the last one counts.
    pub fn from_changes(changes: impl IntoIterator<Item = (Arc<str>, Change)>) -> Self {
        changes.into_iter().collect::<Changes>().into()
    }

    /// The same keys with other changes, or the first error.
    ///
    /// # Errors
    ///
    /// That of `change`.
    pub fn try_map<E>(
        &self,
        mut change: impl FnMut(&Arc<str>, &Change) -> Result<Change, E>,
    ) -> Result<Self, E> {
        let mut changes = Changes::default();
        for (key, before) in self.entries() {
            changes.push(key.clone(), change(key, before)?);
        }
        Ok(changes.into())
    }

    /// The operations alone, without the keys that are set or removed.
    #[must_use]
    pub fn only_operations(&self) -> Self {
        let is_operation = |(_, change): &(&Arc<str>, &Change)| matches!(change, Change::Operate(_));
        match self.entries().all(|entry| is_operation(&entry)) {
            true => self.clone(),
            false => {
                let entries = self.entries().filter(is_operation);
                Self::from_changes(entries.map(|(key, change)| (key.clone(), change.clone())))
            }
        }
    }

    /// Keeps the changes of the keys for which `keep` returns true.
    pub fn retain(&mut self, keep: impl FnMut(&str) -> bool) {
        if let Some(changes) = &mut self.changes {
            Arc::make_mut(changes).retain(keep);
        }
    }

    /// Makes a change after any change of the key that is already in the delta.
    pub(crate) fn compose(&mut self, key: Key, change: &Change) -> Result<(), StateError> {
        let both = match self.get(&key) {
            Some(earlier) => earlier.then(change).map_err(|source| StateError::operation(&key, source))?,
            None => change.clone(),
        };
        self.insert(key, both);
        Ok(())
    }

    pub(crate) fn insert(&mut self, key: Key, change: Change) -> Option<Change> {
        Arc::make_mut(self.changes.get_or_insert_default()).insert(key, change)
    }

    pub(crate) fn forget(&mut self, key: &str) -> Option<Change> {
        Arc::make_mut(self.changes.as_mut()?).remove(key)
    }

    /// The changes from `start` on, in key order.
    pub(crate) fn starting_at(&self, start: &str) -> impl Iterator<Item = (&Key, &Change)> + use<'_> {
        self.changes.as_ref().map(|changes| changes.starting_at(start)).into_iter().flatten()
    }

    /// The changes in key order, with the keys as the delta shares them: cloning one copies no
    /// text.
    pub fn entries(&self) -> impl Iterator<Item = (&Arc<str>, &Change)> {
        self.changes.as_deref().map_or_else(Iter::default, Changes::iter)
    }
}

impl From<Changes> for Delta {
    fn from(changes: Changes) -> Self {
        Self { changes: (changes.len() > 0).then(|| Arc::new(changes)) }
    }
}

/// Compares the changes: a delta that was emptied equals a new one.
impl PartialEq for Delta {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.entries().eq(other.entries())
    }
}

impl Eq for Delta {}

impl fmt::Debug for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.entries()).finish()
    }
}

impl<K: AsRef<str>, V: Into<SharedValue>> FromIterator<(K, V)> for Delta {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let changes: Changes = entries
            .into_iter()
            .map(|(key, value)| (Key::from(key.as_ref()), Change::Set(value.into())))
            .collect();
        changes.into()
    }
}

impl<K: AsRef<str>, V: Into<SharedValue>, const N: usize> From<[(K, V); N]> for Delta {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl From<Map<String, Value>> for Delta {
    fn from(map: Map<String, Value>) -> Self {
        map.into_iter().collect()
    }
}

/// An object as `json!` makes it: each field is a key that is set.
///
/// # Panics
///
/// If the value is not an object.
impl From<Value> for Delta {
    #[track_caller]
    fn from(value: Value) -> Self {
        match value {
            Value::Object(fields) => fields.into(),
            other => panic!("changes of state are an object, not {}", type_of(&other)),
        }
    }
}

impl From<&Self> for Delta {
    fn from(delta: &Self) -> Self {
        delta.clone()
    }
}

impl From<BTreeMap<String, SharedValue>> for Delta {
    fn from(map: BTreeMap<String, SharedValue>) -> Self {
        map.into_iter().collect()
    }
}
