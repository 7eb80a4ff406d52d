//! How the changes of an event are spelled.
//!
//! `stateDelta` has the keys that are set, and null for those that are removed, so that every
//! reader of ADK's events replays it. Removals are distinguished from nulls by the event's custom
//! metadata, see [`REMOVED`](super::REMOVED). Operations are only in events that are to be
//! appended, as `stateOps`; their results are in `stateDelta` of the committed event, and they stay
//! readable in its custom metadata, see [`Event::operations`]. An event holds them as they are, so
//! that a commit need not write them as JSON.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sessile_state::{Change, Delta, Operations, SharedValue};

use super::{Event, EventActions, OPERATIONS, OVERWROTE, REMOVED};
use crate::record::{Codec, Spell, Spelling};

/// The names under which operations are read and written, in both spellings.
const STATE_OPS: [&str; 2] = ["state_ops", "stateOps"];

/// The JSON of something that consists of JSON, with every digit of its numbers.
pub(crate) fn json_of<T: Serialize>(value: &T) -> SharedValue {
    let text = serde_json::to_string(value);
    match text.and_then(|text| SharedValue::from_json(&text)) {
        Ok(value) => value,
        Err(error) => unreachable!("it consists of JSON, and its depth was checked: {error}"),
    }
}

/// The object `stateDelta`: keys that are set.
pub(crate) struct SetKeys(BTreeMap<String, SharedValue>);

impl<'de> Deserialize<'de> for SetKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self)
    }
}

impl From<SetKeys> for Delta {
    fn from(SetKeys(keys): SetKeys) -> Self {
        keys.into()
    }
}

/// Operations are left out; the serializer of the event writes them.
impl Spell for Delta {
    fn spell<S: Serializer>(&self, _: Spelling, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, change) in self.iter() {
            match change {
                Change::Set(value) => map.serialize_entry(key, value)?,
                Change::Remove => map.serialize_entry(key, &Value::Null)?,
                Change::Operate(_) => {}
            }
        }
        map.end()
    }
}

impl Codec for EventActions {
    fn written(&self, spelling: Spelling) -> Option<Self> {
        let operations: BTreeMap<&str, &Operations> = self.state_delta.operations().collect();
        if operations.is_empty() {
            return None;
        }
        let name = match spelling {
            Spelling::Snake => STATE_OPS[0],
            Spelling::Camel => STATE_OPS[1],
        };
        let mut written = self.clone();
        written.unknown.insert(name.to_owned(), json_of(&operations));
        written.state_delta.retain(|key| !matches!(self.state_delta.get(key), Some(Change::Operate(_))));
        Some(written)
    }

    fn understood(&mut self) -> Result<(), String> {
        for name in STATE_OPS {
            if !self.unknown.contains_key(name) {
                continue;
            }
            let given = self.unknown.remove(name).unwrap_or_else(|| Value::Null.into());
            for (key, operations) in operations_of(&given)? {
                if self.state_delta.get(&key).is_some() {
                    return Err(format!("the key {key:?} is both set and operated on; choose one"));
                }
                self.state_delta.operate(key, operations);
            }
        }
        Ok(())
    }
}

/// Operations by key, as `stateOps` and the custom metadata have them.
pub(super) fn operations_of(given: &SharedValue) -> Result<Vec<(String, Operations)>, String> {
    if !given.is_object() {
        return Err("the operations are not an object of keys".to_owned());
    }
    let read = |(key, value): (String, SharedValue)| match Operations::from_json(&value) {
        Ok(operations) => Ok((key, operations)),
        Err(error) => Err(format!("the operation on {key:?} is invalid: {error}")),
    };
    given.to_fields().into_iter().map(read).collect()
}

impl Codec for Event {
    /// Removals and operations are in the custom metadata.
    fn written(&self, _: Spelling) -> Option<Self> {
        let removed: Vec<&str> = self.actions.state_delta.removed().collect();
        let listed = self.custom_metadata.as_ref().and_then(|metadata| metadata.get(REMOVED));
        let lists_removed = !removed.is_empty() && listed.is_none();
        if !lists_removed && self.intended.is_empty() {
            return None;
        }
        let mut written = self.clone();
        let operations = std::mem::take(&mut written.intended);
        let metadata = written.custom_metadata.get_or_insert_default();
        if lists_removed {
            metadata.insert(REMOVED.to_owned(), Value::from(removed).into());
        }
        if !operations.is_empty() {
            metadata.insert(OPERATIONS.to_owned(), operations_json(&operations));
        }
        Some(written)
    }

