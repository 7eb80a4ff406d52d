//! Evaluations and recorded tests: Sessile has none, so these are empty lists in the forms that the
//! web UI reads.

use axum::response::Response;
use serde_json::json;

use crate::describe::route_doc::{Answer, Doc};
use crate::http::error::ApiError;
use crate::http::path_params::InApp;
use crate::http::response;

pub(crate) const NONE: Doc =
    Doc::new("dev", "A list that is always empty: Sessile evaluates nothing.", Answer::Any);

pub(crate) async fn empty(InApp(_): InApp) -> Result<Response, ApiError> {
    response::json(&json!([]))
}

pub(crate) async fn no_sets(InApp(_): InApp) -> Result<Response, ApiError> {
    response::json(&json!({ "evalSetIds": [] }))
}

pub(crate) async fn no_results(InApp(_): InApp) -> Result<Response, ApiError> {
    response::json(&json!({ "evalResultIds": [] }))
}

pub(crate) async fn no_metrics(InApp(_): InApp) -> Result<Response, ApiError> {
    response::json(&json!({ "metricsInfo": [] }))
}
