//! An event that the writing thread has stored. If it has operations, what is read of it is put
//! together only where that is needed, which is rarely on that thread.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessile_session::{Event, SessionEvent, Version, committed};
use sessile_state::Delta;

/// An event that is stored.
pub(crate) struct StoredEvent {
    pub(crate) version: Version,
    /// As it is stored, unless there are results: then it is its intent.
    pub(crate) event: Arc<Event>,
    /// What became of the event's changes, if it has operations.
    pub(crate) results: Option<Delta>,
}

impl StoredEvent {
    /// The event as it is read.
    pub(crate) fn to_event(&self) -> SessionEvent {
        SessionEvent { version: self.version, event: with_results(self.event.clone(), self.results.clone()) }
    }
}

/// An event as it is read: its intent, and what became of its changes.
pub(crate) fn with_results(event: Arc<Event>, results: Option<Delta>) -> Arc<Event> {
    match results {
        None => event,
        Some(results) => committed(event, results, BTreeMap::new()),
    }
}
