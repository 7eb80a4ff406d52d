use axum::extract::State;
use axum::response::Response;

use crate::answer;
use crate::doc::{Answer, Doc, WINDOW};
use crate::error::ApiError;
use crate::place::OfSession;
use crate::query::Query;
use crate::server::Shared;

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
        Some(session) => answer::session(&session),
        None => Err(ApiError::not_found("Session not found")),
    }
}
