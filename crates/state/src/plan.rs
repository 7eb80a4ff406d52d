//! Changes of several keys that are decided under the locks.

use crate::delta::Delta;
use crate::error::StateError;
use crate::snapshot::Snapshot;

/// Decides a change of several keys from the state at that moment. It runs under the locks, so
/// it is never user code, and may run again if a claim was in the way.
pub(crate) type Plan<'a> = dyn FnMut(&Snapshot) -> Delta + 'a;

/// Why a change of several keys was not made; nothing of it was.
pub(crate) enum Blocked {
    /// A claim must be released first.
    Claimed,
    /// An operation cannot be applied to what its key holds.
    Refused(StateError),
}

/// How often a change whose keys are only known under the locks is tried again.
pub(crate) const ATTEMPTS: usize = 1_000;
