//! Looking back on a session's events.

use sessile_session::{Content, Event, SessionEvent};

/// The error code of events that say that a run was cut off, which is google-adk's too.
pub(crate) const ABORTED: &str = "INVOCATION_ABORTED";

/// The events that count, newest first: those that a rewind took back are left out, and so is the
/// rewind.
pub(crate) fn newest_first(events: &[SessionEvent]) -> impl Iterator<Item = &SessionEvent> {
    let mut left = events;
    std::iter::from_fn(move || {
        loop {
            let (event, before) = left.split_last()?;
            left = before;
            let Some(invocation) = &event.actions.rewind_before_invocation_id else { return Some(event) };
            if let Some(first) = left.iter().position(|event| event.invocation_id == *invocation) {
                left = &left[..first];
            }
        }
    })
}

/// The newest event that calls a tool under this id.
pub(crate) fn call_event<'a>(events: &'a [SessionEvent], id: &str) -> Option<&'a SessionEvent> {
    newest_first(events).find(|event| event.function_calls().any(|call| call.id.as_deref() == Some(id)))
}

/// Whether a turn begins with this event: the user says something that is not the answer to a call.
pub(crate) fn begins_turn(event: &Event) -> bool {
    event.author == "user" && event.content.as_ref().is_some_and(says_something_new)
}

fn says_something_new(content: &Content) -> bool {
    !content.parts().is_empty() && content.parts().iter().all(|part| part.function_response.is_none())
}

/// Whether a call in this event is one that may be answered in another run.
pub(crate) fn is_long_running(event: &Event, id: &str) -> bool {
    event.long_running_tool_ids.as_ref().is_some_and(|ids| ids.contains(id))
}
