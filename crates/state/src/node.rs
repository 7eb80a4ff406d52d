//! What a [`State`](crate::State) stands on: a base table, or a delta view over another node.

use crate::base::Base;
use crate::delta::Change;
use crate::gate::{Blocked, Key};
use crate::overlay::Overlay;
use crate::snapshot::{Index, Snapshot};
use crate::value::SharedValue;

pub(crate) enum Node {
    Base(Base),
    Overlay(Overlay),
}

/// Decides a change of several keys, from the state at that moment if it asks for it. It runs
/// under the locks, so it is never user code, and may run again if a claim was in the way.
pub(crate) type Plan<'a> = dyn FnMut(&dyn Fn() -> Snapshot) -> Vec<(Key, Change)> + 'a;

/// The key whose claim must be released before a plan can be carried out.
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
    pub(crate) fn get(&self, key: &str) -> Option<SharedValue> {
        both!(self, node => node.get(key))
    }

    pub(crate) fn get_either(&self, key: &str, other: &str) -> Option<SharedValue> {
        both!(self, node => node.get_either(key, other))
    }

    pub(crate) fn put(&self, key: &str, value: SharedValue) -> Result<(), Blocked> {
        both!(self, node => node.put(key, value))
    }

    pub(crate) fn take(&self, key: &str) -> Result<Option<SharedValue>, Blocked> {
        both!(self, node => node.take(key))
    }

    pub(crate) fn try_write(&self, plan: &mut Plan<'_>) -> Result<(), WouldWait> {
        both!(self, node => node.try_write(plan))
    }

    pub(crate) fn wait_for(&self, key: &str) -> Result<(), Blocked> {
        both!(self, node => node.wait_for(key))
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        both!(self, node => node.snapshot())
    }

    pub(crate) fn index(&self) -> Index {
        both!(self, node => node.index())
    }

    /// Makes all changes of `plan` at one moment, after the claims that are in the way.
    pub(crate) fn write(&self, plan: &mut Plan<'_>) -> Result<(), Blocked> {
        while let Err(WouldWait(key)) = self.try_write(plan) {
            self.wait_for(&key)?;
        }
        Ok(())
    }

    /// Claims `key`: no other write of it happens until the claim is finished or dropped.
    pub(crate) fn claim(&self, key: &str) -> Result<Claimed<'_>, Blocked> {
        let (key, value) = both!(self, node => node.claim(key))?;
        Ok(Claimed { node: self, key: Some(key), value })
    }
}

/// A claimed key and the value it had.
pub(crate) struct Claimed<'a> {
    node: &'a Node,
    /// Taken when the claim ends.
    key: Option<Key>,
    pub(crate) value: Option<SharedValue>,
}

impl Claimed<'_> {
    /// Writes the new value and ends the claim.
    pub(crate) fn finish(mut self, value: SharedValue) {
        self.end(Some(value));
    }

    fn end(&mut self, value: Option<SharedValue>) {
        if let Some(key) = self.key.take() {
            both!(self.node, node => node.release(&key, value));
        }
    }
}

/// Without a new value the key keeps its old one: also when the closure panicked.
impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        self.end(None);
    }
}
