//! The state of applications and users: read and changed without a session.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use sessile_session::{OverwriteNotes, ScopeKey, SessionError, StateMap, StateWrite, Version};
use sessile_state::Scope;

use crate::api::shared::Shared;
use crate::api::state_change::{Keys, StateChange};
use crate::describe::model::{
    Field, Kind, Model, ON_OVERWRITE, STATE_ABSENT, STATE_OPS, STATE_READ, STATE_REMOVE,
};
use crate::describe::route_doc::{Answer, BodyDoc, CONDITIONS, Doc, Param};
use crate::http::auth::Principal;
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::etag::Tag;
use crate::http::idempotency_key::IdempotencyKey;
use crate::http::if_match::IfMatch;
use crate::http::path_params::{InApp, OfUser};
use crate::http::query::Query;
use crate::http::response;

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
    if let Some((version, state)) = state_at(shared, scope, query).await? {
        return response::tagged(&state, Tag::shared(version));
    }
    let state = shared.sessions.scope_state(scope).await?;
    response::tagged(&*state.state, Tag::shared(state.version))
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

/// Makes one write, and responds with the state as of that write.
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
        expect: if_match.scope(&shared.sessions, &scope).await?,
        guards,
        request: request.0.clone(),
        principal: principal.name().map(str::to_owned),
        ..StateWrite::new(scope, delta)
    };
    let written = shared.sessions.write_state(write).await;
    let written = written.map_err(|error| request.failure(without_prefixes(error)))?;
    let mut response = response::tagged(&*written.state, Tag::shared(written.version))?;
    if let Some(overwrote) = overwrote_header(&written.overwrote)? {
        response.headers_mut().insert(response::OVERWROTE, overwrote);
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

/// The state at the version in the query; `None` if there is none in it.
async fn state_at(
    shared: &Shared,
    scope: &ScopeKey,
    query: &Query,
) -> Result<Option<(Version, StateMap)>, ApiError> {
    match query.count::<Version>("version")? {
        Some(version) => Ok(Some((version, shared.sessions.scope_state_at(scope, version).await?))),
        None => Ok(None),
    }
}

/// The values that a write overwrote, as a header: JSON in ASCII, keys as the request named them. A
/// long report has the keys alone; the history has all of it.
fn overwrote_header(overwrote: &OverwriteNotes) -> Result<Option<HeaderValue>, ApiError> {
    const LONGEST: usize = 6000;
    if overwrote.is_empty() {
        return Ok(None);
    }
    let bare: BTreeMap<&str, _> = overwrote.iter().map(|(key, told)| (Scope::of(key).1, told)).collect();
    let mut text = ascii(&response::to_json(&bare)?);
    if text.len() > LONGEST {
        let names: BTreeMap<&str, _> = bare.keys().map(|key| (*key, serde_json::json!({}))).collect();
        text = ascii(&response::to_json(&names)?);
    }
    let value = HeaderValue::from_str(&text);
    value
        .map(Some)
        .map_err(|error| ApiError::Failed { action: "report what was overwritten", source: error.into() })
}

/// JSON with everything that is not ASCII escaped.
fn ascii(json: &[u8]) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in String::from_utf8_lossy(json).chars() {
        match letter {
            ' '..='~' => text.push(letter),
            _ => {
                let mut units = [0; 2];
                letter
                    .encode_utf16(&mut units)
                    .iter()
                    .for_each(|unit| text.push_str(&format!("\\u{unit:04x}")));
            }
        }
    }
    text
}
