//! A delta view: pending changes over another state.
//!
//! Lock order: its lock is acquired before those of the state below. No lock is held while waiting
//! for a claim below, because a closure that reads this view would deadlock.

use std::sync::Arc;

use crate::change::Change;
use crate::delta::Delta;
use crate::error::StateError;
use crate::gate::{Gate, GateGuard, Why};
use crate::key::Key;
use crate::node::{Claimed, Node};
use crate::operation::{Operation, Operations};
use crate::plan::{ATTEMPTS, Blocked, Plan};
use crate::reads::{Reads, Seen};
use crate::reducer::Reducer;
use crate::snapshot::{Index, Snapshot};
use crate::sync::{Mutex, lock};
use crate::value::{SharedValue, Slot};

pub(crate) struct Overlay {
    below: Arc<Node>,
    pending: Gate<Delta, Key>,
    /// How many views there are from here down, this one included.
    depth: usize,
    /// What was read below, if the view tracks reads. Its lock is acquired after that of `pending`.
    seen: Option<Mutex<Seen>>,
    /// Whether reads are repeatable: a key that was read shows the same value from then on.
    repeats: bool,
}

/// Why a value below is looked up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is returned to the caller, which may compute from it.
    Read,
    /// Only to see whether an operation can be applied to it.
    Check,
}

/// How many views may be stacked. Reads recurse through all of them.
const MAX_DEPTH: usize = 100;

impl Overlay {
    /// # Panics
    ///
    /// If too many views are stacked.
    #[track_caller]
    pub(crate) fn new(below: Arc<Node>, keeps_reads: bool) -> Self {
        let depth = 1 + below.depth();
        assert!(depth <= MAX_DEPTH, "more than {MAX_DEPTH} delta views are stacked; commit some of them");
        let seen = keeps_reads.then(Mutex::default);
        Self { below, pending: Gate::new(Delta::new()), depth, seen, repeats: true }
    }

    /// With reads that always return the current value below.
    pub(crate) fn with_latest_reads(self) -> Self {
        Self { repeats: false, ..self }
    }

    /// What was read through this view, as it was first read.
    pub(crate) fn reads(&self) -> Reads {
        self.seen.as_ref().map_or_else(Reads::default, |seen| lock(seen).reads())
    }

    /// Counts a key as read with this value.
    pub(crate) fn mark_read(&self, key: &str, value: Option<SharedValue>) {
        if let Some(seen) = &self.seen {
            lock(seen).put(key, value);
        }
    }

    /// Records that all keys were listed, here and in the views below.
    pub(crate) fn note_listing(&self) {
        if let Some(seen) = &self.seen {
            lock(seen).everything = true;
        }
        self.below.note_listing();
    }

    /// Forgets what was read, after the pending changes were committed or rolled back.
    fn forget_reads(&self) {
        if let Some(seen) = &self.seen {
            *lock(seen) = Seen::default();
        }
    }