    /// A key that is listed as removed, and null, is removed. Operations that cannot be decoded
    /// stay as they are.
    fn understood(&mut self) -> Result<(), String> {
        let is_noted =
            |metadata: &BTreeMap<_, _>| metadata.contains_key(REMOVED) || metadata.contains_key(OPERATIONS);
        if !self.custom_metadata.as_ref().is_some_and(is_noted) {
            return Ok(());
        }
        let Some(metadata) = &mut self.extras.custom_metadata else { return Ok(()) };
        let listed = metadata.remove(REMOVED);
        if let Some(Ok(operations)) = metadata.get(OPERATIONS).map(operations_of) {
            metadata.remove(OPERATIONS);
            let changes =
                operations.into_iter().map(|(key, operations)| (key.into(), Change::Operate(operations)));
            self.intended = Delta::from_changes(changes);
        }
        if metadata.is_empty() {
            self.extras.custom_metadata = None;
        }
        let keys = listed.iter().filter_map(|keys| keys.as_array()).flatten().filter_map(Value::as_str);
        for key in keys {
            if matches!(self.actions.state_delta.get(key), Some(Change::Set(value)) if value.is_null()) {
                self.actions.state_delta.remove(key);
            }
        }
        Ok(())
    }
}

/// Operations by key as JSON.
pub(super) fn operations_json(operations: &Delta) -> SharedValue {
    let adds = |(_, operations): (&str, &Operations)| operations.iter().all(|one| one.name() == "add");
    let by_key = OperationsByKey(operations);
    // The items of lists may have more digits than a `Value` can hold.
    let exact = || json_of(&by_key);
    match operations.operations().all(adds) {
        true => SharedValue::from_serialize(&by_key).unwrap_or_else(|_| exact()),
        false => exact(),
    }
}

struct OperationsByKey<'a>(&'a Delta);

impl Serialize for OperationsByKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.operations())
    }
}

/// The intent of an event, and what it overwrote.
impl Event {
    /// The operations that a committed event was appended with, by key. Their results are in
    /// `actions.state_delta`; they are never executed again.
    pub fn operations(&self) -> BTreeMap<String, Operations> {
        self.intended.operations().map(|(key, operations)| (key.to_owned(), operations.clone())).collect()
    }

    /// Turns an event with operations into the one that is stored: results replace the operations,
    /// and what was overwritten is recorded.
    pub(crate) fn commit(&mut self, results: Delta, overwrote: Option<SharedValue>) {
        let intent = std::mem::replace(&mut self.actions.state_delta, results);
        self.intended = intent.only_operations();
        if let Some(overwrote) = overwrote {
            self.extras.custom_metadata.get_or_insert_default().insert(OVERWROTE.to_owned(), overwrote);
        }
    }

    /// The keys whose values this event overwrote although they were not what its writer had read,
    /// as they are in the custom metadata: `{key: {"read": …, "found": …}}`, where an absent value
    /// is left out. If several writers of the event overwrote the same key, such as tools that ran
    /// in parallel, there is a list of these objects.
    pub fn overwrote(&self) -> Option<&SharedValue> {
        self.custom_metadata.as_ref().and_then(|metadata| metadata.get(OVERWROTE))
    }

    /// The event as it was appended: with its operations, and without the metadata that the commit
    /// added.
    pub(crate) fn intent(&self) -> Self {
        let mut intent = self.result();
        if !self.intended.is_empty() {
            let delta = &mut intent.actions.state_delta;
            delta.retain(|key| self.intended.get(key).is_none());
            self.intended.operations().for_each(|(key, operations)| delta.operate(key, operations.clone()));
        }
        intent
    }

    /// The event as it was committed, without the metadata that the commit added. Empty metadata
    /// counts as absent.
    pub(crate) fn result(&self) -> Self {
        let mut result = self.clone();
        result.intended = Delta::new();
        if let Some(metadata) = &self.custom_metadata {
            let kept: BTreeMap<_, _> = metadata
                .iter()
                .filter(|(name, _)| !name.starts_with(RESERVED))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            result.custom_metadata = (!kept.is_empty()).then_some(kept);
        }
        result
    }

    /// A name of its custom metadata that only a commit may write, if there is one.
    pub(crate) fn reserved_metadata(&self) -> Option<&str> {
        if !self.intended.is_empty() {
            return Some(OPERATIONS);
        }
        let names = self.custom_metadata.iter().flat_map(|metadata| metadata.keys());
        names.map(String::as_str).find(|name| name.starts_with(RESERVED))
    }
}

/// The prefix of custom metadata names that only a commit may write.
const RESERVED: &str = "sessile:";
