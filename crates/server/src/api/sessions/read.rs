use axum::extract::State;
use axum::response::Response;

use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, Doc, WINDOW};
use crate::http::error::ApiError;
use crate::http::path_params::OfSession;
use crate::http::query::Query;
use crate::http::response;

pub(crate) const READ: Doc =
    Doc::new("sessions", "Reads a session with its events; its version is the ETag.", Answer::One("Session"))
        .with_query(WINDOW)
        .failing(&[403, 404]);

pub(crate) async fn read(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    query: Query,
) -> Result<Response, ApiError> {
    match shared.sessions.get(&key, query.window()?).await? {
        Some(session) => response::session(&session),
        None => Err(ApiError::not_found("Session not found")),
    }
}
