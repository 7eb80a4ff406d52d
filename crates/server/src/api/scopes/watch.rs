//! The changes of shared state as they are committed.

use std::convert::Infallible;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, StreamExt};
use serde::Serialize;
use sessile_session::{ChangeRecord, HistoryPage, ScopeKey, ScopeWatch, Version};

use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, Doc, Param};
use crate::http::auth::Principal;
use crate::http::error::{ApiError, chain};
use crate::http::etag::Tag;
use crate::http::path_params::{InApp, OfUser};
use crate::http::quota::Permit;
use crate::http::response;

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
    let permit = shared.watches.take(principal.name().unwrap_or_default())?;
    let tells_who = principal.may_write_app();
    watch(&shared, ScopeKey::App(app), &principal, tells_who, &headers, permit).await
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
    tells_who: bool,
    headers: &HeaderMap,
    permit: Permit,
) -> Result<Response, ApiError> {
    let state = shared.sessions.scope_state(&scope).await?;
    let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let seen = seen.and_then(|text| Tag::parse(text.trim())).map(|tag| tag.version);
    // A client can resume after the last version that it saw only if every change since is kept.
    let kept = match seen {
        Some(seen) if seen <= state.version => is_kept(shared, &scope, seen, state.version).await?,
        _ => false,
    };
    let (start, after) = match seen.filter(|_| kept) {
        Some(seen) => (None, seen),
        None => (Some(frame("snapshot", state.version, &*state.state)?), state.version),
    };
    let watching = Watching {
        watch: shared.sessions.watch_scope(scope, after),
        tells_who,
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
    tells_who: bool,
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
                let text = "The token has expired; watch again with a new one, after the last id";
                return Some((Ok(error_frame(text)), None));
            }
            next = watching.watch.next() => next,
        };
        let told = next.map_err(ApiError::from).and_then(|change| {
            let record = change.record();
            let by = record.by.filter(|_| watching.tells_who);
            frame("change", change.version, &ChangeRecord { by, ..record })
        });
        match told {
            Ok(frame) => Some((Ok(frame), Some(watching))),
            Err(error) => {
                tracing::error!(error = %chain(&error), "a watch broke off");
                Some((Ok(error_frame(&error.to_string())), None))
            }
        }
    })
}

fn frame(name: &str, version: Version, value: &impl Serialize) -> Result<Frame, ApiError> {
    let json = String::from_utf8(response::to_json(value)?)
        .map_err(|error| ApiError::Failed { action: "write the answer", source: error.into() })?;
    Ok(Frame::default().event(name).id(Tag::shared(version).to_string()).data(json))
}

fn error_frame(detail: &str) -> Frame {
    Frame::default().event("error").data(serde_json::json!({ "detail": detail }).to_string())
}
