//! The history of shared state: the changes with their authors, and the state at earlier versions.

use std::sync::Arc;

use super::SessionService;
use super::write::check_scope;
use crate::error::{SessionError, doing};
use crate::key::ScopeKey;
use crate::scope_change::ScopeChange;
use crate::scope_write::ScopeState;
use crate::state_map::StateMap;
use crate::version::Version;
use crate::window::ChangeWindow;

/// A part of the history of shared state, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScopeHistory {
    /// The changes.
    pub changes: Vec<ScopeChange>,
    /// The next page begins before this version; `None` if this is the last one.
    pub next: Option<Version>,
}

/// Which part of the history is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryPage {
    /// Changes before this version; the newest if it is left out.
    pub before: Option<Version>,
    /// At most this many.
    pub limit: usize,
}

impl Default for HistoryPage {
    fn default() -> Self {
        Self { before: None, limit: 100 }
    }
}

/// How many changes are read at once, and how many are scanned for one page. A page of the changes
/// of one key may therefore be short or empty without being the last.
const READ_AT_ONCE: usize = 500;
const MOST_LOOKED_AT: usize = 10_000;

impl SessionService {
    /// The changes of shared state, newest first: all of them, or those of one key, named without
    /// its prefix.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidId`] if it cannot be an application or user; the store's own errors.
    pub async fn scope_history(
        &self,
        scope: &ScopeKey,
        key: Option<&str>,
        page: HistoryPage,
    ) -> Result<ScopeHistory, SessionError> {
        check_scope(scope)?;
        let mut history = ScopeHistory::default();
        let mut until = page.before.map(|before| before.saturating_sub(1));
        let mut looked_at = 0;
        loop {
            let wanted = match key {
                None => page.limit - history.changes.len(),
                Some(_) => READ_AT_ONCE,
            };
            if until == Some(0) || wanted == 0 {
                return Ok(ScopeHistory {
                    next: until.filter(|until| *until > 0).map(|until| until + 1),
                    ..history
                });
            }
            let limit = wanted.min(READ_AT_ONCE);
            let read = self
                .store
                .scope_changes(scope, ChangeWindow { until, ..ChangeWindow::newest(limit) })
                .await?;
            let is_last = read.len() < limit;
            looked_at += read.len();
            for change in read {
                if history.changes.len() == page.limit {
                    return Ok(ScopeHistory { next: Some(change.version + 1), ..history });
                }
                until = Some(change.version - 1);
                if key.is_none_or(|key| change.change.get(key).is_some()) {
                    history.changes.push(change);
                }
            }
            if is_last {
                return Ok(history);
            }
            if looked_at >= MOST_LOOKED_AT {
                return Ok(ScopeHistory { next: until.map(|until| until + 1), ..history });
            }
        }
    }

    /// Shared state at an earlier version, computed backwards from the current state. Keys are
    /// without their prefix.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotInScopeHistory`] if the scope has not reached that version, or if the
    /// history does not reach back to it; [`SessionError::InvalidId`]; the store's own errors.
    pub async fn scope_state_at(&self, scope: &ScopeKey, version: Version) -> Result<StateMap, SessionError> {
        let ScopeState { version: newest, state } = self.scope_state(scope).await?;
        let mut state = Arc::unwrap_or_clone(state);
        let unknown = |oldest| {
            let scope = scope.clone();
            SessionError::NotInScopeHistory { scope, version, oldest, newest }
        };
        if version > newest {
            return Err(unknown(None));
        }
        // Every version has one change. What is in `state` is the state at `at`.
        let mut at = newest;
        while at > version {
            let window =
                ChangeWindow { after: version, until: Some(at), ..ChangeWindow::newest(READ_AT_ONCE) };
            let changes = self.store.scope_changes(scope, window).await?;
            if changes.is_empty() {
                return Err(unknown(Some(at)));
            }
            for change in changes {
                if change.version != at || change.undo.unknown {
                    return Err(unknown(Some(at)));
                }
                change.undo(&mut state).map_err(doing("compute an earlier state"))?;
                at -= 1;
            }
        }
        Ok(state)
    }
}
