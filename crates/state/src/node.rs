//! What a [`State`](crate::State) stands on: a base table, or a delta view over another node.

use crate::base::Base;
use crate::delta::Delta;
use crate::error::StateError;
use crate::gate::Why;
use crate::key::Key;
use crate::operation::Operations;
use crate::overlay::Overlay;
use crate::plan::{ATTEMPTS, Blocked, Plan};
use crate::reducer::Reducer;
use crate::snapshot::{Index, Snapshot};
use crate::value::{SharedValue, Slot};

pub(crate) enum Node {
    Base(Base),
    Overlay(Overlay),
}

/// Calls the same method on either kind of node.
macro_rules! both {
    ($self:expr, $node:ident => $call:expr) => {
        match $self {
            Node::Base($node) => $call,
            Node::Overlay($node) => $call,
        }
    };
}

impl Node {
    pub(crate) fn get(&self, key: &str) -> Option<Slot> {
        both!(self, node => node.get(key))
    }

    pub(crate) fn get_either(&self, key: &str, other: &str) -> Option<Slot> {
        both!(self, node => node.get_either(key, other))
    }

    pub(crate) fn put(&self, key: &str, value: Slot) -> Result<(), StateError> {
        both!(self, node => node.put(key, value)).map_err(|why| why.on(key))
    }

    pub(crate) fn take(&self, key: &str) -> Result<Option<Slot>, StateError> {
        both!(self, node => node.take(key)).map_err(|why| why.on(key))
    }

    /// Operates on one key, if `check` accepts what becomes of it.
    pub(crate) fn operate(
        &self,
        key: &str,
        operations: &Operations,
        check: &dyn Fn(&SharedValue) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        both!(self, node => node.operate(key, operations, check))
    }

    /// Makes all changes atomically, or none if a key is claimed. `mine` says that the claims of
    /// this thread were made for this change and do not block it.
    pub(crate) fn try_apply(&self, delta: &Delta, mine: bool) -> Result<(), Blocked> {
        both!(self, node => node.try_apply(delta, mine))
    }

    /// The value of a key without counting it as read.
    pub(crate) fn peek(&self, key: &str) -> Option<Slot> {
        match self {
            Self::Base(base) => base.peek(key),
            Self::Overlay(overlay) => overlay.peek(key),
        }
    }

    /// Records that all keys were listed, in every view from here down that tracks reads.
    pub(crate) fn note_listing(&self) {
        if let Self::Overlay(overlay) = self {
            overlay.note_listing();
        }
    }

    /// Makes a view show a value under a key by an operation of the key's reducer; a base is simply
    /// set.
    pub(crate) fn reduce(&self, key: &str, reducer: Reducer, value: SharedValue) -> Result<(), StateError> {
        match self {
            Self::Base(_) => self.put(key, value.into()),
            Self::Overlay(overlay) => overlay.reduce(key, reducer, &value),
        }
    }

    /// How many delta views there are from here down.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Base(_) => 0,
            Self::Overlay(overlay) => overlay.depth(),
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        both!(self, node => node.snapshot())
    }

    pub(crate) fn index(&self) -> Index {
        both!(self, node => node.index())
    }

    /// Makes all changes atomically, after waiting for claims on their keys.
    pub(crate) fn apply(&self, delta: &Delta) -> Result<(), StateError> {
        match self.try_apply(delta, false) {
            Ok(()) => Ok(()),
            Err(Blocked::Refused(error)) => Err(error),
            Err(Blocked::Claimed) => self.write_claimed(&mut |_| delta.clone()),
        }
    }

    /// Makes all changes that `plan` decides on, after waiting for claims on their keys.
    pub(crate) fn write(&self, plan: &mut Plan<'_>) -> Result<(), StateError> {
        match both!(self, node => node.try_write(plan, false)) {
            Ok(()) => Ok(()),
            Err(Blocked::Refused(error)) => Err(error),
            Err(Blocked::Claimed) => self.write_claimed(plan),
        }
    }

    /// Claims the keys that the plan changes one by one in key order, waiting for each, and then
    /// makes the changes. If the plan meanwhile decides on other keys, and those are claimed, it
    /// retries.
    fn write_claimed(&self, plan: &mut Plan<'_>) -> Result<(), StateError> {
        let mut expected = plan(&self.snapshot());
        for _ in 0..ATTEMPTS {
            let keys: Vec<Key> = expected.entries().map(|(key, _)| key.clone()).collect();
            let claims: Vec<Claimed<'_>> =
                keys.iter().map(|key| self.claim(key)).collect::<Result<_, _>>()?;
            let mut decided = Delta::new();
            let mut noting = |now: &Snapshot| {
                decided = plan(now);
                decided.clone()
            };
            let done = both!(self, node => node.try_write(&mut noting, true));
            drop(claims);
            match done {
                Ok(()) => return Ok(()),
                Err(Blocked::Refused(error)) => return Err(error),
                Err(Blocked::Claimed) => expected = decided,
            }
        }
        let key = expected.entries().next().map_or("", |(key, _)| key);
        Err(Why::TimedOut.on(key))
    }

    /// Claims `key`: no other write of it happens until the claim is finished or dropped.
    pub(crate) fn claim<'a>(&'a self, key: &'a str) -> Result<Claimed<'a>, StateError> {
        let value = both!(self, node => node.claim(key)).map_err(|why| why.on(key))?;
        Ok(Claimed { node: self, key, value, ended: false })
    }
}

/// A claimed key and the value it had.
pub(crate) struct Claimed<'a> {
    node: &'a Node,
    key: &'a str,
    pub(crate) value: Option<Slot>,
    ended: bool,
}

impl Claimed<'_> {
    /// Counts the value as read. A claim that only blocks other writers does not call this.
    pub(crate) fn note_read(&self) {
        if let Node::Base(base) = self.node {
            base.note_claimed(self.key, self.value.as_ref());
        }
    }

    /// Writes the new value and ends the claim.
    pub(crate) fn finish(mut self, value: Slot) {
        self.ended = true;
        both!(self.node, node => node.release(self.key, Some(value)));
    }

    /// Makes a view show `value` by an operation of the key's reducer, and ends the claim; a base
    /// is simply set. `shown` is the value that the claim found.
    pub(crate) fn finish_reduced(
        mut self,
        reducer: Reducer,
        shown: Option<&SharedValue>,
        value: SharedValue,
    ) -> Result<(), StateError> {
        let Node::Overlay(overlay) = self.node else {
            self.finish(value.into());
            return Ok(());
        };
        let Some(operation) = reducer.difference(self.key, shown, &value)? else { return Ok(()) };
        self.ended = true;
        overlay.release_operating(self.key, operation)
    }
}

/// Without a new value the key keeps its old one. This also covers a closure that panics.
impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if !self.ended {
            both!(self.node, node => node.release(self.key, None));
        }
    }
}
