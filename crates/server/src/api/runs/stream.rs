use axum::body::{Body as Outgoing, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream::{self, Stream, StreamExt};

use super::detached::detach;
use super::frames::{error_frame, event_frames};
use super::run_request::{AuthorizedRun, REQUEST};
use super::running::Running;
use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, BodyDoc, Doc};
use crate::http::auth::Principal;
use crate::http::body::Body;
use crate::http::error::{ApiError, chain};

pub(crate) const RUN_SSE: Doc =
    Doc::new("runs", "Runs an agent and streams its events.", Answer::Media("text/event-stream"))
        .with_body(BodyDoc::Required(&REQUEST))
        .failing(&[400, 403, 404, 409, 413, 429, 500, 503])
        .timed_by_run();

/// Runs an agent. The run proceeds as fast as the client reads (backpressure), and ends when the
/// client disconnects, unless it is detached.
pub(crate) async fn run_sse(
    State(shared): State<Shared>,
    principal: Principal,
    body: Body,
) -> Result<Response, ApiError> {
    let authorized = AuthorizedRun::read(&shared, &principal, &body, true)?;
    drop(body);
    let (split, is_detached) = (authorized.split_artifacts, authorized.detach);
    let running = Running::begin(&shared, authorized).await?;
    if is_detached {
        let log = detach(running, split, &shared);
        let mut response = events(log.clone().follow(0));
        response.headers_mut().insert(header::LOCATION, log.location());
        return Ok(response);
    }
    Ok(events(frames(running, split, shared)))
}

/// A stream of frames as an answer.
pub(super) fn events(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = Response::new(Outgoing::from_stream(frames.map(Ok::<_, std::convert::Infallible>)));
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The frames of a run, which proceeds only while they are read.
pub(super) fn frames(running: Running, split: bool, shared: Shared) -> impl Stream<Item = Bytes> + Send {
    let each = stream::unfold(Some((running, shared)), move |state| async move {
        let (mut running, shared) = state?;
        let event = match running.next().await? {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(session = %running.key(), error = %chain(&error), "a run failed");
                return Some((vec![error_frame(&error, shared.http.clock.now())], None));
            }
        };
        match event_frames(&event, split) {
            Ok(frames) => Some((frames, Some((running, shared)))),
            Err(error) => {
                tracing::error!(session = %running.key(), error = %chain(&error), "an event cannot be sent");
                None
            }
        }
    });
    each.flat_map(stream::iter)
}
