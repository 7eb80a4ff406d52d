//! The settings of the web UI: its telemetry, its logo, and what it needs at its start.

use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde_json::json;

use crate::api::shared::Shared;
use crate::describe::model::{Field, Kind, Model};
use crate::describe::route_doc::{Answer, BodyDoc, Doc, Param};
use crate::http::auth::Principal;
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::response;

pub(crate) const TELEMETRY: Doc =
    Doc::new("dev", "Whether the web UI may report how it is used.", Answer::Object);
pub(crate) const SET_TELEMETRY: Doc =
    Doc::new("dev", "Allows the web UI to report how it is used, or not.", Answer::Object)
        .with_body(BodyDoc::Required(&REQUEST))
        .with_headers(&[Param::new("x-adk-telemetry-request", "string", "Must be `true`.")])
        .failing(&[400, 403])
        .admin();
pub(crate) const RUNTIME: Doc =
    Doc::new("dev", "The settings that the web UI starts with.", Answer::Object).open();
pub(crate) const LOGO: Doc =
    Doc::new("dev", "The logo of the web UI; Sessile sets none.", Answer::Object).open();

static REQUEST: Model =
    Model::open("TelemetryRequest", &[Field::required("telemetry", Kind::Flag, "Allowed or not.")]);

pub(crate) async fn telemetry(State(shared): State<Shared>) -> Result<Response, ApiError> {
    response::json(&json!({ "telemetry": shared.telemetry.load(Ordering::Relaxed) }))
}

pub(crate) async fn set_telemetry(
    State(shared): State<Shared>,
    principal: Principal,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    principal.is_admin()?;
    if headers.get("x-adk-telemetry-request").is_none_or(|value| value != "true") {
        return Err(ApiError::BadRequest("Forbidden: missing required security header".to_owned()));
    }
    let allowed = body.fields(&REQUEST)?.flag("telemetry");
    shared.telemetry.store(allowed, Ordering::Relaxed);
    response::json(&json!({ "telemetry": allowed }))
}

pub(crate) async fn runtime(State(shared): State<Shared>) -> Result<Response, ApiError> {
    let telemetry = shared.telemetry.load(Ordering::Relaxed);
    let mut response = response::json(&json!({ "backendUrl": "", "telemetry": telemetry }))?;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn logo() -> Result<Response, ApiError> {
    response::json(&json!({ "logo_text": null, "logo_image_url": null }))
}
