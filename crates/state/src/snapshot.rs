use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::change::Change;
use crate::delta::Delta;
use crate::key::{Key, derived_name, joined};
use crate::table::{Entries, SHARDS, shard_of};
use crate::value::SharedValue;

/// A consistent copy of a whole state at one moment.
///
/// Taking one copies no key and no value, and later changes of the state are not visible in it.
///
/// ```
/// use sessile_state::State;
///
/// let state = State::new();
/// state.set("step", "cart");
/// let before = state.snapshot();
/// state.set("step", "payment");
///
/// assert_eq!(before.get_raw("step").unwrap(), serde_json::json!("cart"));
/// ```
#[derive(Clone)]
pub struct Snapshot {
    tables: [Arc<Entries>; SHARDS],
    hasher: RandomState,
    index: Index,
}

impl Snapshot {
    pub(crate) fn new(tables: [Arc<Entries>; SHARDS], hasher: RandomState, index: Index) -> Self {
        Self { tables, hasher, index }
    }

    /// Lays the pending changes of a delta view over it; its operations are resolved already.
    pub(crate) fn overlaid(mut self, changes: Delta) -> Self {
        self.index.layers.push(changes);
        self
    }

    /// The value of a key; like [`State::get_raw`](crate::State::get_raw), it falls back to a
    /// computed variable.
    pub fn get_raw(&self, key: &str) -> Option<SharedValue> {
        self.find(key).or_else(|| joined(derived_name(key)?, |derived| self.find(derived)))
    }

    /// Whether [`get_raw`](Self::get_raw) finds something.
    pub fn contains(&self, key: &str) -> bool {
        self.get_raw(key).is_some()
    }

    /// The keys, in key order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.index.keys("").into_iter().map(|key| &**key)
    }

    /// Keys and values, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, SharedValue)> {
        self.keys().filter_map(|key| Some((key, self.find(key)?)))
    }

    /// Keys and values copied into a JSON object, in key order.
    pub fn to_map(&self) -> Map<String, Value> {
        self.iter().map(|(key, value)| (key.to_owned(), value.into_value())).collect()
    }

    /// The value of a key, if there is one and it reads as a `T`.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.get_raw(key)?.read().ok()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values set by the last few delta views.
    pub(crate) fn values_of_last(&self, views: usize) -> Delta {
        let mut delta = Delta::new();
        for layer in &self.index.layers[self.index.layers.len() - views..] {
            for (key, change) in layer.entries() {
                match change {
                    Change::Set(_) | Change::Operate(_) => delta.insert(key.clone(), change.clone()),
                    Change::Remove => delta.forget(key),
                };
            }
        }
        delta
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The value of exactly this key.
    pub(crate) fn find(&self, key: &str) -> Option<SharedValue> {
        match self.index.layers.iter().rev().find_map(|layer| layer.get(key)) {
            Some(Change::Set(value)) => Some(value.clone()),
            Some(Change::Remove) => None,
            Some(Change::Operate(_)) => unreachable!("a snapshot holds what operations come to"),
            None => {
                let hash = self.hasher.hash_one(key);
                self.tables[shard_of(hash)].get(hash, key).cloned().map(SharedValue::from)
            }
        }
    }
}

/// Shows the keys only, because values may be secret.
impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

/// The keys of a state at one moment, in order.
#[derive(Clone)]
pub(crate) struct Index {
    keys: Arc<BTreeSet<Key>>,
    /// Pending changes of delta views, the innermost view last.
    layers: Vec<Delta>,
}

impl Index {
    pub(crate) fn of(keys: Arc<BTreeSet<Key>>) -> Self {
        Self { keys, layers: Vec::new() }
    }

    pub(crate) fn overlaid(mut self, changes: Delta) -> Self {
        self.layers.push(changes);
        self
    }

    pub(crate) fn len(&self) -> usize {
        if self.layers.is_empty() { self.keys.len() } else { self.keys("").len() }
    }

    /// The keys that start with `prefix`; costs what it returns.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<&Key> {
        let keys = self
            .keys
            .range::<str, _>((Included(prefix), Unbounded))
            .take_while(|key| key.starts_with(prefix));
        if self.layers.is_empty() {
            return keys.collect();
        }
        let mut merged: BTreeMap<&str, &Key> = keys.map(|key| (&**key, key)).collect();
        for layer in &self.layers {
            for (key, change) in layer.starting_at(prefix).take_while(|(key, _)| key.starts_with(prefix)) {
                match change {
                    Change::Set(_) | Change::Operate(_) => merged.insert(key, key),
                    Change::Remove => merged.remove(&**key),
                };
            }
        }
        merged.into_values().collect()
    }
}
