//! Calls that an interrupted run left unanswered.

use std::collections::BTreeSet;

use sessile_session::{Content, Event, FunctionResponse, SessionEvent};

use crate::history::{ABORTED, begins_turn, is_long_running, newest_first};

/// For each event with unanswered calls, an event that answers them as interrupted, oldest first.
/// Calls of long-running tools may be answered later, and those in `answered` are being answered
/// now.
pub(super) fn interrupted(events: &[SessionEvent], answered: &BTreeSet<&str>) -> Vec<Event> {
    let mut answered = answered.clone();
    let mut answers = Vec::new();
    for event in newest_first(events) {
        answered.extend(event.function_responses().filter_map(|response| response.id.as_deref()));
        let waiting: Vec<FunctionResponse> = event
            .function_calls()
            .filter_map(|call| Some((call.id.as_deref()?, call.name.clone())))
            .filter(|(id, _)| !answered.contains(id) && !is_long_running(event, id))
            .map(|(id, name)| answer(id, name))
            .collect();
        if !waiting.is_empty() {
            answers.push(answer_event(event, waiting));
        }
        if begins_turn(event) {
            break; // earlier calls were answered when this turn began
        }
    }
    answers.reverse();
    answers
}

const MESSAGE: &str =
    "interrupted: the run ended before this call was answered; it may or may not have had its effect";

fn answer(id: &str, name: Option<String>) -> FunctionResponse {
    let response = [("error".to_owned(), serde_json::Value::from(MESSAGE).into())].into();
    FunctionResponse {
        id: Some(id.to_owned()),
        name,
        response: Some(response),
        ..FunctionResponse::default()
    }
}

fn answer_event(call: &Event, answers: Vec<FunctionResponse>) -> Event {
    let parts = answers.into_iter().map(Into::into).collect();
    let content = Content { role: Some("user".to_owned()), parts: Some(parts), ..Content::default() };
    let mut event = Event::new(&call.author).with_content(content);
    event.invocation_id.clone_from(&call.invocation_id);
    event.branch.clone_from(&call.branch);
    event.error_code = Some(ABORTED.to_owned());
    event.error_message = Some(MESSAGE.to_owned());
    event
}
