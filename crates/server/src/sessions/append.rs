use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use sessile_session::{Event, EventWindow};

use super::change::commit;
use crate::answer;
use crate::auth::Principal;
use crate::body::Body;
use crate::doc::{Answer, BodyDoc, Doc, IF_MATCH};
use crate::error::ApiError;
use crate::json::EVENT;
use crate::place::OfSession;
use crate::server::Shared;

pub(crate) const APPEND: Doc = Doc::new(
    "sessions",
    "Appends an event and what it changes, as a session service of another runtime does.",
    Answer::One("Event"),
)
.with_headers(IF_MATCH)
.with_body(BodyDoc::Required(&EVENT))
.failing(&[400, 403, 404, 409, 412, 413])
.admin();

/// An event says what an agent did, and an agent goes on from there; so only whoever runs agents may append
/// it. The same event again, with its id and its time, answers as the first time.
pub(crate) async fn append(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    principal: Principal,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    principal.is_admin()?;
    let event: Event = body.whole(&EVENT)?;
    if event.is_partial() {
        let text = "A partial event is never stored; append the whole event when it is complete";
        return Err(ApiError::BadRequest(text.to_owned()));
    }
    let expected = answer::expected(&headers)?;
    let Some(mut session) = shared.sessions.get(&key, EventWindow::NONE).await? else {
        return Err(ApiError::not_found("Session not found"));
    };
    let event = commit(&shared, &mut session, event, expected).await?;
    let mut response = answer::json(&*event)?;
    response.headers_mut().insert(header::ETAG, answer::etag(session.version()));
    Ok(response)
}
