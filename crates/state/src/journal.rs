//! The changes and reads of a base that are noted while a [`Recorder`](crate::Recorder) exists.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::change::Change;
use crate::delta::Delta;
use crate::key::Key;
use crate::operation::Operations;
use crate::sync::{Mutex, MutexGuard, lock};
use crate::value::SharedValue;

/// What was recorded since the last [`Recorder::take`](crate::Recorder::take).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recorded {
    /// What changed.
    pub delta: Delta,
    /// The keys that were read before they were set or removed, with the values that were read;
    /// `None` if the key was absent. A key that was set without being read is not among them.
    pub reads: BTreeMap<String, Option<SharedValue>>,
}

/// What a base has noted. In the lock order it comes after the shards and the index.
#[derive(Default)]
pub(crate) struct Journal {
    /// Checked before the lock is acquired, so that a state that is not recorded pays almost
    /// nothing.
    is_on: AtomicBool,
    noted: Mutex<Noted>,
}

#[derive(Default)]
pub(crate) struct Noted {
    keep: Option<fn(&str) -> bool>,
    delta: Delta,
    /// What keys with pending operations held before the first of those operations.
    under: BTreeMap<Key, Option<SharedValue>>,
    /// The first value that was read of each key, unless the key had been set or removed before.
    reads: BTreeMap<String, Option<SharedValue>>,
    /// Reads from before the last [`Recorder::take`](crate::Recorder::take), of keys that were not
    /// written: a task may have read a key before it and set the key after it.
    reads_before: BTreeMap<String, Option<SharedValue>>,
}

impl Journal {
    pub(crate) fn begin(&self, keep: fn(&str) -> bool) -> bool {
        let mut noted = lock(&self.noted);
        if noted.keep.is_some() {
            return false;
        }
        *noted = Noted { keep: Some(keep), ..Noted::default() };
        self.is_on.store(true, Ordering::Release);
        true
    }

    pub(crate) fn end(&self) {
        self.is_on.store(false, Ordering::Release);
        *lock(&self.noted) = Noted::default();
    }

    pub(crate) fn take(&self) -> Recorded {
        let mut noted = lock(&self.noted);
        let delta = std::mem::take(&mut noted.delta);
        noted.under.clear();
        let mut reads = std::mem::take(&mut noted.reads);
        let mut before = std::mem::take(&mut noted.reads_before);
        let mut computed_from = BTreeMap::new();
        for (key, change) in delta.iter() {
            let read = reads.remove(key).or_else(|| before.remove(key));
            if let (Some(read), Change::Set(_) | Change::Remove) = (read, change) {
                computed_from.insert(key.to_owned(), read);
            }
        }
        noted.reads_before = reads;
        Recorded { delta, reads: computed_from }
    }

    pub(crate) fn mark_read(&self, key: &str, value: Option<SharedValue>) {
        lock(&self.noted).reads.insert(key.to_owned(), value);
    }

    /// What is noted, if the state is recorded.
    #[inline]
    pub(crate) fn noted(&self) -> Option<MutexGuard<'_, Noted>> {
        if !self.is_on.load(Ordering::Acquire) {
            return None;
        }
        Some(lock(&self.noted))
    }

    #[inline]
    pub(crate) fn noted_for(&self, key: &str) -> Option<MutexGuard<'_, Noted>> {
        self.noted().filter(|noted| noted.keeps(key))
    }
}

impl Noted {
    pub(crate) fn keeps(&self, key: &str) -> bool {
        self.keep.is_some_and(|keep| keep(key))
    }

    /// A key was read, and held this.
    pub(crate) fn read(&mut self, key: &str, value: impl FnOnce() -> Option<SharedValue>) {
        if self.reads.contains_key(key) {
            return;
        }
        let read = match self.delta.get(key) {
            Some(Change::Set(_) | Change::Remove) => return, // the value comes from the recorded changes themselves
            Some(Change::Operate(_)) => self.under.get(key).cloned().flatten(),
            None => value(),
        };
        self.reads.insert(key.to_owned(), read);
    }

    /// A key is about to be changed by a closure that gets this value, so this value replaces what
    /// was read before.
    pub(crate) fn claimed(&mut self, key: &str, value: impl FnOnce() -> Option<SharedValue>) {
        if !matches!(self.delta.get(key), Some(Change::Set(_) | Change::Remove)) {
            self.reads.remove(key);
            self.read(key, value);
        }
    }

    pub(crate) fn set(&mut self, key: &str, value: SharedValue) {
        self.under.remove(key);
        self.delta.insert(key.into(), Change::Set(value));
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.under.remove(key);
        self.delta.insert(key.into(), Change::Remove);
    }

    /// A key was operated on: it held `before` and holds `after`.
    pub(crate) fn operate(
        &mut self,
        key: &Key,
        operations: &Operations,
        before: Option<SharedValue>,
        after: SharedValue,
    ) {
        let change = match self.delta.get(key) {
            Some(Change::Set(_) | Change::Remove) => Change::Set(after),
            Some(Change::Operate(earlier)) => {
                let mut all = earlier.clone();
                all.extend_joining(operations);
                Change::Operate(all)
            }
            None => {
                self.under.insert(key.clone(), before);
                Change::Operate(operations.clone())
            }
        };
        self.delta.insert(key.clone(), change);
    }

    /// What a key must show after `committed` was committed elsewhere; `None` if it keeps its
    /// value.
    pub(crate) fn shown(
        &mut self,
        key: &Key,
        committed: &Option<SharedValue>,
    ) -> Option<Option<SharedValue>> {
        match self.delta.get(key) {
            None => Some(committed.clone()),
            Some(Change::Set(_) | Change::Remove) => None,
            Some(Change::Operate(operations)) => {
                // Operations that cannot be applied are refused when they are committed. Until then
                // the key keeps its value.
                let value = operations.apply(committed.as_ref()).ok()?;
                self.under.insert(key.clone(), committed.clone());
                Some(Some(value))
            }
        }
    }
}

/// Keys and values in the form that deltas share.
pub(crate) fn as_keys(values: BTreeMap<String, Option<SharedValue>>) -> Vec<(Key, Option<SharedValue>)> {
    values.into_iter().map(|(key, value)| (Arc::from(key), value)).collect()
}
