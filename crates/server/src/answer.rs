//! Answers: JSON without secrets, and sessions with their version.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sessile_session::{Session, Version};

use crate::error::ApiError;
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
    let mut response = json(session)?;
    response.headers_mut().insert(header::ETAG, etag(session.version()));
    Ok(response)
}

/// The JSON of sessions and events, without the secrets of credentials.
pub(crate) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut bytes, value)
        .map_err(|source| ApiError::Failed { action: "write the answer", source: source.into() })?;
    Ok(redacted(bytes))
}

/// A version as an `ETag`.
pub(crate) fn etag(version: Version) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{version}\"")).unwrap_or(HeaderValue::from_static("\"0\""))
}

/// The version that a request expects: `If-Match: "5"`; any, if there is none or `*`.
pub(crate) fn expected(headers: &HeaderMap) -> Result<Option<Version>, ApiError> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().map(str::trim).unwrap_or("");
    if text == "*" {
        return Ok(None);
    }
    let version =
        text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).and_then(|text| text.parse().ok());
    version.map(Some).ok_or_else(|| {
        ApiError::BadRequest("If-Match must be one ETag of this session, such as \"5\", or *".to_owned())
    })
}
