//! A delta view: pending changes over another state.
//!
//! Its lock comes before those of the state below. No lock is held while waiting for a claim
//! below, or a closure that reads this view could never end.

use std::sync::Arc;

use crate::delta::{Change, Delta};
use crate::gate::{Blocked, Gate, Key};
use crate::node::{Node, Plan, WouldWait};
use crate::snapshot::{Index, Snapshot};
use crate::value::SharedValue;

pub(crate) struct Overlay {
    below: Arc<Node>,
    pending: Gate<Delta>,
}

impl Overlay {
    pub(crate) fn new(below: Arc<Node>) -> Self {
        Self { below, pending: Gate::new(Delta::new()) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<SharedValue> {
        match self.pending.lock().get(key) {
            Some(Change::Set(value)) => return Some(value.clone()),
            Some(Change::Remove) => return None,
            None => {}
        }
        self.below.get(key)
    }

    pub(crate) fn get_either(&self, key: &str, other: &str) -> Option<SharedValue> {
        let pending = self.pending.lock();
        match (pending.get(key), pending.get(other)) {
            (Some(Change::Set(value)), _) => Some(value.clone()),
            (Some(Change::Remove), Some(Change::Set(value))) => Some(value.clone()),
            (Some(Change::Remove), Some(Change::Remove)) => None,
            (Some(Change::Remove), None) => self.below.get(other),
            (None, Some(Change::Set(value))) => self.below.get(key).or_else(|| Some(value.clone())),
            (None, Some(Change::Remove)) => self.below.get(key),
            (None, None) => self.below.get_either(key, other),
        }
    }

    pub(crate) fn put(&self, key: &str, value: SharedValue) -> Result<(), Blocked> {
        self.pending.lock_for(key)?.insert(key.into(), Change::Set(value));
        Ok(())
    }

    pub(crate) fn take(&self, key: &str) -> Result<Option<SharedValue>, Blocked> {
        let mut pending = self.pending.lock_for(key)?;
        let old = self.current(&pending, key);
        self.remove(&mut pending, key);
        Ok(old)
    }

    pub(crate) fn claim(&self, key: &str) -> Result<(Key, Option<SharedValue>), Blocked> {
        let mut pending = self.pending.lock_for(key)?;
        let value = self.current(&pending, key);
        let key = Key::from(key);
        Gate::claim(&mut pending, key.clone());
        Ok((key, value))
    }

    pub(crate) fn release(&self, key: &Key, value: Option<SharedValue>) {
        let mut pending = self.pending.lock();
        if let Some(value) = value {
            pending.insert(key.clone(), Change::Set(value));
        }
        self.pending.release(&mut pending, key);
    }

    pub(crate) fn try_write(&self, plan: &mut Plan<'_>) -> Result<(), WouldWait> {
        let mut pending = self.pending.lock();
        let changes = plan(&|| self.below.snapshot().overlaid(pending.clone()));
        if let Some((key, _)) = changes.iter().find(|(key, _)| pending.claimed(key)) {
            return Err(WouldWait(key.clone()));
        }
        for (key, change) in changes {
            match change {
                Change::Set(_) => drop(pending.insert(key, change)),
                Change::Remove => self.remove(&mut pending, &key),
            }
        }
        Ok(())
    }

    pub(crate) fn wait_for(&self, key: &str) -> Result<(), Blocked> {
        self.pending.lock_for(key).map(drop)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let pending = self.pending.lock();
        self.below.snapshot().overlaid(pending.clone())
    }

    pub(crate) fn index(&self) -> Index {
        let pending = self.pending.lock();
        self.below.index().overlaid(pending.clone())
    }

    pub(crate) fn delta(&self) -> Delta {
        self.pending.lock().clone()
    }

    /// Moves all pending changes into the state below, at one moment.
    pub(crate) fn commit(&self) -> Result<(), Blocked> {
        loop {
            let mut pending = self.pending.lock_unclaimed()?;
            if pending.is_empty() {
                return Ok(());
            }
            let mut plan = |_: &dyn Fn() -> Snapshot| -> Vec<(Key, Change)> {
                pending.entries().map(|(key, change)| (key.clone(), change.clone())).collect()
            };
            match self.below.try_write(&mut plan) {
                Ok(()) => {
                    *pending = Delta::new();
                    return Ok(());
                }
                Err(WouldWait(key)) => {
                    drop(pending);
                    self.below.wait_for(&key)?;
                }
            }
        }
    }

    /// Forgets all pending changes.
    pub(crate) fn rollback(&self) -> Result<(), Blocked> {
        *self.pending.lock_unclaimed()? = Delta::new();
        Ok(())
    }

    fn current(&self, pending: &Delta, key: &str) -> Option<SharedValue> {
        match pending.get(key) {
            Some(Change::Set(value)) => Some(value.clone()),
            Some(Change::Remove) => None,
            None => self.below.get(key),
        }
    }

    /// Notes a removal. Removing what is not below leaves no note: there is nothing to remove.
    fn remove(&self, pending: &mut Delta, key: &str) {
        match self.below.get(key) {
            Some(_) => pending.insert(key.into(), Change::Remove),
            None => pending.forget(key),
        };
    }
}
