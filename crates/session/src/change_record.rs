//! A change of shared state for readers: what each key held before and after it.

use std::collections::BTreeMap;

use serde::Serialize;
use sessile_state::{Change, Operations, SharedValue};

use crate::scope_change::{ChangedBy, OverwriteNotes, ScopeChange};
use crate::version::Version;

/// A change of shared state, key by key; its JSON is what the server and the command line return.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeRecord<'a> {
    /// The version of the scope since this change.
    pub version: Version,
    /// When, in Unix seconds.
    pub time: f64,
    /// The author; left out for readers without permission to see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<&'a ChangedBy>,
    /// The keys that changed, without their prefix.
    pub keys: BTreeMap<&'a str, KeyChange<'a>>,
    /// Values that a direct write overwrote without having read them.
    #[serde(skip_serializing_if = "is_nothing")]
    pub overwrote: &'a OverwriteNotes,
}

/// What became of one key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyChange<'a> {
    /// What it held before; `None` if it was absent, or if the change does not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<SharedValue>,
    /// What it held after; `None` if it was removed, or if the change does not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<SharedValue>,
    /// The operations, if the key was operated on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<&'a Operations>,
    /// Whether the whole values are not recorded: the change is stored as what it added to a list
    /// or an object, or the state before it is unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

impl ScopeChange {
    /// The change, key by key.
    pub fn record(&self) -> ChangeRecord<'_> {
        let keys = self.change.iter().map(|(key, change)| (key, self.key_change(key, change)));
        let (version, time, overwrote) = (self.version, self.time, &self.overwrote);
        ChangeRecord { version, time, by: Some(&self.by), keys: keys.collect(), overwrote }
    }

    fn key_change<'a>(&'a self, key: &str, change: &'a Change) -> KeyChange<'a> {
        let before = self.undo.before.iter().find(|(name, _)| **name == *key).map(|(_, value)| value.clone());
        let is_kept_as_added = self.undo.added.contains_key(key) || self.undo.fields.contains_key(key);
        match change {
            Change::Set(value) => {
                KeyChange { before, after: Some(value.clone()), ops: None, partial: self.undo.unknown }
            }
            Change::Remove => KeyChange { before, after: None, ops: None, partial: self.undo.unknown },
            Change::Operate(operations) if is_kept_as_added => {
                KeyChange { before: None, after: None, ops: Some(operations), partial: true }
            }
            Change::Operate(operations) => match change.apply(before.as_ref()) {
                Ok(after) => KeyChange { before, after, ops: Some(operations), partial: false },
                Err(_) => KeyChange { before, after: None, ops: Some(operations), partial: true },
            },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
fn is_nothing(overwrote: &&OverwriteNotes) -> bool {
    overwrote.is_empty()
}
