//! Numbers that identify revisions of sessions and of shared state.

use std::fmt;

/// A revision: 0 at creation, one more with every event. Order and conflicts come from it, never
/// from a clock.
pub type Version = u64;

/// Distinguishes a session from another one that was created under the same address after the first
/// was deleted.
///
/// Sessions that were stored before Sessile knew incarnations all have the same one, 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Incarnation(pub u64);

impl Incarnation {
    /// The incarnation of a new session: a random number that a column of signed 64-bit integers
    /// can hold, not 0.
    pub fn random() -> Self {
        let random = uuid::Uuid::new_v4().as_u64_pair().1;
        Self((random & (u64::MAX >> 2)) | 1)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}
