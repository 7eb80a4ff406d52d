//! Events as frames of a stream: `data: `, the event's JSON, and an empty line.

use axum::body::Bytes;
use serde_json::Value;
use sessile_session::Event;

use super::running::Ended;
use crate::http::error::ApiError;
use crate::http::response;

/// An event as one frame; as two, if it has content and artifacts, and `split_artifacts` is set.
pub(super) fn event_frames(event: &Event, split_artifacts: bool) -> Result<Vec<Bytes>, ApiError> {
    let says = event.content.as_ref().is_some_and(|content| !content.parts().is_empty());
    if !split_artifacts || !says || event.actions.artifact_delta.is_empty() {
        return Ok(vec![frame(event)?]);
    }
    let (mut said, mut saved) = (event.clone(), event.clone());
    said.actions.artifact_delta.clear();
    saved.content = None;
    Ok(vec![frame(&said)?, frame(&saved)?])
}

/// The last frame of a run that failed. ADK writes this one with spaces.
pub(super) fn error_frame(error: &Ended, time: f64) -> Bytes {
    let (kind, message) = (error.error_type(), error.public_message());
    let text = |text: &str| Value::from(text).to_string();
    let details = format!(
        "{{\"error_type\": {}, \"error_message\": {}, \"timestamp\": {}}}",
        text(kind),
        text(&message),
        Value::from(time)
    );
    let error = text(&format!("{kind}: {message}"));
    format!("data: {{\"error\": {error}, \"error_details\": {details}}}\n\n").into()
}

fn frame(event: &Event) -> Result<Bytes, ApiError> {
    let json = response::to_json(event)?;
    Ok([b"data: ", json.as_slice(), b"\n\n"].concat().into())
}
