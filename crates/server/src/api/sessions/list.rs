use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, State};
use axum::http::{HeaderValue, Uri, header};
use axum::response::Response;
use futures_util::stream::{self, StreamExt};
use sessile_session::{ListSessions, Page, Session, SessionService, Unreadable};

use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, Doc, Param};
use crate::http::auth::Principal;
use crate::http::error::{ApiError, chain};
use crate::http::path_params::{InApp, OfUser};
use crate::http::percent::encoded;
use crate::http::query::Query;
use crate::http::response;

const PAGING: &[Param] = &[
    Param::new("pageSize", "integer", "At most this many, up to 1000; all of them if left out."),
    Param::new("pageToken", "string", "Where the page before ended; see the Link header."),
    Param::new("newestFirst", "boolean", "The most recently changed first; otherwise last."),
];

pub(crate) const LIST: Doc = Doc::new(
    "sessions",
    "Lists a user's sessions with their state, without events.",
    Answer::List("Session"),
)
.with_query(PAGING)
.failing(&[403]);

pub(crate) const LIST_ALL: Doc =
    Doc::new("sessions", "Lists the sessions of all users of an application.", Answer::List("Session"))
        .with_query(PAGING)
        .failing(&[403])
        .admin();

/// How many sessions are read at once.
const PAGE: usize = 1000;

pub(crate) async fn list(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, ApiError> {
    answer(&shared, ListSessions { app, user: Some(user), ..ListSessions::default() }, &uri, &query).await
}

pub(crate) async fn list_all(
    State(shared): State<Shared>,
    InApp(app): InApp,
    principal: Principal,
    OriginalUri(uri): OriginalUri,
    query: Query,
) -> Result<Response, ApiError> {
    principal.is_admin()?;
    answer(&shared, ListSessions { app, ..ListSessions::default() }, &uri, &query).await
}

async fn answer(
    shared: &Shared,
    mut list: ListSessions,
    uri: &Uri,
    query: &Query,
) -> Result<Response, ApiError> {
    let size = query.count::<usize>("pageSize")?;
    list.page_token = query.text("pageToken").map(str::to_owned);
    list.newest_first = query.flag("newestFirst")?;
    list.page_size = size.filter(|size| *size > 0).unwrap_or(PAGE).min(PAGE);
    let page = shared.sessions.list(&list).await?;
    let paged = size.is_some() || list.page_token.is_some();
    match page.next.clone() {
        Some(next) if paged => {
            let mut response = one(&page)?;
            response.headers_mut().insert(header::LINK, link(uri, &list, &next)?);
            Ok(response)
        }
        Some(_) => all(shared.sessions.clone(), list, page),
        None => one(&page),
    }
}

/// A page as the whole response.
fn one(page: &Page) -> Result<Response, ApiError> {
    let mut response = response::json(&shown(page))?;
    note_unreadable(page, &mut response);
    Ok(response)
}

fn note_unreadable(page: &Page, response: &mut Response) {
    log_unreadable(page);
    if !page.unreadable.is_empty() {
        response.headers_mut().insert(response::UNREADABLE, page.unreadable.len().into());
    }
}

fn log_unreadable(page: &Page) {
    for Unreadable { key, error } in &page.unreadable {
        tracing::error!(session.id = %key.id(), %error, "session {key} cannot be read, and is left out of a list");
    }
}

/// Sessions of evaluations are not shown, as in ADK.
fn shown(page: &Page) -> Vec<&Session> {
    let hidden = ["adk-eval-session-", "___eval___session___"];
    let is_hidden = |session: &Session| hidden.iter().any(|prefix| session.key().id().starts_with(prefix));
    page.sessions.iter().filter(|session| !is_hidden(session)).collect()
}

/// The address of the next page.
fn link(uri: &Uri, list: &ListSessions, next: &str) -> Result<HeaderValue, ApiError> {
    let pairs = [
        ("pageSize", list.page_size.to_string()),
        ("newestFirst", list.newest_first.to_string()),
        ("pageToken", next.to_owned()),
    ];
    let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let text = format!("<{}?{}>; rel=\"next\"", uri.path(), query.join("&"));
    HeaderValue::from_str(&text)
        .map_err(|error| ApiError::Failed { action: "write the link to the next page", source: error.into() })
}

/// One list of all pages, sent while it is read, so that memory holds a page at a time. If a later
/// page cannot be read, the response is cut off, which clients notice. The header counts the
/// unreadable sessions of the first page only: it is sent before the others are read.
fn all(sessions: SessionService, list: ListSessions, first: Page) -> Result<Response, ApiError> {
    let start = items(&first)?;
    let mut response = Response::new(Body::empty());
    note_unreadable(&first, &mut response);
    let begun = !start.is_empty();
    let rest = stream::try_unfold((sessions, list, first.next, begun), |state| async move {
        let (sessions, mut list, next, begun) = state;
        let Some(next) = next else { return Ok::<_, ApiError>(None) };
        list.page_token = Some(next);
        let page = sessions.list(&list).await?;
        log_unreadable(&page);
        let items = items(&page)?;
        let comma: &[u8] = if begun && !items.is_empty() { b"," } else { b"" };
        let piece = Bytes::from([comma, &items].concat());
        Ok(Some((piece, (sessions, list, page.next, begun || !items.is_empty()))))
    });
    let start = Bytes::from([b"[", start.as_slice()].concat());
    let body = stream::iter([Ok(start)]).chain(rest).chain(stream::iter([Ok(Bytes::from_static(b"]"))]));
    let body = body.inspect(|piece| {
        if let Err(error) = piece {
            tracing::error!(error = %chain(error), "a list of sessions broke off");
        }
    });
    *response.body_mut() = Body::from_stream(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// The sessions of a page as JSON, without the brackets of the list.
fn items(page: &Page) -> Result<Vec<u8>, ApiError> {
    let mut list = response::to_json(&shown(page))?;
    list.pop();
    list.remove(0);
    Ok(list)
}
