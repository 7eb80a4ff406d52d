use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use crate::answer;
use crate::doc::{Answer, Doc, IF_MATCH};
use crate::error::ApiError;
use crate::place::OfSession;
use crate::server::Shared;

pub(crate) const DELETE: Doc =
    Doc::new("sessions", "Deletes a session and its events, if it is there.", Answer::Null)
        .with_headers(IF_MATCH)
        .failing(&[400, 403, 412]);

pub(crate) async fn delete(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if shared.sessions.delete(&key, answer::expected(&headers)?).await? {
        tracing::info!(session = %key, "deleted session");
    }
    answer::json(&())
}
