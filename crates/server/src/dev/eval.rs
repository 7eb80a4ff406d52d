//! Evaluations and recorded tests: Sessile has none, and says so in the forms that the web UI
//! reads.

use axum::response::Response;
use serde_json::json;

use crate::answer;
use crate::doc::{Answer, Doc};
use crate::error::ApiError;
use crate::place::InApp;

pub(crate) const NONE: Doc =
    Doc::new("dev", "A list that is always empty: Sessile evaluates nothing.", Answer::Any);

pub(crate) async fn empty(InApp(_): InApp) -> Result<Response, ApiError> {
    answer::json(&json!([]))
}

pub(crate) async fn no_sets(InApp(_): InApp) -> Result<Response, ApiError> {
    answer::json(&json!({ "evalSetIds": [] }))
}

pub(crate) async fn no_results(InApp(_): InApp) -> Result<Response, ApiError> {
    answer::json(&json!({ "evalResultIds": [] }))
}

pub(crate) async fn no_metrics(InApp(_): InApp) -> Result<Response, ApiError> {
    answer::json(&json!({ "metricsInfo": [] }))
}
