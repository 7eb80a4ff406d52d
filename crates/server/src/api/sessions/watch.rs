//! The changes of a session as they are committed, by this process or another.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, StreamExt};
use sessile_session::{EventWindow, Incarnation, Watch};

use crate::api::shared::Shared;
use crate::api::watch_frames::{expired, failed, frame, last_seen};
use crate::describe::route_doc::{Answer, Doc, Param, WINDOW};
use crate::http::auth::Principal;
use crate::http::error::ApiError;
use crate::http::etag::Tag;
use crate::http::path_params::OfSession;
use crate::http::query::Query;
use crate::http::quota::Permit;

pub(crate) const WATCH: Doc = Doc::new(
    "sessions",
    "Streams a snapshot, then each committed change; resumes after Last-Event-ID.",
    Answer::Media("text/event-stream"),
)
.with_query(WINDOW)
.with_headers(&[Param::new(
    "Last-Event-ID",
    "string",
    "The id of the last frame that was seen. A snapshot is sent if it is of no version of this session.",
)])
.failing(&[403, 404, 429]);

pub(crate) async fn watch(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    principal: Principal,
    headers: HeaderMap,
    query: Query,
) -> Result<Response, ApiError> {
    let permit = shared.watches.take(key.user())?;
    let window = query.window()?;
    let missing = || ApiError::not_found("Session not found");
    let seen = match last_seen(&headers) {
        Some(seen) => {
            let session = shared.sessions.get(&key, EventWindow::NONE).await?.ok_or_else(missing)?;
            let is_of_it = session.incarnation() == seen.incarnation && seen.version <= session.version();
            Some(seen).filter(|_| is_of_it)
        }
        None => None,
    };
    let (start, seen) = match seen {
        Some(seen) => (None, seen),
        // The client has not seen this session, or only an earlier one at the same address.
        None => {
            let session = shared.sessions.get(&key, window).await?.ok_or_else(missing)?;
            let tag = Tag::from(&session);
            (Some(frame("snapshot", tag, &session)?), tag)
        }
    };
    let watch = shared.sessions.watch(&key, seen.version).of(seen.incarnation);
    let watching = Watching {
        watch,
        incarnation: seen.incarnation,
        expired: Box::pin(principal.expired(shared.http.clock.now())),
        _permit: permit,
    };
    let changes = until_over(watching).take_until(shared.http.lifecycle.closing());
    let frames = stream::iter(start.map(Ok::<_, Infallible>)).chain(changes);
    Ok(Sse::new(frames).keep_alive(KeepAlive::default()).into_response())
}

/// A watch, and what it holds while it is open.
struct Watching {
    watch: Watch,
    incarnation: Incarnation,
    /// Resolves when the client's token expires.
    expired: BoxFuture<'static, ()>,
    _permit: Permit,
}

/// The changes, until the session is deleted or the client's token expires.
fn until_over(watching: Watching) -> impl Stream<Item = Result<Frame, Infallible>> + Send {
    stream::unfold(Some(watching), |watching| async {
        let mut watching = watching?;
        let next = tokio::select! {
            biased;
            () = &mut watching.expired => {
                return Some((Ok(expired()), None));
            }
            next = watching.watch.next() => next,
        };
        match next {
            Ok(Some(change)) => {
                let tag = Tag { version: change.version, incarnation: watching.incarnation };
                match frame("change", tag, &*change.event) {
                    Ok(frame) => Some((Ok(frame), Some(watching))),
                    Err(error) => Some((Ok(failed(&error)), None)),
                }
            }
            Ok(None) => Some((Ok(Frame::default().event("deleted").data("null")), None)),
            Err(error) => Some((Ok(failed(&error.into())), None)),
        }
    })
}
