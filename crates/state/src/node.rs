//! What a [`State`](crate::State) stands on: a base table, or a delta view over another node.

use std::sync::Arc;

use crate::base::Base;
use crate::delta::Delta;
use crate::error::StateError;
use crate::gate::Why;
use crate::overlay::Overlay;
use crate::snapshot::{Index, Snapshot};
use crate::value::Slot;

/// A state key, shared by tables, indexes and deltas.
pub(crate) type Key = Arc<str>;

pub(crate) enum Node {
    Base(Base),
    Overlay(Overlay),
}

/// Decides a change of several keys from the state at that moment. It runs under the locks, so
/// it is never user code, and may run again if a claim was in the way.
pub(crate) type Plan<'a> = dyn FnMut(&Snapshot) -> Delta + 'a;

/// The key whose claim must be released before a change can be made.
pub(crate) struct WouldWait(pub(crate) Key);

/// Calls the same method on whichever node it is.
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

    pub(crate) fn try_apply(&self, delta: &Delta) -> Result<(), WouldWait> {
        both!(self, node => node.try_apply(delta))
    }

    pub(crate) fn wait_for(&self, key: &str) -> Result<(), Why> {
        both!(self, node => node.wait_for(key))
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        both!(self, node => node.snapshot())
    }

    pub(crate) fn index(&self) -> Index {
        both!(self, node => node.index())
    }

    /// Makes all changes at one moment, after the claims that are in the way.
    pub(crate) fn apply(&self, delta: &Delta) -> Result<(), StateError> {
        self.until_done(|| self.try_apply(delta))
    }

    /// Makes all changes that `plan` decides on, after the claims that are in the way.
    pub(crate) fn write(&self, plan: &mut Plan<'_>) -> Result<(), StateError> {
        self.until_done(|| both!(self, node => node.try_write(plan)))
    }

    /// Claims `key`: no other write of it happens until the claim is finished or dropped.
    pub(crate) fn claim<'a>(&'a self, key: &'a str) -> Result<Claimed<'a>, StateError> {
        let value = both!(self, node => node.claim(key)).map_err(|why| why.on(key))?;
        Ok(Claimed { node: self, key, value, ended: false })
    }

    fn until_done(&self, mut attempt: impl FnMut() -> Result<(), WouldWait>) -> Result<(), StateError> {
        while let Err(WouldWait(key)) = attempt() {
            self.wait_for(&key).map_err(|why| why.on(&key))?;
        }
        Ok(())
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
    /// Writes the new value and ends the claim.
    pub(crate) fn finish(mut self, value: Slot) {
        self.ended = true;
        both!(self.node, node => node.release(self.key, Some(value)));
    }
}

/// Without a new value the key keeps its old one: also when the closure panicked.
impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if !self.ended {
            both!(self.node, node => node.release(self.key, None));
        }
    }
}
