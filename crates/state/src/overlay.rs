//! A delta view: pending changes over another state.
//!
//! Its lock comes before those of the state below. No lock is held while waiting for a claim
//! below, or a closure that reads this view could never end.

use std::sync::Arc;

use crate::delta::{Change, Delta};
use crate::error::StateError;
use crate::gate::{Gate, GateGuard, Why};
use crate::node::{Key, Node, Plan, WouldWait};
use crate::snapshot::{Index, Snapshot};
use crate::value::Slot;

pub(crate) struct Overlay {
    below: Arc<Node>,
    pending: Gate<Delta, Key>,
}

impl Overlay {
    pub(crate) fn new(below: Arc<Node>) -> Self {
        Self { below, pending: Gate::new(Delta::new()) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Slot> {
        match self.pending.lock().get(key) {
            Some(Change::Set(value)) => return Some(value.clone().into()),
            Some(Change::Remove) => return None,
            None => {}
        }
        self.below.get(key)
    }

    pub(crate) fn get_either(&self, key: &str, other: &str) -> Option<Slot> {
        let pending = self.pending.lock();
        match (pending.get(key), pending.get(other)) {
            (Some(Change::Set(value)), _) => Some(value.clone().into()),
            (Some(Change::Remove), Some(Change::Set(value))) => Some(value.clone().into()),
            (Some(Change::Remove), Some(Change::Remove)) => None,
            (Some(Change::Remove), None) => self.below.get(other),
            (None, Some(Change::Set(value))) => self.below.get(key).or_else(|| Some(value.clone().into())),
            (None, Some(Change::Remove)) => self.below.get(key),
            (None, None) => self.below.get_either(key, other),
        }
    }

    pub(crate) fn put(&self, key: &str, value: Slot) -> Result<(), Why> {
        let key = Key::from(key);
        self.pending.lock_for(&key)?.insert(key, Change::Set(value.into()));
        Ok(())
    }

    pub(crate) fn take(&self, key: &str) -> Result<Option<Slot>, Why> {
        let key = Key::from(key);
        let mut pending = self.pending.lock_for(&key)?;
        let old = self.current(&pending, &key);
        self.remove(&mut pending, key);
        Ok(old)
    }

    pub(crate) fn claim(&self, key: &str) -> Result<Option<Slot>, Why> {
        let key = Key::from(key);
        let mut pending = self.pending.lock_for(&key)?;
        let value = self.current(&pending, &key);
        pending.claim(key);
        Ok(value)
    }

    pub(crate) fn release(&self, key: &str, value: Option<Slot>) {
        let key = Key::from(key);
        let mut pending = self.pending.lock();
        self.pending.release(&mut pending, &key);
        if let Some(value) = value {
            pending.insert(key, Change::Set(value.into()));
        }
    }

    pub(crate) fn try_apply(&self, delta: &Delta) -> Result<(), WouldWait> {
        self.try_write_locked(self.pending.lock(), delta)
    }

    pub(crate) fn try_write(&self, plan: &mut Plan<'_>) -> Result<(), WouldWait> {
        let pending = self.pending.lock();
        let delta = plan(&self.below.snapshot().overlaid(pending.clone()));
        self.try_write_locked(pending, &delta)
    }

    pub(crate) fn wait_for(&self, key: &str) -> Result<(), Why> {
        self.pending.lock_for(&Key::from(key)).map(drop)
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
    pub(crate) fn commit(&self) -> Result<(), StateError> {
        loop {
            let mut pending = self.unclaimed()?;
            if pending.is_empty() {
                return Ok(());
            }
            match self.below.try_apply(&pending) {
                Ok(()) => {
                    *pending = Delta::new();
                    return Ok(());
                }
                Err(WouldWait(key)) => {
                    drop(pending);
                    self.below.wait_for(&key).map_err(|why| why.on(&key))?;
                }
            }
        }
    }

    /// Forgets all pending changes.
    pub(crate) fn rollback(&self) -> Result<(), StateError> {
        *self.unclaimed()? = Delta::new();
        Ok(())
    }

    fn unclaimed(&self) -> Result<GateGuard<'_, Delta, Key>, StateError> {
        self.pending.lock_unclaimed().map_err(|(why, key)| why.on(&key))
    }

    fn try_write_locked(
        &self,
        mut pending: GateGuard<'_, Delta, Key>,
        delta: &Delta,
    ) -> Result<(), WouldWait> {
        if let Some((key, _)) = delta.entries().find(|(key, _)| pending.claimed(key)) {
            return Err(WouldWait(key.clone()));
        }
        for (key, change) in delta.entries() {
            match change {
                Change::Set(_) => drop(pending.insert(key.clone(), change.clone())),
                Change::Remove => self.remove(&mut pending, key.clone()),
            }
        }
        Ok(())
    }

    fn current(&self, pending: &Delta, key: &str) -> Option<Slot> {
        match pending.get(key) {
            Some(Change::Set(value)) => Some(value.clone().into()),
            Some(Change::Remove) => None,
            None => self.below.get(key),
        }
    }

    /// Notes a removal. Removing what is not below leaves no note: there is nothing to remove.
    fn remove(&self, pending: &mut Delta, key: Key) {
        match self.below.get(&key) {
            Some(_) => pending.insert(key, Change::Remove),
            None => pending.forget(&key),
        };
    }
}
