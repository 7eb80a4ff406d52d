//! The changes of shared state as they are committed.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, StreamExt};
use sessile_session::{ChangeRecord, HistoryPage, ScopeKey, ScopeWatch, Version};

use crate::api::shared::Shared;
use crate::api::watch_frames::{expired, failed, frame, last_seen};
use crate::describe::route_doc::{Answer, Doc, Param};
use crate::http::auth::Principal;
use crate::http::error::ApiError;
use crate::http::etag::Tag;
use crate::http::path_params::{InApp, OfUser};
use crate::http::quota::Permit;

const SEEN: &[Param] = &[Param::new(
    "Last-Event-ID",
    "string",
    "The id of the last frame that was seen. Without it, a snapshot of the state comes first.",
)];

pub(crate) const WATCH_APP: Doc = Doc::new(
    "state",
    "Streams an application's state, then each change; resumes after Last-Event-ID. The author of a change is sent \
     only to callers with the right write_app.",
    Answer::Media("text/event-stream"),
)
.with_headers(SEEN)
.failing(&[429]);
pub(crate) const WATCH_USER: Doc = Doc::new(
    "state",
    "Streams a user's state, then each change and who made it; resumes after Last-Event-ID.",
    Answer::Media("text/event-stream"),
)
.with_headers(SEEN)
.failing(&[403, 429]);

pub(crate) async fn watch_app(
    State(shared): State<Shared>,
    InApp(app): InApp,
    principal: Principal,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // There is no user in the path. Without authentication all callers share one quota, that of the
    // empty name, which cannot be a user's.
    let caller = principal.name().unwrap_or_default();
    let permit = shared.watches.take(caller)?;
    let shows_author = principal.may_write_app();
    watch(&shared, ScopeKey::App(app), &principal, shows_author, &headers, permit).await
}

pub(crate) async fn watch_user(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    principal: Principal,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let permit = shared.watches.take(&user)?;
    watch(&shared, ScopeKey::User(app, user), &principal, true, &headers, permit).await
}

async fn watch(
    shared: &Shared,
    scope: ScopeKey,
    principal: &Principal,
    shows_author: bool,
    headers: &HeaderMap,
    permit: Permit,
) -> Result<Response, ApiError> {
    let state = shared.sessions.scope_state(&scope).await?;
    let seen = last_seen(headers).map(|tag| tag.version);
    // A client can resume after the last version that it saw only if every change since is kept.
    let kept = match seen {
        Some(seen) if seen <= state.version => is_kept(shared, &scope, seen, state.version).await?,
        _ => false,
    };
    let (start, after) = match seen.filter(|_| kept) {
        Some(seen) => (None, seen),
        None => (Some(frame("snapshot", Tag::shared(state.version), &*state.state)?), state.version),
    };
    let watching = Watching {
        watch: shared.sessions.watch_scope(scope, after),
        shows_author,
        expired: Box::pin(principal.expired(shared.http.clock.now())),
        _permit: permit,
    };
    let changes = until_over(watching).take_until(shared.http.lifecycle.closing());
    let frames = stream::iter(start.map(Ok::<_, Infallible>)).chain(changes);
    Ok(Sse::new(frames).keep_alive(KeepAlive::default()).into_response())
}

/// Whether the change after a version is still kept, if there is one.
async fn is_kept(
    shared: &Shared,
    scope: &ScopeKey,
    seen: Version,
    newest: Version,
) -> Result<bool, ApiError> {
    if seen == newest {
        return Ok(true);
    }
    let page = HistoryPage { before: Some(seen.saturating_add(2)), limit: 1 };
    let next = shared.sessions.scope_history(scope, None, page).await?;
    Ok(next.changes.first().is_some_and(|change| change.version == seen + 1))
}

/// A watch, and what it holds while it is open.
struct Watching {
    watch: ScopeWatch,
    shows_author: bool,
    /// Resolves when the client's token expires.
    expired: BoxFuture<'static, ()>,
    _permit: Permit,
}

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
        let sent = next.map_err(ApiError::from).and_then(|change| {
            let record = change.record();
            let by = record.by.filter(|_| watching.shows_author);
            frame("change", Tag::shared(change.version), &ChangeRecord { by, ..record })
        });
        match sent {
            Ok(frame) => Some((Ok(frame), Some(watching))),
            Err(error) => Some((Ok(failed(&error)), None)),
        }
    })
}
