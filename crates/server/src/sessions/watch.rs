//! The changes of a session as they are committed, by whichever process.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, StreamExt};
use serde::Serialize;
use sessile_session::{EventWindow, Version, Watch};

use crate::answer;
use crate::auth::Principal;
use crate::doc::{Answer, Doc, Param, WINDOW};
use crate::error::{ApiError, chain};
use crate::place::OfSession;
use crate::query::Query;
use crate::quota::Place;
use crate::server::Shared;

pub(crate) const WATCH: Doc = Doc::new(
    "sessions",
    "Streams a snapshot, then each committed change; resumes after Last-Event-ID.",
    Answer::Media("text/event-stream"),
)
.with_query(WINDOW)
.with_headers(&[Param::new("Last-Event-ID", "string", "The last version that was seen.")])
.failing(&[403, 404, 429]);

pub(crate) async fn watch(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    principal: Principal,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let seen = last_seen(&headers)?;
    let place = shared.watches.take(key.user())?;
    let window = if seen.is_some() { EventWindow::NONE } else { query.window()? };
    let Some(session) = shared.sessions.get(&key, window).await? else {
        return Err(ApiError::not_found("Session not found"));
    };
    // A version that was never reached is of a session that was deleted and made anew.
    let seen = seen.filter(|seen| *seen <= session.version());
    let start = match seen {
        Some(_) => None,
        None => Some(frame("snapshot", session.version(), &session)?),
    };
    let watch = shared.sessions.watch(&key, seen.unwrap_or(session.version()));
    let watching =
        Watching { watch, expired: Box::pin(principal.expired(shared.clock.now())), _place: place };
    let changes = until_over(watching).take_until(shared.runs.closing());
    let frames = stream::iter(start.map(Ok::<_, Infallible>)).chain(changes);
    Ok(Sse::new(frames).keep_alive(KeepAlive::default()).into_response())
}

/// A watch as long as its client may have it.
struct Watching {
    watch: Watch,
    /// Comes when the client's token stops being valid.
    expired: BoxFuture<'static, ()>,
    _place: Place,
}

/// The changes, until the session is deleted or the client's token is no longer valid.
fn until_over(watching: Watching) -> impl Stream<Item = Result<Frame, Infallible>> + Send {
    stream::unfold(Some(watching), |watching| async {
        let mut watching = watching?;
        let next = tokio::select! {
            biased;
            () = &mut watching.expired => {
                let text = "The token has expired; watch again with a new one, after the last id";
                return Some((Ok(error_frame(text)), None));
            }
            next = watching.watch.next() => next,
        };
        match next {
            Ok(Some(change)) => match frame("change", change.version, &*change.event) {
                Ok(frame) => Some((Ok(frame), Some(watching))),
                Err(error) => Some((Ok(failed(&error)), None)),
            },
            Ok(None) => Some((Ok(Frame::default().event("deleted").data("null")), None)),
            Err(error) => Some((Ok(failed(&error.into())), None)),
        }
    })
}

fn frame(name: &str, version: Version, value: &impl Serialize) -> Result<Frame, ApiError> {
    let json = String::from_utf8(answer::to_json(value)?)
        .map_err(|error| ApiError::Failed { action: "write the answer", source: error.into() })?;
    Ok(Frame::default().event(name).id(version.to_string()).data(json))
}

fn failed(error: &ApiError) -> Frame {
    tracing::error!(error = %chain(error), "a watch broke off");
    error_frame(&error.to_string())
}

fn error_frame(detail: &str) -> Frame {
    Frame::default().event("error").data(serde_json::json!({ "detail": detail }).to_string())
}

fn last_seen(headers: &HeaderMap) -> Result<Option<Version>, ApiError> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let version = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong = || ApiError::BadRequest("Last-Event-ID must be a version of this session".to_owned());
    version.map(Some).ok_or_else(wrong)
}
