use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use sessile_session::{Event, EventWindow, Session, SessionKey, Version};

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
/// it. The same event again, with its id, answers as the first time, whatever the session is now.
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
    let expected = match expected {
        Some(expected)
            if expected < session.version() && is_after(&shared, &key, expected, &event).await? =>
        {
            None
        }
        expected => expected,
    };
    let event = commit_once(&shared, &mut session, event, expected).await?;
    let mut response = answer::json(&*event)?;
    response.headers_mut().insert(header::ETAG, answer::etag(session.version()));
    Ok(response)
}

/// Whether an event with this id was appended after a version: then the one who expects that version asks
/// again, because the answer did not arrive.
async fn is_after(
    shared: &Shared,
    key: &SessionKey,
    version: Version,
    event: &Event,
) -> Result<bool, ApiError> {
    if event.id.is_empty() {
        return Ok(false);
    }
    let session = shared.sessions.get(key, EventWindow::after_version(version)).await?;
    Ok(session.is_some_and(|session| session.events().iter().any(|other| other.id == event.id)))
}

/// Appends an event. One without a time got the server's; so the same event again has the time that is stored.
async fn commit_once(
    shared: &Shared,
    session: &mut Session,
    event: Event,
    expected: Option<Version>,
) -> Result<Arc<Event>, ApiError> {
    let again = (event.timestamp == 0.0 && !event.id.is_empty()).then(|| event.clone());
    let refused = match commit(shared, session, event, expected).await {
        Err(refused @ ApiError::Conflict(_)) => refused,
        outcome => return outcome,
    };
    let Some(mut again) = again else { return Err(refused) };
    let stored = shared.sessions.get(session.key(), EventWindow::ALL).await?;
    let stored = stored.iter().flat_map(|session| session.events()).find(|other| other.id == again.id);
    match stored {
        Some(stored) => {
            again.timestamp = stored.timestamp;
            commit(shared, session, again, expected).await
        }
        None => Err(refused),
    }
}
