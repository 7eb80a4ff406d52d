//! The frames of streams that watch a session or shared state.

use axum::http::HeaderMap;
use axum::response::sse::Event as Frame;
use serde::Serialize;

use crate::http::error::{ApiError, chain};
use crate::http::etag::Tag;
use crate::http::response;

/// A frame with a value as its data, and the version after which a client can resume as its id.
pub(crate) fn frame(name: &str, tag: Tag, value: &impl Serialize) -> Result<Frame, ApiError> {
    let json = String::from_utf8(response::to_json(value)?)
        .map_err(|error| ApiError::Failed { action: "write the answer", source: error.into() })?;
    Ok(Frame::default().event(name).id(tag.to_string()).data(json))
}

/// The last frame of a watch that failed.
pub(crate) fn failed(error: &ApiError) -> Frame {
    tracing::error!(error = %chain(error), "a watch failed");
    error_frame(&error.to_string())
}

/// The last frame of a watch whose token has expired.
pub(crate) fn expired() -> Frame {
    error_frame("The token has expired; watch again with a new one, after the last id")
}

fn error_frame(detail: &str) -> Frame {
    Frame::default().event("error").data(serde_json::json!({ "detail": detail }).to_string())
}

/// The version of the last frame that the client saw; `None` if the header is missing or not the id
/// of a frame.
pub(crate) fn last_seen(headers: &HeaderMap) -> Option<Tag> {
    headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok())
        .and_then(|text| Tag::parse(text.trim()))
}
