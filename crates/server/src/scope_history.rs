//! The history of shared state: who changed what, page by page and as it happens.

use std::convert::Infallible;

use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream, StreamExt};
use serde::Serialize;
use sessile_session::{ChangeRecord, HistoryPage, ScopeKey, ScopeWatch, StateMap, Version};
use sessile_state::Scope;

use crate::answer;
use crate::auth::Principal;
use crate::doc::{Answer, Doc, Param};
use crate::error::{ApiError, chain};
use crate::etag::Tag;
use crate::place::{InApp, OfUser};
use crate::query::Query;
use crate::quota::Place;
use crate::server::Shared;

const PAGES: &[Param] = &[
    Param::new("key", "string", "Only changes of this key, without its prefix."),
    Param::new("before", "integer", "Only changes before this version; `next` of the page before."),
    Param::new("pageSize", "integer", "How many changes at most; 100 if it is left out, 1000 at most."),
];
const SEEN: &[Param] = &[Param::new(
    "Last-Event-ID",
    "string",
    "The id of the last frame that was seen. Without it, a snapshot of the state comes first.",
)];

pub(crate) const APP_HISTORY: Doc = Doc::new(
    "state",
    "The changes of an application's state, newest first, and who made them; needs the right write_app.",
    Answer::Object,
)
.with_query(PAGES)
.failing(&[403]);
pub(crate) const USER_HISTORY: Doc =
    Doc::new("state", "The changes of a user's state, newest first, and who made them.", Answer::Object)
        .with_query(PAGES)
        .failing(&[403]);
pub(crate) const WATCH_APP: Doc = Doc::new(
    "state",
    "Streams an application's state, then each change; resumes after Last-Event-ID. Who made a change is told to \
     those who have the right write_app.",
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

/// How many changes are on a page at most.
const LONGEST_PAGE: usize = 1000;

pub(crate) async fn of_app(
    State(shared): State<Shared>,
    InApp(app): InApp,
    principal: Principal,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, ApiError> {
    if !principal.may_write_app() {
        let text = "This token may not read the history of application state, which names other users: \
                    that needs the right write_app";
        return Err(ApiError::Forbidden(text.to_owned()));
    }
    page(&shared, &ScopeKey::App(app), uri.path(), &query).await
}

pub(crate) async fn of_user(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, ApiError> {
    page(&shared, &ScopeKey::User(app, user), uri.path(), &query).await
}

/// A page of the history.
#[derive(Serialize)]
struct Page<'a> {
    changes: Vec<ChangeRecord<'a>>,
    /// The next page is `before` this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Version>,
}

async fn page(shared: &Shared, scope: &ScopeKey, path: &str, query: &Query) -> Result<Response, ApiError> {
    let limit =
        query.count::<usize>("pageSize")?.unwrap_or(HistoryPage::default().limit).clamp(1, LONGEST_PAGE);
    let wanted = HistoryPage { before: query.count("before")?, limit };
    let key = query.text("key");
    let history = shared.sessions.scope_history(scope, key, wanted).await?;
    let changes = history.changes.iter().map(|change| change.record()).collect();
    let mut response = answer::json(&Page { changes, next: history.next })?;
    if let Some(next) = history.next {
        let key = key.map_or_else(String::new, |key| format!("&key={}", crate::sessions::list::encoded(key)));
        let link = format!("<{path}?before={next}&pageSize={limit}{key}>; rel=\"next\"");
        let link = HeaderValue::from_str(&link)
            .map_err(|error| ApiError::Failed { action: "name the next page", source: error.into() })?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

pub(crate) async fn watch_app(
    State(shared): State<Shared>,
    InApp(app): InApp,
    principal: Principal,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let place = shared.watches.take(principal.name().unwrap_or_default())?;
    let tells_who = principal.may_write_app();
    watch(&shared, ScopeKey::App(app), &principal, tells_who, &headers, place).await
}

pub(crate) async fn watch_user(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    principal: Principal,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let place = shared.watches.take(&user)?;
    watch(&shared, ScopeKey::User(app, user), &principal, true, &headers, place).await
}

async fn watch(
    shared: &Shared,
    scope: ScopeKey,
    principal: &Principal,
    tells_who: bool,
    headers: &HeaderMap,
    place: Place,
) -> Result<Response, ApiError> {
    let state = shared.sessions.scope_state(&scope).await?;
    let seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let seen = seen.and_then(|text| Tag::parse(text.trim())).map(|tag| tag.version);
    // A client can go on after what it saw only if every change since is kept.
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
        expired: Box::pin(principal.expired(shared.clock.now())),
        _place: place,
    };
    let changes = until_over(watching).take_until(shared.runs.closing());
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

/// A watch as long as its client may have it.
struct Watching {
    watch: ScopeWatch,
    tells_who: bool,
    /// Comes when the client's token stops being valid.
    expired: BoxFuture<'static, ()>,
    _place: Place,
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
    let json = String::from_utf8(answer::to_json(value)?)
        .map_err(|error| ApiError::Failed { action: "write the answer", source: error.into() })?;
    Ok(Frame::default().event(name).id(Tag::shared(version).to_string()).data(json))
}

fn error_frame(detail: &str) -> Frame {
    Frame::default().event("error").data(serde_json::json!({ "detail": detail }).to_string())
}

/// The state at a version that the query asks for; `None` if it asks for none.
pub(crate) async fn state_at(
    shared: &Shared,
    scope: &ScopeKey,
    query: &Query,
) -> Result<Option<(Version, StateMap)>, ApiError> {
    match query.count::<Version>("version")? {
        Some(version) => Ok(Some((version, shared.sessions.scope_state_at(scope, version).await?))),
        None => Ok(None),
    }
}

/// What a write overwrote, as a header: JSON in ASCII, keys as the request named them. A long
/// report names the keys alone; the history has all of it.
pub(crate) fn overwrote_header(
    overwrote: &sessile_session::OverwriteNotes,
) -> Result<Option<HeaderValue>, ApiError> {
    const LONGEST: usize = 6000;
    if overwrote.is_empty() {
        return Ok(None);
    }
    let bare: std::collections::BTreeMap<&str, _> =
        overwrote.iter().map(|(key, told)| (Scope::of(key).1, told)).collect();
    let mut text = ascii(&answer::to_json(&bare)?);
    if text.len() > LONGEST {
        let names: std::collections::BTreeMap<&str, _> =
            bare.keys().map(|key| (*key, serde_json::json!({}))).collect();
        text = ascii(&answer::to_json(&names)?);
    }
    let value = HeaderValue::from_str(&text);
    value
        .map(Some)
        .map_err(|error| ApiError::Failed { action: "tell what was overwritten", source: error.into() })
}

/// JSON with everything that is not ASCII escaped.
fn ascii(json: &[u8]) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in String::from_utf8_lossy(json).chars() {
        match letter {
            ' '..='~' => text.push(letter),
            _ => {
                let mut units = [0; 2];
                letter
                    .encode_utf16(&mut units)
                    .iter()
                    .for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    text
}
