use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Value, json};

use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, Doc};
use crate::http::auth::Principal;
use crate::http::error::ApiError;
use crate::http::path_params::{InApp, param};
use crate::http::response;

pub(crate) const EVENT: Doc =
    Doc::new("dev", "The span in which an event was made; of one's own runs only.", Answer::Object)
        .failing(&[404]);
pub(crate) const SESSION: Doc =
    Doc::new("dev", "The spans of a session's recent runs; of one's own runs only.", Answer::Any);

pub(crate) async fn event(
    State(shared): State<Shared>,
    InApp(app): InApp,
    Last(event): Last,
    principal: Principal,
) -> Result<Response, ApiError> {
    let Some(span) = shared.traces.of_event(&app, &event, principal.user()) else {
        return Err(ApiError::not_found("Trace not found"));
    };
    let mut attributes = Value::Object(span.attributes.clone());
    attributes["span_id"] = json!(span.span_id);
    response::json(&attributes)
}

pub(crate) async fn session(
    State(shared): State<Shared>,
    InApp(app): InApp,
    Last(session): Last,
    principal: Principal,
) -> Result<Response, ApiError> {
    let spans = shared.traces.of_session(&app, &session, principal.user());
    response::json(&spans.iter().map(|span| &**span).collect::<Vec<_>>())
}

/// The last part of the path.
pub(crate) struct Last(String);

impl FromRequestParts<Shared> for Last {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, ApiError> {
        param(parts, shared, "id").await.map(Self)
    }
}
