//! Answers: JSON without secrets, and sessions with their version.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sessile_session::Session;

use crate::error::ApiError;
use crate::etag::Tag;
use crate::redact::redacted;

/// The room that an answer gets to begin with, in bytes: enough for a short conversation.
const USUAL: usize = 4096;

/// A value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Response, ApiError> {
    let bytes = to_json(value)?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], Body::from(bytes))
        .into_response())
}

/// A session as JSON, its version as the `ETag`.
pub(crate) fn session(session: &Session) -> Result<Response, ApiError> {
    tagged(session, session.into())
}

/// A value as JSON, with the version that it is of as the `ETag`.
pub(crate) fn tagged(value: &impl Serialize, tag: Tag) -> Result<Response, ApiError> {
    let mut response = json(value)?;
    response.headers_mut().insert(header::ETAG, tag.header());
    Ok(response)
}

/// The JSON of sessions and events, without the secrets of credentials.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut bytes, value)
        .map_err(|source| ApiError::Failed { action: "write the answer", source: source.into() })?;
    Ok(redacted(bytes))
}
