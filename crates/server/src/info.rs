//! What is served here.

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use crate::answer;
use crate::doc::{Answer, Doc, Param};
use crate::error::ApiError;
use crate::query::Query;
use crate::server::Shared;

pub(crate) const VERSION: Doc = Doc::new("server", "The server's version.", Answer::Object).open();

pub(crate) const APPS: Doc = Doc::new("apps", "Lists the applications.", Answer::Texts)
    .with_query(&[Param::new("detailed", "boolean", "What is known of each, too.")]);

pub(crate) async fn version() -> Result<Response, ApiError> {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    answer::json(
        &json!({ "version": env!("CARGO_PKG_VERSION"), "language": "rust", "language_version": rust }),
    )
}

pub(crate) async fn apps(State(shared): State<Shared>, query: Query) -> Result<Response, ApiError> {
    query.flag("detailed")?;
    answer::json(&shared.apps.names().collect::<Vec<_>>())
}
