use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use sessile_session::{Append, Event};

use crate::api::shared::Shared;
use crate::api::state_change::BesideEvent;
use crate::describe::model::EVENT;
use crate::describe::route_doc::{Answer, BodyDoc, Doc, IF_MATCH};
use crate::http::auth::Principal;
use crate::http::body::Body;
use crate::http::error::{ApiError, advising};
use crate::http::etag::Tag;
use crate::http::if_match::IfMatch;
use crate::http::path_params::OfSession;
use crate::http::response::{self, UPDATE_TIME};

pub(crate) const APPEND: Doc = Doc::new(
    "sessions",
    "Appends an event and what it changes, as a session service of another runtime does.",
    Answer::One("Event"),
)
.with_headers(IF_MATCH)
.with_body(BodyDoc::Required(&EVENT))
.failing(&[400, 403, 404, 409, 412, 413])
.admin();

/// Appends an event. Agents trust the events of a session, so only callers that run agents may
/// append them. A retry with the same event id gets the first response, whatever the session is
/// now. Nothing is read before the commit, unless `If-Match` has several tags.
pub(crate) async fn append(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    principal: Principal,
    if_match: IfMatch,
    body: Body,
) -> Result<Response, ApiError> {
    principal.is_admin()?;
    let mut fields = body.fields(&EVENT)?;
    let beside = BesideEvent::read(&fields.take("actions"))?;
    let mut event: Event = body.whole()?;
    beside.complete(&mut event);
    if event.is_partial() {
        let text = "A partial event is never stored; append the whole event when it is complete";
        return Err(ApiError::BadRequest(text.to_owned()));
    }
    let expect = if_match.session(&shared.sessions, &key).await?;
    let append = Append::new(event).expecting(expect).guarded(beside.guards);
    let appended = shared.sessions.append_answering(&key, append).await;
    let appended = appended.map_err(advising("send the same event with its id again"))?;
    let mut response = response::tagged(&*appended.event, Tag::from(&appended))?;
    response.headers_mut().insert(UPDATE_TIME, seconds(appended.update_time)?);
    Ok(response)
}

/// A time as JSON would print it.
fn seconds(time: f64) -> Result<HeaderValue, ApiError> {
    HeaderValue::try_from(serde_json::Value::from(time).to_string())
        .map_err(|source| ApiError::Failed { action: "write the answer", source: source.into() })
}
