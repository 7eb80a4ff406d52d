//! Liveness and readiness.

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::shared::Shared;
use crate::describe::route_doc::{Answer, Doc};
use crate::http::error::ApiError;
use crate::http::response;

pub(crate) const HEALTH: Doc = Doc::new("server", "Whether the server is alive.", Answer::Object).open();

pub(crate) const READY: Doc =
    Doc::new("server", "Whether the store can be reached.", Answer::Object).failing(&[503]).open();

pub(crate) async fn health() -> Result<Response, ApiError> {
    response::json(&json!({ "status": "ok" }))
}

/// Reads from the store: the state of an application whose name no real one has.
pub(crate) async fn ready(State(shared): State<Shared>) -> Result<Response, ApiError> {
    shared.sessions.app_state("sessile:ready").await?;
    response::json(&json!({ "status": "ok" }))
}
