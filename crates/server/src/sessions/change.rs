use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use sessile_session::{Event, OnConflict, Session, SessionError, Version};
use sessile_state::{Delta, Scope};

use crate::answer;
use crate::auth::Principal;
use crate::body::Body;
use crate::doc::{Answer, BodyDoc, Doc, IF_MATCH, WINDOW};
use crate::error::ApiError;
use crate::json::{Field, Fields, Kind, Model};
use crate::place::OfSession;
use crate::query::Query;
use crate::server::Shared;
use crate::size::check_session_delta;

pub(crate) const CHANGE: Doc =
    Doc::new("sessions", "Changes the state of a session without running an agent.", Answer::One("Session"))
        .with_query(WINDOW)
        .with_headers(IF_MATCH)
        .with_body(BodyDoc::Required(&REQUEST))
        .failing(&[400, 403, 404, 412, 413]);

static REQUEST: Model = Model::open(
    "UpdateSessionRequest",
    &[
        Field::required("stateDelta", Kind::Map, "Keys to set, with their prefixes; null is a value."),
        Field::optional("stateRemove", Kind::List(&Kind::Text), "Keys to remove, with their prefixes."),
    ],
);

/// A body with `stateRemove` needs no `stateDelta`.
static REMOVAL: Model = Model::open(
    "RemoveStateRequest",
    &[
        Field::defaulted("stateDelta", Kind::Map, "Keys to set."),
        Field::required("stateRemove", Kind::List(&Kind::Text), "Keys to remove."),
    ],
);

pub(crate) async fn change(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    principal: Principal,
    headers: HeaderMap,
    query: Query,
    body: Body,
) -> Result<Response, ApiError> {
    let delta = delta(&fields(&body)?)?;
    principal.writes(delta.iter().map(|(key, _)| key))?;
    let expected = answer::expected(&headers)?;
    let Some(mut session) = shared.sessions.get(&key, query.window()?).await? else {
        return Err(ApiError::not_found("Session not found"));
    };
    let mut event = Event::new("user").with_delta(&delta);
    event.invocation_id = format!("p-{}", shared.ids.new_id());
    commit(&shared, &mut session, event, expected).await?;
    answer::session(&session)
}

/// Appends an event to the session as it was just read, if it has the version that is expected; without
/// an expectation, to whatever it is now.
pub(crate) async fn commit(
    shared: &Shared,
    session: &mut Session,
    event: Event,
    expected: Option<Version>,
) -> Result<Arc<Event>, ApiError> {
    if let Some(expected) = expected.filter(|expected| *expected != session.version()) {
        let (key, scope, actual) = (session.key().clone(), Scope::Session, session.version());
        return Err(SessionError::Conflict { key, scope, expected, actual }.into());
    }
    check_session_delta(&shared.limits, session, &event.delta())?;
    let on_conflict = if expected.is_some() { OnConflict::Refuse } else { OnConflict::Merge };
    Ok(shared.sessions.append_with(session, event, on_conflict).await?)
}

/// What is to be changed. A key that is set and removed at once is refused.
pub(crate) fn delta(fields: &Fields<'_>) -> Result<Delta, ApiError> {
    let set = fields.state("stateDelta")?.unwrap_or_default();
    let removed = fields.texts("stateRemove");
    if let Some(key) = removed.iter().find(|key| set.contains_key(*key)) {
        return Err(ApiError::Unusable(format!("The key {key:?} is both set and removed; choose one")));
    }
    let mut delta: Delta = set.into_iter().collect();
    removed.iter().for_each(|key| delta.remove(key));
    Ok(delta)
}

/// A body with `stateRemove` needs no `stateDelta`.
fn fields(body: &Body) -> Result<Fields<'_>, ApiError> {
    body.fields(&REQUEST).or_else(|error| body.fields(&REMOVAL).map_err(|_| error))
}
