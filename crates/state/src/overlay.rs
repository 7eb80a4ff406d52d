//! A delta view: pending changes over another state.
//!
//! Its lock comes before those of the state below. No lock is held while waiting for a claim
//! below, or a closure that reads this view could never end.

use std::sync::Arc;

use crate::delta::{Change, Delta};
use crate::error::StateError;
use crate::gate::{Gate, GateGuard, Why};
use crate::node::{ATTEMPTS, Blocked, Claimed, Key, Node, Plan};
use crate::operation::Operations;
use crate::snapshot::{Index, Snapshot};
use crate::value::{SharedValue, Slot};

pub(crate) struct Overlay {
    below: Arc<Node>,
    pending: Gate<Delta, Key>,
    /// How many views there are from here down, this one included.
    depth: usize,
}

/// How many views may stand on each other: reads go down through all of them.
const MAX_DEPTH: usize = 100;

impl Overlay {
    /// # Panics
    ///
    /// If too many views would stand on each other.
    #[track_caller]
    pub(crate) fn new(below: Arc<Node>) -> Self {
        let depth = 1 + below.depth();
        assert!(
            depth <= MAX_DEPTH,
            "more than {MAX_DEPTH} delta views stand on each other; commit some of them"
        );
        Self { below, pending: Gate::new(Delta::new()), depth }
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

    /// The lock is held until what is below is read, or a commit in between would hide the key.
    pub(crate) fn get(&self, key: &str) -> Option<Slot> {
        self.current(&self.pending.lock(), key)
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
            (Some(Change::Operate(_)), _) | (_, Some(Change::Operate(_))) => {
                self.current(&pending, key).or_else(|| self.current(&pending, other))
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
        let old = self.current(&pending, &key);
        if old.is_some() {
            pending.insert(key, Change::Remove);
        }
        Ok(old)
    }

    /// Operates on one key, if the operations can be applied to what the view shows now and `check` accepts what
    /// becomes of it. They stay operations until the view is committed into a base.
    pub(crate) fn operate(
        &self,
        key: &str,
        operations: &Operations,
        check: &dyn Fn(&SharedValue) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let key = Key::from(key);
        let mut pending = self.pending.lock_for(&key).map_err(|why| why.on(&key))?;
        let shown = self.current(&pending, &key).map(SharedValue::from);
        let value = operations.apply(shown.as_ref()).map_err(|source| StateError::operation(&key, source))?;
        check(&value)?;
        pending.compose(key, &Change::Operate(operations.clone()))
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
                // What is below has changed so that the commit will be refused; until then it shows as it is.
                Err(_) => drop(changes.forget(key)),
            }
        }
        below.overlaid(changes)
    }

    pub(crate) fn delta(&self) -> Delta {
        self.pending.lock().clone()
    }

    /// Whether the key is set or removed here.
    pub(crate) fn replaces(&self, key: &str) -> bool {
        matches!(self.pending.lock().get(key), Some(Change::Set(_) | Change::Remove))
    }

    /// Moves all pending changes into the state below, at one moment. A `modify` of this view that
    /// is in progress comes after it, and its result is pending again.
    pub(crate) fn commit(&self) -> Result<(), StateError> {
        let mut pending = self.pending.lock();
        let applied = match pending.is_empty() {
            true => Ok(()),
            false => self.below.try_apply(&pending, false),
        };
        match applied {
            Ok(()) => {
                *pending = Delta::new();
                return Ok(());
            }
            Err(Blocked::Refused(error)) => return Err(error),
            Err(Blocked::Claimed) => drop(pending),
        }
        // Claim by claim, each waited for in its turn and without this view's lock.
        for _ in 0..ATTEMPTS {
            let expected = self.delta();
            let claims: Vec<Claimed<'_>> =
                expected.entries().map(|(key, _)| self.below.claim(key)).collect::<Result<_, _>>()?;
            let mut pending = self.pending.lock();
            let applied = self.below.try_apply(&pending, true);
            if applied.is_ok() {
                *pending = Delta::new();
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

    /// Forgets all pending changes, after every `modify` of this view that is in progress: its
    /// result may come from what is forgotten.
    pub(crate) fn rollback(&self) -> Result<(), StateError> {
        match self.pending.lock_unclaimed() {
            Ok(mut pending) => {
                *pending = Delta::new();
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

    fn current(&self, pending: &Delta, key: &str) -> Option<Slot> {
        match pending.get(key) {
            Some(Change::Set(value)) => Some(value.clone().into()),
            Some(Change::Remove) => None,
            Some(Change::Operate(operations)) => {
                let below = self.below.get(key).map(SharedValue::from);
                match operations.apply(below.as_ref()) {
                    Ok(value) => Some(value.into()),
                    // What is below has changed so that the commit will be refused; until then it shows as it is.
                    Err(_) => below.map(Slot::from),
                }
            }
            None => self.below.get(key),
        }
    }
}
