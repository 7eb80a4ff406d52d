//! Runs in progress and detached runs: listed, followed and cancelled.

use axum::extract::{FromRequestParts, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use futures_util::stream;
use serde_json::json;
use sessile_session::{EventWindow, SessionKey};

use super::frames::event_frames;
use super::stream::events;
use crate::api::run_log::numbered;
use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, Doc, Param};
use crate::http::error::{ApiError, one_line};
use crate::http::path_params::{OfSession, param};
use crate::http::response;

pub(crate) const LIST: Doc =
    Doc::new("runs", "The invocations in progress in a session, in this process.", Answer::Object)
        .failing(&[403]);
pub(crate) const FOLLOW: Doc = Doc::new(
    "runs",
    "Streams the events of a run: those so far, and those to come.",
    Answer::Media("text/event-stream"),
)
.with_headers(&[Param::new("Last-Event-ID", "string", "The number of the last frame that was seen.")])
.failing(&[400, 403, 404]);
pub(crate) const CANCEL: Doc = Doc::new("runs", "Ends a run.", Answer::Null).failing(&[403, 404]);

pub(crate) async fn list(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
) -> Result<Response, ApiError> {
    response::json(&json!({ "invocationIds": shared.runs.of(&key) }))
}

/// The events of a run: from memory if it was detached in this process, otherwise from the store.
pub(crate) async fn follow(
    State(shared): State<Shared>,
    OfRun { key, invocation }: OfRun,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let from = first_wanted(&headers)?;
    if let Some(log) = shared.runs.log(&key, &invocation) {
        return Ok(events(log.follow(from)));
    }
    let session = shared.sessions.get(&key, EventWindow::ALL).await?;
    let mut frames = Vec::new();
    for event in session.iter().flat_map(|session| session.events()) {
        if event.invocation_id == invocation && event.author != "user" {
            frames.extend(event_frames(event, true)?);
        }
    }
    if frames.is_empty() {
        return Err(ApiError::not_found("Run not found"));
    }
    let numbered = frames.into_iter().enumerate().skip(from).map(|(at, frame)| numbered(at, &frame));
    Ok(events(stream::iter(numbered.collect::<Vec<_>>())))
}

pub(crate) async fn cancel(
    State(shared): State<Shared>,
    OfRun { key, invocation }: OfRun,
) -> Result<Response, ApiError> {
    if !shared.runs.cancel(&key, &invocation) {
        return Err(ApiError::not_found("Run not found"));
    }
    tracing::info!(session = %key, invocation = %one_line(&invocation), "cancelled run");
    response::json(&())
}

fn first_wanted(headers: &HeaderMap) -> Result<usize, ApiError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(0) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse::<usize>().ok());
    let wrong = || ApiError::BadRequest("Last-Event-ID must be the number of a frame".to_owned());
    number.and_then(|number| number.checked_add(1)).ok_or_else(wrong)
}

/// A run of a session that the caller may use.
pub(crate) struct OfRun {
    key: SessionKey,
    invocation: String,
}

impl FromRequestParts<Shared> for OfRun {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, ApiError> {
        let OfSession(key) = OfSession::from_request_parts(parts, shared).await?;
        Ok(Self { key, invocation: param(parts, shared, "invocation_id").await? })
    }
}
