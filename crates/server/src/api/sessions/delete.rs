use axum::extract::State;
use axum::response::Response;

use crate::api::shared::Shared;
use crate::describe::route_doc::{Answer, Doc, IF_MATCH};
use crate::http::error::{ApiError, advising};
use crate::http::if_match::IfMatch;
use crate::http::path_params::OfSession;
use crate::http::response;

pub(crate) const DELETE: Doc =
    Doc::new("sessions", "Deletes a session and its events, if it is there.", Answer::Null)
        .with_headers(IF_MATCH)
        .failing(&[400, 403, 412]);

pub(crate) async fn delete(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    if_match: IfMatch,
) -> Result<Response, ApiError> {
    let expect = if_match.session(&shared.sessions, &key).await?;
    let advice = "read the session to see whether it is there; deleting it again does no harm if it is not";
    if shared.sessions.delete_expecting(&key, expect).await.map_err(advising(advice))? {
        tracing::info!(session = %key, "deleted session");
    }
    response::json(&())
}
