//! Short texts for events.

use sessile_session::Event;
use sessile_state::{Change, Delta};

/// The texts, calls and responses of an event, on one line.
pub(crate) fn summary(event: &Event) -> String {
    let mut pieces = Vec::new();
    for part in event.content.iter().flat_map(|content| content.parts()) {
        if let Some(text) = part.text.as_ref().filter(|text| !text.is_empty()) {
            pieces.push(text.to_string());
        }
        if let Some(call) = &part.function_call {
            let args = serde_json::to_string(&call.args).unwrap_or_else(|_| "…".to_owned());
            pieces.push(format!("calls {}({args})", call.name.as_deref().unwrap_or("?")));
        }
        if let Some(response) = &part.function_response {
            let answer = serde_json::to_string(&response.response).unwrap_or_else(|_| "…".to_owned());
            pieces.push(format!("{} answers {answer}", response.name.as_deref().unwrap_or("?")));
        }
        if part.inline_data.is_some() || part.file_data.is_some() {
            pieces.push("(file)".to_owned());
        }
    }
    if let Some(code) = &event.error_code {
        pieces.push(format!("error {code}: {}", event.error_message.as_deref().unwrap_or("")));
    }
    if let Some(before) = &event.actions.rewind_before_invocation_id {
        pieces.push(format!("(back to before {before})"));
    }
    pieces.join(" ")
}

/// What an event changes: `+ key = value`, `- key`.
pub(crate) fn changes(delta: &Delta) -> Vec<String> {
    let each = delta.iter().map(|(key, change)| match change {
        Change::Set(value) => format!("+ {key} = {value}"),
        Change::Remove => format!("- {key}"),
        // Only an event that is not committed yet has operations: the commit replaces them by
        // their results.
        Change::Operate(operations) => {
            let names: Vec<&str> = operations.iter().map(|operation| operation.name()).collect();
            format!("* {key} ({})", names.join(", "))
        }
    });
    each.collect()
}

/// Cuts a text to a number of characters; the last one is an ellipsis then.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        None => text.to_owned(),
    }
}
