//! An event that the writing thread has stored. One with operations is assembled as it is read only
//! where that is needed, which is rarely on that thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessile_session::{Event, SessionEvent, Version, committed};
use sessile_state::Delta;

/// An event that is stored.
pub(crate) struct StoredEvent {
    pub(crate) version: Version,
    /// The event as it is stored; if there are `results`, the event as it was sent.
    pub(crate) event: Arc<Event>,
    /// The results of the event's changes, if it has operations.
    pub(crate) results: Option<Delta>,
}

impl StoredEvent {
    /// The event as it is read.
    pub(crate) fn to_event(&self) -> SessionEvent {
        SessionEvent { version: self.version, event: with_results(self.event.clone(), self.results.clone()) }
    }
}

/// An event as it is read: as it was sent, with the results of its changes.
pub(crate) fn with_results(event: Arc<Event>, results: Option<Delta>) -> Arc<Event> {
    match results {
        None => event,
        Some(results) => committed(event, results, BTreeMap::new()),
    }
}
