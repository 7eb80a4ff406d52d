//! Delta views: changes that stay pending until they are committed atomically or rolled back.

use std::sync::Arc;

use crate::change::Change;
use crate::delta::Delta;
use crate::error::{StateError, or_panic};
use crate::node::Node;
use crate::overlay::Overlay;
use crate::state::State;

/// Delta views.
impl State {
    /// A view of this state whose writes are pending until they are committed.
    ///
    /// The view reads what is below it, as it is now, overlaid by its own pending changes. Views
    /// can be stacked, up to a hundred: each commits into the one below.
    ///
    /// ```
    /// use sessile_state::State;
    ///
    /// let state = State::new();
    /// state.set("committed_key", "original");
    ///
    /// let tracked = state.with_delta_tracking();
    /// tracked.set("new_key", "pending");
    /// assert!(tracked.contains("new_key") && !state.contains("new_key"));
    ///
    /// tracked.commit();
    /// assert!(state.contains("new_key"));
    /// ```
    ///
    /// # Panics
    ///
    /// If more than a hundred views are stacked.
    #[track_caller]
    pub fn with_delta_tracking(&self) -> Self {
        Self { node: Arc::new(Node::Overlay(Overlay::new(self.node.clone(), false))), ..self.clone() }
    }

    /// Whether this is a view with pending changes of its own.
    pub fn is_tracking_delta(&self) -> bool {
        matches!(*self.node, Node::Overlay(_))
    }

    /// Whether changes are pending.
    pub fn has_delta(&self) -> bool {
        !self.delta().is_empty()
    }

    /// The pending changes: keys set and keys removed. Empty for a state that is not a view.
    pub fn delta(&self) -> Delta {
        match &*self.node {
            Node::Base(_) => Delta::new(),
            Node::Overlay(overlay) => overlay.delta(),
        }
    }

    /// Applies all pending changes to the state below, atomically. Without pending changes it does
    /// nothing.
    ///
    /// # Panics
    ///
    /// Where [`try_commit`](Self::try_commit) returns an error, with its text.
    #[track_caller]
    pub fn commit(&self) {
        or_panic(self.try_commit());
    }

    /// Applies all pending changes to the state below, or none. The result of a `modify` of this
    /// view that is in progress becomes a new pending change.
    ///
    /// # Errors
    ///
    /// - [`StateError::Schema`] if this handle's schema does not allow a change that another
    ///   handle of the view made;
    /// - [`StateError::Reentrant`] or [`StateError::Busy`] if a `modify` closure of the state below
    ///   holds one of the keys and cannot finish first.
    ///
    /// The changes are still pending then.
    pub fn try_commit(&self) -> Result<(), StateError> {
        match &*self.node {
            Node::Base(_) => Ok(()),
            Node::Overlay(overlay) => {
                self.check_all(&overlay.delta())?;
                overlay.commit()
            }
        }
    }

    /// Commits if the keys that this view set or removed after reading them still hold, in the
    /// state below, what was read. Otherwise nothing is changed, and the keys that differ are
    /// returned. For views that keep their reads, see
    /// [`with_read_tracking`](Self::with_read_tracking).
    ///
    /// ```
    /// let state = sessile_state::State::new();
    /// let (one, other) = (state.with_read_tracking(), state.with_read_tracking());
    /// one.modify("n", 0, |n| n + 1);
    /// other.modify("n", 0, |n| n + 1);
    /// assert!(one.try_commit_unchanged()?.is_empty());
    /// assert_eq!(other.try_commit_unchanged()?, ["n"], "both have read that there was none");
    /// assert_eq!(state.get("n"), Some(1));
    /// # Ok::<(), sessile_state::StateError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`try_commit`](Self::try_commit).
    pub fn try_commit_unchanged(&self) -> Result<Vec<String>, StateError> {
        let Node::Overlay(overlay) = &*self.node else { return Ok(Vec::new()) };
        let (delta, reads) = (overlay.delta(), overlay.reads());
        self.check_all(&delta)?;
        let mut changed: Vec<String> = Vec::new();
        overlay.write_below(&mut |now| {
            let plain = delta.iter().filter(|(_, change)| !matches!(change, Change::Operate(_)));
            let differs = |key: &str| reads.get(key).is_some_and(|read| now.find(key).as_ref() != read);
            changed = plain.map(|(key, _)| key).filter(|key| differs(key)).map(str::to_owned).collect();
            if changed.is_empty() { delta.clone() } else { Delta::new() }
        })?;
        if changed.is_empty() {
            overlay.rollback()?;
        }
        Ok(changed)
    }

    /// Forgets all pending changes.
    ///
    /// # Panics
    ///
    /// Where [`try_rollback`](Self::try_rollback) returns an error, with its text.
    #[track_caller]
    pub fn rollback(&self) {
        or_panic(self.try_rollback());
    }

    /// Forgets all pending changes.
    ///
    /// # Errors
    ///
    /// [`StateError::Reentrant`] or [`StateError::Busy`] if a `modify` closure of this view is in
    /// progress and cannot finish first.
    pub fn try_rollback(&self) -> Result<(), StateError> {
        match &*self.node {
            Node::Base(_) => Ok(()),
            Node::Overlay(overlay) => overlay.rollback(),
        }
    }

    /// How many views there are between this state and `other`, if `other` is below it: 0 if they
    /// are the same.
    pub(crate) fn views_above(&self, other: &State) -> Option<usize> {
        if Arc::ptr_eq(&self.node, &other.node) {
            return Some(0);
        }
        match &*self.node {
            Node::Base(_) => None,
            Node::Overlay(overlay) => overlay.views_above(&other.node),
        }
    }
}