    /// The value of a key in the state below. A view that tracks reads looks it up once and returns
    /// the same value from then on, so that callers compute from exactly the value that is reported
    /// as read.
    fn beneath(&self, key: &str, why: Use) -> Option<Slot> {
        let look = || match why {
            Use::Read => self.below.get(key),
            Use::Check => self.below.peek(key),
        };
        match &self.seen {
            None => look(),
            Some(seen) if !self.repeats => {
                let value = look();
                if why == Use::Read {
                    lock(seen).put(key, value.clone().map(SharedValue::from));
                }
                value
            }
            Some(seen) => {
                let value = lock(seen).look(key, why == Use::Read, look);
                value.map(Slot::from)
            }
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// How many views there are from here down to `node`, this one included, if it stands on it.
    pub(crate) fn views_above(&self, node: &Arc<Node>) -> Option<usize> {
        if Arc::ptr_eq(&self.below, node) {
            return Some(1);
        }
        match &*self.below {
            Node::Base(_) => None,
            Node::Overlay(below) => below.views_above(node).map(|views| views + 1),
        }
    }

    /// The lock is held until the state below was read. Otherwise a commit in between would move
    /// the key out of the delta, and the read would miss it.
    pub(crate) fn get(&self, key: &str) -> Option<Slot> {
        self.current(&self.pending.lock(), key, Use::Read)
    }

    /// The value of a key without counting it as read.
    pub(crate) fn peek(&self, key: &str) -> Option<Slot> {
        self.current(&self.pending.lock(), key, Use::Check)
    }

    pub(crate) fn get_either(&self, key: &str, other: &str) -> Option<Slot> {
        let pending = self.pending.lock();
        if self.seen.is_some() {
            let first = self.current(&pending, key, Use::Read);
            return first.or_else(|| self.current(&pending, other, Use::Read));
        }
        match (pending.get(key), pending.get(other)) {
            (Some(Change::Set(value)), _) => Some(value.clone().into()),
            (Some(Change::Remove), Some(Change::Set(value))) => Some(value.clone().into()),
            (Some(Change::Remove), Some(Change::Remove)) => None,
            (Some(Change::Remove), None) => self.below.get(other),
            (None, Some(Change::Set(value))) => self.below.get(key).or_else(|| Some(value.clone().into())),
            (None, Some(Change::Remove)) => self.below.get(key),
            (None, None) => self.below.get_either(key, other),
            (Some(Change::Operate(_)), _) | (_, Some(Change::Operate(_))) => {
                let first = self.current(&pending, key, Use::Read);
                first.or_else(|| self.current(&pending, other, Use::Read))
            }
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
        let old = self.current(&pending, &key, Use::Read);
        if old.is_some() {
            pending.insert(key, Change::Remove);
        }
        Ok(old)
    }

    /// Operates on one key, if the operations can be applied to what the view shows now and `check`
    /// accepts what becomes of it. They stay operations until the view is committed into a base.
    pub(crate) fn operate(
        &self,
        key: &str,
        operations: &Operations,
        check: &dyn Fn(&SharedValue) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let key = Key::from(key);
        let mut pending = self.pending.lock_for(&key).map_err(|why| why.on(&key))?;
        let shown = self.current(&pending, &key, Use::Check).map(SharedValue::from);
        let value = operations.apply(shown.as_ref()).map_err(|source| StateError::operation(&key, source))?;
        check(&value)?;
        pending.compose(key, &Change::Operate(operations.clone()))
    }

    /// Makes the view show a value under a key by an operation of the key's reducer.
    pub(crate) fn reduce(&self, key: &str, reducer: Reducer, value: &SharedValue) -> Result<(), StateError> {
        let key = Key::from(key);
        let mut pending = self.pending.lock_for(&key).map_err(|why| why.on(&key))?;
        let shown = self.current(&pending, &key, Use::Check).map(SharedValue::from);
        match reducer.difference(&key, shown.as_ref(), value)? {
            Some(operation) => pending.compose(key, &Change::Operate(operation.into())),
            None => Ok(()),
        }
    }

    pub(crate) fn claim(&self, key: &str) -> Result<Option<Slot>, Why> {
        let key = Key::from(key);
        let mut pending = self.pending.lock_for(&key)?;
        let value = self.current(&pending, &key, Use::Read);
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

    /// Ends a claim with an operation; what the key shows has not changed since the claim.
    pub(crate) fn release_operating(&self, key: &str, operation: Operation) -> Result<(), StateError> {
        let key = Key::from(key);
        let mut pending = self.pending.lock();
        self.pending.release(&mut pending, &key);
        pending.compose(key, &Change::Operate(operation.into()))
    }

    pub(crate) fn try_apply(&self, delta: &Delta, mine: bool) -> Result<(), Blocked> {
        Self::try_write_locked(self.pending.lock(), delta, mine)
    }

    pub(crate) fn try_write(&self, plan: &mut Plan<'_>, mine: bool) -> Result<(), Blocked> {
        let pending = self.pending.lock();
        let delta = plan(&self.shown(&pending));
        Self::try_write_locked(pending, &delta, mine)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.shown(&self.pending.lock())
    }

    pub(crate) fn index(&self) -> Index {
        let pending = self.pending.lock();
        match pending.has_operations() {
            true => self.shown(&pending).index().clone(),
            false => self.below.index().overlaid(pending.clone()),
        }
    }

    /// What the view shows: operations are shown as what they come to.
    fn shown(&self, pending: &Delta) -> Snapshot {
        let below = self.below.snapshot();
        let mut changes = pending.clone();
        for (key, operations) in pending.operations() {
            match operations.apply(below.find(key).as_ref()) {
                Ok(value) => changes.set(key, value),
                // The value below changed, so that the commit will fail. Until then the view shows
                // that value.
                Err(_) => drop(changes.forget(key)),
            }
        }
        below.overlaid(changes)
    }

    pub(crate) fn delta(&self) -> Delta {
        self.pending.lock().clone()
    }

    /// Makes changes in the state below that `plan` decides on.
    pub(crate) fn write_below(&self, plan: &mut Plan<'_>) -> Result<(), StateError> {
        self.below.write(plan)
    }

    /// Moves all pending changes into the state below, atomically. The result of a `modify` of this
    /// view that is in progress becomes a new pending change.
    pub(crate) fn commit(&self) -> Result<(), StateError> {
        let mut pending = self.pending.lock();
        let applied = match pending.is_empty() {
            true => Ok(()),
            false => self.below.try_apply(&pending, false),
        };
        match applied {
            Ok(()) => {
                *pending = Delta::new();
                self.forget_reads();
                return Ok(());
            }
            Err(Blocked::Refused(error)) => return Err(error),
            Err(Blocked::Claimed) => drop(pending),
        }
        // Claim the keys one by one, waiting for each without holding this view's lock.
        for _ in 0..ATTEMPTS {
            let expected = self.delta();
            let claims: Vec<Claimed<'_>> =
                expected.entries().map(|(key, _)| self.below.claim(key)).collect::<Result<_, _>>()?;
            let mut pending = self.pending.lock();
            let applied = self.below.try_apply(&pending, true);
            if applied.is_ok() {
                *pending = Delta::new();
                self.forget_reads();
            }
            drop((pending, claims));
            match applied {
                Ok(()) => return Ok(()),
                Err(Blocked::Refused(error)) => return Err(error),
                Err(Blocked::Claimed) => {}
            }
        }
        Err(Why::TimedOut.on(self.delta().entries().next().map_or("", |(key, _)| key)))
    }

    /// Discards all pending changes, after waiting for every `modify` of this view that is in
    /// progress: its result may be computed from a discarded value.
    pub(crate) fn rollback(&self) -> Result<(), StateError> {
        match self.pending.lock_unclaimed() {
            Ok(mut pending) => {
                *pending = Delta::new();
                self.forget_reads();
                Ok(())
            }
            Err((why, key)) => Err(why.on(key.as_deref().unwrap_or(""))),
        }
    }

    fn try_write_locked(
        mut pending: GateGuard<'_, Delta, Key>,
        delta: &Delta,
        mine: bool,
    ) -> Result<(), Blocked> {
        if delta.entries().any(|(key, _)| pending.claimed(key, mine)) {
            return Err(Blocked::Claimed);
        }
        match delta.has_operations() {
            true => pending.merge(delta).map_err(Blocked::Refused),
            false => {
                for (key, change) in delta.entries() {
                    pending.insert(key.clone(), change.clone());
                }
                Ok(())
            }
        }
    }

    fn current(&self, pending: &Delta, key: &str, why: Use) -> Option<Slot> {
        match pending.get(key) {
            Some(Change::Set(value)) => Some(value.clone().into()),
            Some(Change::Remove) => None,
            Some(Change::Operate(operations)) => {
                let below = self.beneath(key, why).map(SharedValue::from);
                match operations.apply(below.as_ref()) {
                    Ok(value) => Some(value.into()),
                    // The value below changed, so that the commit will fail. Until then the view
                    // shows that value.
                    Err(_) => below.map(Slot::from),
                }
            }
            None => self.beneath(key, why),
        }
    }
}
