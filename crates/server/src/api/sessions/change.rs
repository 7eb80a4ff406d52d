use axum::extract::State;
use axum::response::Response;
use sessile_session::{Append, EventActions};

use crate::api::shared::Shared;
use crate::api::state_change::{Keys, StateChange};
use crate::describe::model::{
    Field, Kind, Model, ON_OVERWRITE, STATE_ABSENT, STATE_OPS, STATE_READ, STATE_REMOVE,
};
use crate::describe::route_doc::{Answer, BodyDoc, CONDITIONS, Doc, WINDOW};
use crate::http::auth::Principal;
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::idempotency_key::IdempotencyKey;
use crate::http::if_match::IfMatch;
use crate::http::path_params::OfSession;
use crate::http::query::Query;
use crate::http::response;

pub(crate) const CHANGE: Doc =
    Doc::new("sessions", "Changes the state of a session without running an agent.", Answer::One("Session"))
        .with_query(WINDOW)
        .with_headers(CONDITIONS)
        .with_body(BodyDoc::Required(&REQUEST))
        .failing(&[400, 403, 404, 409, 412, 413]);

static REQUEST: Model = Model::open(
    "UpdateSessionRequest",
    &[
        Field::defaulted("stateDelta", Kind::Map, "Keys to set, with their prefixes; null is a value."),
        STATE_REMOVE,
        STATE_OPS,
        STATE_READ,
        STATE_ABSENT,
        ON_OVERWRITE,
    ],
)
.with_some_of(&["stateDelta", "stateRemove", "stateOps"]);

/// Makes one commit, and responds with the session as of that commit. Without `If-Match` the change
/// is merged with the stored state, key by key.
pub(crate) async fn change(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    principal: Principal,
    if_match: IfMatch,
    request: IdempotencyKey,
    query: Query,
    body: Body,
) -> Result<Response, ApiError> {
    let StateChange { delta, guards } = StateChange::read(&body.fields(&REQUEST)?, Keys::Prefixed)?;
    principal.writes(delta.iter().map(|(key, _)| key))?;
    let (window, expect) = (query.window()?, if_match.session(&shared.sessions, &key).await?);
    let event = request.event(&*shared.http.ids).with_actions(EventActions::from_delta(delta));
    let append = Append::new(event).expecting(expect).guarded(guards);
    let changed = shared.sessions.change(&key, append, window).await;
    response::session(&changed.map_err(|error| request.failure(error))?)
}
