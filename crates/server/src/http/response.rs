//! Responses: JSON without secrets, and sessions with their version as the `ETag`.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sessile_session::Session;

use super::error::ApiError;
use super::etag::Tag;
use super::redact::redacted;

/// The header with the time of the session's last change, in Unix seconds. It accompanies an
/// appended event, because it is not part of the event.
pub(crate) const UPDATE_TIME: HeaderName = HeaderName::from_static("sessile-last-update-time");
/// The header with what a write of shared state with `onOverwrite: report` overwrote.
pub(crate) const OVERWROTE: HeaderName = HeaderName::from_static("sessile-overwrote");
/// The header with the number of sessions that were left out of a list because they cannot be
/// read. The log has their keys and the reasons.
pub(crate) const UNREADABLE: HeaderName = HeaderName::from_static("sessile-unreadable");

/// The initial capacity of a response, in bytes: enough for an event, and small enough that the
/// allocator has it in its cache.
const USUAL: usize = 1000;

/// The additional capacity for each event of a session.
const OF_EVENT: usize = 400;

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Response, ApiError> {
    Ok(response(to_json(value)?))
}

fn response(json: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], Body::from(json)).into_response()
}

/// A session as JSON, its version as the `ETag`.
pub(crate) fn session(session: &Session) -> Result<Response, ApiError> {
    let json = with_capacity(session, USUAL + OF_EVENT * session.events().len())?;
    Ok(with_tag(response(json), session.into()))
}

/// A value as JSON, with the version that it is of as the `ETag`.
pub(crate) fn tagged(value: &impl Serialize, tag: Tag) -> Result<Response, ApiError> {
    Ok(with_tag(json(value)?, tag))
}

fn with_tag(mut response: Response, tag: Tag) -> Response {
    response.headers_mut().insert(header::ETAG, tag.header());
    response
}

/// The JSON of sessions and events, without the secrets of credentials.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    with_capacity(value, USUAL)
}

fn with_capacity(value: &impl Serialize, capacity: usize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(capacity);
    serde_json::to_writer(&mut bytes, value)
        .map_err(|source| ApiError::Failed { action: "write the answer", source: source.into() })?;
    Ok(redacted(bytes))
}
