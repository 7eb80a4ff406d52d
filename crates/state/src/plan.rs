//! Changes of several keys that are decided under the locks.

use crate::delta::Delta;
use crate::error::StateError;
use crate::snapshot::Snapshot;

/// Decides on a change of several keys from the state as it is under the locks. Because it runs
/// under the locks it is never user code. It may run again if a key was claimed.
pub(crate) type Plan<'a> = dyn FnMut(&Snapshot) -> Delta + 'a;

/// Why a change of several keys was not made. None of it was applied.
pub(crate) enum Blocked {
    /// A claim must be released first.
    Claimed,
    /// An operation cannot be applied to what its key holds.
    Refused(StateError),
}

/// How often a change is retried whose keys are known only under the locks.
pub(crate) const ATTEMPTS: usize = 1_000;
