//! State of applications and users, without a session.

use axum::extract::State;
use axum::http::HeaderName;
use axum::response::Response;
use sessile_session::{ScopeKey, SessionError, StateWrite};
use sessile_state::Scope;

use crate::answer;
use crate::auth::Principal;
use crate::body::Body;
use crate::doc::{Answer, BodyDoc, CONDITIONS, Doc, Param};
use crate::error::ApiError;
use crate::etag::Tag;
use crate::idempotency_key::IdempotencyKey;
use crate::if_match::IfMatch;
use crate::json::{Field, Kind, Model, ON_OVERWRITE, STATE_ABSENT, STATE_OPS, STATE_READ, STATE_REMOVE};
use crate::place::{InApp, OfUser};
use crate::query::Query;
use crate::scope_history;
use crate::server::Shared;
use crate::state_change::{Keys, StateChange};

pub(crate) const READ_APP: Doc = Doc::new(
    "state",
    "The state of an application, keys without `app:`; its version is the ETag.",
    Answer::Object,
)
.with_query(AT)
.failing(&[404]);
pub(crate) const CHANGE_APP: Doc = Doc::new("state", "Changes the state of an application.", Answer::Object)
    .with_headers(CONDITIONS)
    .with_body(BodyDoc::Required(&REQUEST))
    .failing(&[400, 403, 409, 412, 413]);
pub(crate) const READ_USER: Doc =
    Doc::new("state", "The state of a user, keys without `user:`; its version is the ETag.", Answer::Object)
        .with_query(AT)
        .failing(&[403, 404]);
pub(crate) const CHANGE_USER: Doc = Doc::new("state", "Changes the state of a user.", Answer::Object)
    .with_headers(CONDITIONS)
    .with_body(BodyDoc::Required(&REQUEST))
    .failing(&[400, 403, 409, 412, 413]);

/// The state of an earlier version.
const AT: &[Param] =
    &[Param::new("version", "integer", "The state at this version of it; now if it is left out.")];

/// What a write with `onOverwrite: report` overwrote.
const OVERWROTE: HeaderName = HeaderName::from_static("sessile-overwrote");

static REQUEST: Model = Model::open(
    "UpdateStateRequest",
    &[
        Field::optional("stateDelta", Kind::Map, "Keys to set, without a prefix; null is a value."),
        STATE_REMOVE,
        STATE_OPS,
        STATE_READ,
        STATE_ABSENT,
        ON_OVERWRITE,
    ],
);

pub(crate) async fn read_app(
    State(shared): State<Shared>,
    InApp(app): InApp,
    query: Query,
) -> Result<Response, ApiError> {
    read(&shared, &ScopeKey::App(app), &query).await
}

pub(crate) async fn read_user(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    query: Query,
) -> Result<Response, ApiError> {
    read(&shared, &ScopeKey::User(app, user), &query).await
}

async fn read(shared: &Shared, scope: &ScopeKey, query: &Query) -> Result<Response, ApiError> {
    if let Some((version, state)) = scope_history::state_at(shared, scope, query).await? {
        return answer::tagged(&state, Tag::shared(version));
    }
    let state = shared.sessions.scope_state(scope).await?;
    answer::tagged(&*state.state, Tag::shared(state.version))
}

pub(crate) async fn change_app(
    State(shared): State<Shared>,
    InApp(app): InApp,
    principal: Principal,
    if_match: IfMatch,
    request: IdempotencyKey,
    body: Body,
) -> Result<Response, ApiError> {
    principal.writes([Scope::App.prefix()])?;
    change(&shared, ScopeKey::App(app), &principal, &if_match, request, &body).await
}

pub(crate) async fn change_user(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    principal: Principal,
    if_match: IfMatch,
    request: IdempotencyKey,
    body: Body,
) -> Result<Response, ApiError> {
    change(&shared, ScopeKey::User(app, user), &principal, &if_match, request, &body).await
}

/// One write, whose answer is the state as of that write.
async fn change(
    shared: &Shared,
    scope: ScopeKey,
    principal: &Principal,
    if_match: &IfMatch,
    request: IdempotencyKey,
    body: &Body,
) -> Result<Response, ApiError> {
    let StateChange { delta, guards } = StateChange::read(&body.fields(&REQUEST)?, Keys::Of(scope.scope()))?;
    let write = StateWrite {
        expect: if_match.scope(shared, &scope).await?,
        guards,
        request: request.0.clone(),
        principal: principal.name().map(str::to_owned),
        ..StateWrite::new(scope, delta)
    };
    let written = shared.sessions.write_state(write).await;
    let written = written.map_err(|error| request.failure(without_prefixes(error)))?;
    let mut response = answer::tagged(&*written.state, Tag::shared(written.version))?;
    if let Some(overwrote) = scope_history::overwrote_header(&written.overwrote)? {
        response.headers_mut().insert(OVERWROTE, overwrote);
    }
    Ok(response)
}

/// The error with keys as the request named them.
fn without_prefixes(error: SessionError) -> SessionError {
    match error {
        SessionError::Overwritten { current } => {
            let bare = current.into_iter().map(|(key, value)| (Scope::of(&key).1.to_owned(), value));
            SessionError::Overwritten { current: bare.collect() }
        }
        other => other,
    }
}
