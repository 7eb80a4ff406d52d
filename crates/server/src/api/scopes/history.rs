//! The history of shared state, page by page: who changed what.

use axum::extract::{OriginalUri, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use sessile_session::{ChangeRecord, HistoryPage, ScopeKey, Version};

use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, Doc, Param};
use crate::http::auth::Principal;
use crate::http::error::ApiError;
use crate::http::path_params::{InApp, OfUser};
use crate::http::percent::encoded;
use crate::http::query::Query;
use crate::http::response;

const PAGES: &[Param] = &[
    Param::new("key", "string", "Only changes of this key, without its prefix."),
    Param::new("before", "integer", "Only changes before this version; `next` of the page before."),
    Param::new("pageSize", "integer", "How many changes at most; 100 if it is left out, 1000 at most."),
];
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
    let mut response = response::json(&Page { changes, next: history.next })?;
    if let Some(next) = history.next {
        let key = key.map_or_else(String::new, |key| format!("&key={}", encoded(key)));
        let link = format!("<{path}?before={next}&pageSize={limit}{key}>; rel=\"next\"");
        let link = HeaderValue::from_str(&link).map_err(|error| ApiError::Failed {
            action: "write the link to the next page",
            source: error.into(),
        })?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}
