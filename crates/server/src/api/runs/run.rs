use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::detached::{accepted, detach};
use super::run_request::{AuthorizedRun, REQUEST};
use super::running::Running;
use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, BodyDoc, Doc};
use crate::http::auth::Principal;
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::response;

pub(crate) const RUN: Doc =
    Doc::new("runs", "Runs an agent and answers with its events.", Answer::List("Event"))
        .with_body(BodyDoc::Required(&REQUEST))
        .failing(&[400, 403, 404, 409, 413, 429, 500, 503])
        .timed_by_run();

/// Runs an agent. A client that disconnects ends the run, unless it is detached: then the response
/// has the path where to follow it.
pub(crate) async fn run(
    State(shared): State<Shared>,
    principal: Principal,
    body: Body,
) -> Result<Response, ApiError> {
    let authorized = AuthorizedRun::read(&shared, &principal, &body, false)?;
    drop(body);
    if authorized.detach {
        let split = authorized.split_artifacts;
        let log = detach(Running::begin(&shared, authorized).await?, split, &shared);
        return Ok(accepted(&log).into_response());
    }
    let mut running = Running::begin(&shared, authorized).await?;
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event?);
    }
    response::json(&events.iter().map(|event| &**event).collect::<Vec<_>>())
}
