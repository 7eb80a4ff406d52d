//! The history of shared state: each change, who made it, and what undoes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sessile_state::{Change, Delta, Operation, OperationError, SharedValue};
use smallvec::SmallVec;

use crate::key::SessionKey;
use crate::scope_write::ScopeWrite;
use crate::store::{StateMap, Version};

/// One change of the state of an application or a user.
///
/// Its size follows the change, not the values that it was applied to: of a list that grew, it holds how much was
/// added. A state at an earlier version is computed backwards from the current one, with [`undo`](Self::undo).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScopeChange {
    /// The version of the scope since this change.
    pub version: Version,
    /// When, in Unix seconds.
    pub time: f64,
    /// Who made it.
    pub by: ChangedBy,
    /// What was to be changed.
    pub change: Delta,
    /// What undoes it.
    #[serde(default, skip_serializing_if = "Undo::is_empty")]
    pub undo: Undo,
}

/// Who changed shared state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ChangedBy {
    /// An event of a session.
    Event {
        /// The session's user.
        user: String,
        /// The session's id.
        session: String,
        /// The event's id; empty if it was the creation of the session.
        event: String,
    },
    /// A write without a session.
    Request {
        /// The id of the request.
        request: String,
        /// The principal, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        principal: Option<String>,
    },
}

impl ChangedBy {
    /// An event of a session.
    pub fn event(key: &SessionKey, event: &str) -> Self {
        Self::Event { user: key.user().into(), session: key.id().into(), event: event.into() }
    }

    /// The creation of a session, which has no event.
    pub fn creation(key: &SessionKey) -> Self {
        Self::event(key, "")
    }

    /// A write without a session.
    pub fn request(write: &ScopeWrite) -> Self {
        let principal = write.principal.clone();
        Self::Request { request: write.request.clone(), principal }
    }

    /// Whether it is the write with this request id.
    pub fn is_request(&self, id: &str) -> bool {
        matches!(self, Self::Request { request, .. } if request == id)
    }
}

/// What undoes a change. A key that changed and is in none of these was absent before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Undo {
    /// The values before, by key. A list, because it is short and kept for every change.
    #[serde(default, skip_serializing_if = "SmallVec::is_empty", with = "by_key")]
    pub(crate) before: Before,
    /// How many items were added to the end of a list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub added: BTreeMap<String, usize>,
    /// The fields of an object that were there before and were set. Other fields that the operation sets were absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, BTreeMap<String, SharedValue>>,
}

/// The values of keys before a change. Most changes are of one key.
pub(crate) type Before = SmallVec<[(Arc<str>, SharedValue); 1]>;

impl Undo {
    fn is_empty(&self) -> bool {
        self.before.is_empty() && self.added.is_empty() && self.fields.is_empty()
    }

    /// What undoes a change that only sets and removes keys.
    pub(crate) fn of_plain(change: &Delta, state: &StateMap) -> Self {
        let before = change.entries().filter_map(|(key, _)| Some((key.clone(), state.get(&**key)?.clone())));
        Self { before: before.collect(), ..Self::default() }
    }

    /// Notes what undoes the change of a key from `before` to `after`.
    pub(crate) fn note(
        &mut self,
        key: &Arc<str>,
        change: &Change,
        before: Option<SharedValue>,
        after: Option<&SharedValue>,
    ) {
        let Some(before) = before else { return };
        if !matches!(change, Change::Operate(_)) {
            self.before.push((key.clone(), before));
            return;
        }
        match (&*before, after.and_then(|after| after.as_array())) {
            (Value::Array(list), Some(after)) => {
                self.added.insert(key.to_string(), after.len().saturating_sub(list.len()));
            }
            (Value::Object(_), _) => {
                let set = fields_set(change);
                let held = before.to_fields().into_iter().filter(|(name, _)| set.contains(name.as_str()));
                self.fields.insert(key.to_string(), held.collect());
            }
            _ => self.before.push((key.clone(), before)),
        }
    }
}

/// Values by key, written as an object.
mod by_key {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};
    use sessile_state::SharedValue;

    use super::Before;

    pub(super) fn serialize<S: Serializer>(
        values: &[(Arc<str>, SharedValue)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(values.iter().map(|(key, value)| (&**key, value)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Before, D::Error> {
        let values = BTreeMap::<String, SharedValue>::deserialize(deserializer)?;
        Ok(values.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

/// The fields of an object that operations set.
fn fields_set(change: &Change) -> BTreeSet<&str> {
    let Change::Operate(operations) = change else { return BTreeSet::new() };
    let fields = operations.iter().filter_map(Operation::fields).flatten();
    fields.map(|(name, _)| name.as_str()).collect()
}

impl ScopeChange {
    /// Makes a state what it was before this change.
    ///
    /// # Errors
    ///
    /// [`OperationError`] if a key is not of the type that this change left; the state is as it was then.
    pub fn undo(&self, state: &mut StateMap) -> Result<(), OperationError> {
        let mut restored = Vec::with_capacity(self.change.len());
        for (key, change) in self.change.iter() {
            restored.push((key, self.before(key, change, state.get(key))?));
        }
        for (key, before) in restored {
            match before {
                Some(value) => drop(state.insert(key.to_owned(), value)),
                None => drop(state.remove(key)),
            }
        }
        Ok(())
    }

    /// What a key held before this change, from what it holds since.
    fn before(
        &self,
        key: &str,
        change: &Change,
        now: Option<&SharedValue>,
    ) -> Result<Option<SharedValue>, OperationError> {
        if let Some((_, before)) = self.undo.before.iter().find(|(name, _)| **name == *key) {
            return Ok(Some(before.clone()));
        }
        if let Some(added) = self.undo.added.get(key) {
            Operation::append(NOTHING).apply(now)?; // only a list can be appended to
            let mut items = now.map_or_else(Vec::new, SharedValue::to_items);
            items.truncate(items.len().saturating_sub(*added));
            return Operation::append(items).apply(None).map(Some);
        }
        if let Some(held) = self.undo.fields.get(key) {
            Operation::union_fields([("", Value::Null)]).apply(now)?; // only an object has fields
            let set = fields_set(change);
            let fields = now.map_or_else(Vec::new, SharedValue::to_fields);
            let kept = fields.into_iter().filter_map(|(name, value)| match held.get(&name) {
                Some(before) => Some((name, before.clone())),
                None if set.contains(name.as_str()) => None,
                None => Some((name, value)),
            });
            return Operation::union_fields(kept).apply(None).map(Some);
        }
        Ok(None)
    }
}

const NOTHING: [Value; 0] = [];
