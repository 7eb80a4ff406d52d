//! Idempotence: whether an event that is sent again is the one that is stored.

use sessile_state::same_json;

use crate::event::Event;

/// The fields that the caller left out and the service filled in. They are not compared, because a
/// retry gets new ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeftOut {
    timestamp: bool,
    invocation: bool,
}

impl LeftOut {
    pub(super) fn of(event: &Event) -> Self {
        Self { timestamp: event.timestamp.is_none(), invocation: event.invocation_id.is_empty() }
    }
}

/// Whether the events are equivalent: their intent is equal, or the one that is sent holds the
/// results of the stored one.
///
/// Numbers are compared by value, because not every database keeps their spelling.
pub(super) fn is_same(sent: &Event, left_out: LeftOut, stored: &Event) -> bool {
    let mut sent = sent.result();
    if left_out.timestamp {
        sent.timestamp = stored.timestamp;
    }
    if left_out.invocation {
        sent.invocation_id.clone_from(&stored.invocation_id);
    }
    let equals = |stored: &Event| match (sent.to_stored_json(), stored.to_stored_json()) {
        (Ok(sent), Ok(stored)) => same_json(&sent, &stored),
        _ => false,
    };
    equals(&stored.intent()) || (!sent.actions.state_delta.has_operations() && equals(&stored.result()))
}
