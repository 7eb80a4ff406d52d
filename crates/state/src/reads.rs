//! What was read through a view, so that a commit can be compared with it.

use std::collections::BTreeMap;

use crate::scope::Scope;
use crate::value::{SharedValue, Slot};

/// The keys that were read through a view made by
/// [`State::with_read_tracking`](crate::State::with_read_tracking), and their values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reads {
    values: BTreeMap<String, Option<SharedValue>>,
    everything: bool,
}

impl Reads {
    /// Whether all keys were listed, by `keys`, `to_map` and their like.
    pub fn is_everything(&self) -> bool {
        self.everything
    }

    /// The keys that were read one by one and the values below the view when they were first read,
    /// in key order; `None` if the key was absent.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&SharedValue>)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_ref()))
    }

    /// The value below the view when the key was first read, if it was read; inside, `None` if it
    /// was absent.
    pub fn get(&self, key: &str) -> Option<Option<&SharedValue>> {
        self.values.get(key).map(Option::as_ref)
    }

    /// Whether a key of this scope was read, or all keys were listed.
    pub fn contains(&self, scope: Scope) -> bool {
        self.everything || self.values.keys().any(|key| Scope::of(key).0 == scope)
    }
}

/// What a view has looked up in the state below it, with the values it found.
#[derive(Default)]
pub(crate) struct Seen {
    values: BTreeMap<String, SeenValue>,
    /// Whether all keys were listed, so that every key matters.
    pub(crate) everything: bool,
}

struct SeenValue {
    value: Option<SharedValue>,
    /// Whether it was returned to the caller. An operation only checks whether it can be applied.
    is_read: bool,
}

impl Seen {
    /// The value that was found first, looked up now if it is the first time.
    pub(crate) fn look(
        &mut self,
        key: &str,
        is_read: bool,
        look: impl FnOnce() -> Option<Slot>,
    ) -> Option<SharedValue> {
        if let Some(seen) = self.values.get_mut(key) {
            seen.is_read |= is_read;
            return seen.value.clone();
        }
        let value = look().map(SharedValue::from);
        self.values.insert(key.to_owned(), SeenValue { value: value.clone(), is_read });
        value
    }

    pub(crate) fn put(&mut self, key: &str, value: Option<SharedValue>) {
        self.values.insert(key.to_owned(), SeenValue { value, is_read: true });
    }

    pub(crate) fn reads(&self) -> Reads {
        let read = self.values.iter().filter(|(_, seen)| seen.is_read);
        let values = read.map(|(key, seen)| (key.clone(), seen.value.clone())).collect();
        Reads { values, everything: self.everything }
    }
}
