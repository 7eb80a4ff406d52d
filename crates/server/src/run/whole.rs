use axum::extract::State;
use axum::response::{IntoResponse, Response};

use super::detached::detach;
use super::order::{Order, REQUEST};
use super::running::Running;
use crate::answer;
use crate::auth::Principal;
use crate::body::Body;
use crate::doc::{Answer, BodyDoc, Doc};
use crate::error::ApiError;
use crate::server::Shared;

pub(crate) const RUN: Doc =
    Doc::new("runs", "Runs an agent and answers with its events.", Answer::List("Event"))
        .with_body(BodyDoc::Required(&REQUEST))
        .failing(&[400, 403, 404, 409, 413, 429, 500, 503]);

/// Runs an agent. A client that goes away ends the run, unless it is detached: then the answer says
/// where to follow it.
pub(crate) async fn run(
    State(shared): State<Shared>,
    principal: Principal,
    body: Body,
) -> Result<Response, ApiError> {
    let order = Order::read(&shared, &principal, &body, false)?;
    drop(body);
    if order.detach {
        let split = order.split_artifacts;
        let log = detach(Running::begin(&shared, order).await?, split, &shared);
        return Ok(log.accepted().into_response());
    }
    let mut running = Running::begin(&shared, order).await?;
    let mut events = Vec::new();
    while let Some(event) = running.next().await {
        events.push(event?);
    }
    answer::json(&events.iter().map(|event| &**event).collect::<Vec<_>>())
}
