//! Changing the state that sessions share, without a session.

use std::sync::Arc;

use sessile_state::Delta;

use crate::error::SessionError;
use crate::guard::ScopeGuards;
use crate::key::ScopeKey;
use crate::scope_change::{ChangedBy, OverwriteNotes};
use crate::state_map::StateMap;
use crate::version::Version;

/// The state that sessions share, as a store has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScopeState {
    /// How often it was written; 0 if it never was.
    pub version: Version,
    /// Keys without prefix, and their values.
    pub state: Arc<StateMap>,
}

/// A change of shared state.
#[derive(Debug, Clone)]
pub struct ScopeWrite {
    /// Whose state it is.
    pub scope: ScopeKey,
    /// What changes; keys are without their prefix.
    pub delta: Delta,
    /// The version that must be stored for it to be committed.
    pub expect: Option<Version>,
    /// The values that the changes were computed from.
    pub guards: ScopeGuards,
    /// How large the state may become, in bytes of JSON, see
    /// [`Commit::max_scope_bytes`](crate::Commit::max_scope_bytes).
    pub max_scope_bytes: Option<usize>,
    /// Makes the write idempotent: a second one with this id changes nothing.
    pub request: String,
    /// The author, for the history of the scope.
    pub principal: Option<String>,
    /// When, in Unix seconds.
    pub time: f64,
}

/// What a change of shared state did, all of it as of its commit.
#[derive(Debug, Clone)]
pub struct ScopeWritten {
    /// The version since the write.
    pub version: Version,
    /// The whole state since then.
    pub state: Arc<StateMap>,
    /// If there already was a write with this request id: its changes. Then nothing was changed
    /// now, and the other fields describe that write.
    pub known: Option<Delta>,
    /// What guards with [`OnOverwrite::Report`](crate::OnOverwrite::Report) found: keys that were
    /// overwritten although they had changed since they were read.
    pub overwrote: OverwriteNotes,
}

impl ScopeWrite {
    /// A change without conditions, for stores that compute the results of a creation.
    pub fn unconditional(scope: ScopeKey, delta: Delta, time: f64) -> Self {
        let (guards, request) = (ScopeGuards::new(), String::new());
        Self { scope, delta, expect: None, guards, max_scope_bytes: None, request, principal: None, time }
    }

    /// Compares the expected version with what is stored.
    ///
    /// # Errors
    ///
    /// [`SessionError::ScopeConflict`] if it differs.
    pub fn check_version(&self, actual: Version) -> Result<(), SessionError> {
        match self.expect.filter(|expected| *expected != actual) {
            Some(expected) => {
                Err(SessionError::ScopeConflict { scope: self.scope.clone(), expected, actual })
            }
            None => Ok(()),
        }
    }
}

impl ChangedBy {
    /// A write without a session.
    pub fn request(write: &ScopeWrite) -> Self {
        let principal = write.principal.clone();
        Self::Request { request: write.request.clone(), principal }
    }
}
