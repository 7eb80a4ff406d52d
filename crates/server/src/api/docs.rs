//! The OpenAPI document, and a page that shows it.

use axum::extract::State;
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};

use super::shared::Shared;
use crate::describe::route_doc::{Answer, Doc};

pub(crate) const DOCUMENT: Doc = Doc::new("server", "This document.", Answer::Object).open();
pub(crate) const PAGE: Doc =
    Doc::new("server", "A page that shows this document.", Answer::Media("text/html")).open();

pub(crate) async fn document(State(shared): State<Shared>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], shared.openapi.text()).into_response()
}

pub(crate) async fn page() -> Html<&'static str> {
    Html(include_str!("docs.html"))
}
