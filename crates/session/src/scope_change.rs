//! The history of shared state: each change, its author, and what undoes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sessile_state::{Change, Delta, Operation, OperationError, SharedValue};
use smallvec::SmallVec;

use crate::event::Event;
use crate::key::SessionKey;
use crate::state_map::StateMap;
use crate::version::Version;

/// One change of the state of an application or a user.
///
/// Its size is proportional to the change, not to the values that it was applied to: for a list
/// that grew, it holds the number of added items. A state at an earlier version is computed
/// backwards from the current one, with [`undo`](Self::undo).
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
    /// Of a write without a session whose guards report: the keys, prefixes included, that no
    /// longer held what the writer had read, each with what was `read` and what was `found`. An
    /// event reports this itself.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overwrote: OverwriteNotes,
}

/// What a write overwrote without having read it, by key with prefix: `{"read": …, "found": …}`.
/// Absence is left out, and a long value is reported by its length and digest.
pub type OverwriteNotes = BTreeMap<String, SharedValue>;

/// Who changed shared state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ChangedBy {
    /// A writer that bypasses Sessile: google-adk, or SQL by hand. Database triggers record it.
    External {
        /// What the database knows of the writer: its role and program on PostgreSQL; empty on
        /// SQLite.
        external: String,
        /// The user of the session, if the same transaction appended an event that has these
        /// changes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
        /// The session of that event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// That event's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<String>,
        /// That event's author.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
    },
    /// An event of a session.
    Event {
        /// The session's user.
        user: String,
        /// The session's id.
        session: String,
        /// The event's id; empty if it was the creation of the session.
        event: String,
        /// The event's author. It is kept here because the history outlives the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<String>,
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
    pub fn event(key: &SessionKey, event: &Event) -> Self {
        let author = Some(event.author.clone()).filter(|author| !author.is_empty());
        Self::Event { user: key.user().into(), session: key.id().into(), event: event.id.clone(), author }
    }

    /// The creation of a session, which has no event.
    pub fn creation(key: &SessionKey) -> Self {
        let (user, session) = (key.user().into(), key.id().into());
        Self::Event { user, session, event: String::new(), author: None }
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
    /// The fields of an object that were there before and were set. Other fields that the operation
    /// sets were absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, BTreeMap<String, SharedValue>>,
    /// Whether the state before is unknown, so that the change cannot be undone: the row was
    /// replaced without firing the triggers, or it was not valid JSON.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
}

/// The values of keys before a change. Most changes are of one key.
pub(crate) type Before = SmallVec<[(Arc<str>, SharedValue); 1]>;

impl Undo {
    fn is_empty(&self) -> bool {
        self.before.is_empty() && self.added.is_empty() && self.fields.is_empty() && !self.unknown
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
    /// Restores a state to what it was before this change.
    ///
    /// # Errors
    ///
    /// [`OperationError`] if a key is not of the type that this change left; the state is then
    /// unchanged.
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

    /// What a key held before this change, computed from what it held after it.
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

/// Reads the list of changes that a row of the history holds. Other programs can store JSON that no
/// value can hold, a lone surrogate for instance. Such a change is returned without its content, so
/// that the others stay readable.
///
/// # Errors
///
/// If it is not a list of changes.
pub fn changes_from_json(text: &str) -> Result<Vec<ScopeChange>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Outline<'a> {
        version: Version,
        time: f64,
        by: ChangedBy,
        #[serde(borrow)]
        change: &'a RawValue,
        #[serde(borrow, default)]
        undo: Option<&'a RawValue>,
    }
    let understood = |outline: Outline<'_>| {
        let Outline { version, time, by, change, undo } = outline;
        let change = serde_json::from_str(change.get())?;
        let undo = undo.map_or(Ok(Undo::default()), |undo| serde_json::from_str(undo.get()))?;
        Ok::<_, serde_json::Error>(ScopeChange {
            version,
            time,
            by,
            change,
            undo,
            overwrote: OverwriteNotes::new(),
        })
    };
    serde_json::from_str(text).or_else(|error| {
        let outlines: Vec<Outline<'_>> = serde_json::from_str(text)?;
        let readable = |outline: Outline<'_>| {
            let (version, time, by) = (outline.version, outline.time, outline.by.clone());
            let is_external = matches!(by, ChangedBy::External { .. });
            match understood(outline) {
                Err(_) if is_external => {
                    let undo = Undo { unknown: true, ..Undo::default() };
                    Some(ScopeChange {
                        version,
                        time,
                        by,
                        change: Delta::new(),
                        undo,
                        overwrote: OverwriteNotes::new(),
                    })
                }
                other => other.ok(),
            }
        };
        outlines.into_iter().map(readable).collect::<Option<_>>().ok_or(error)
    })
}

const NOTHING: [Value; 0] = [];
