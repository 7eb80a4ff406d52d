//! Earlier versions of a session: read, restored by a rewind, and forked.

use axum::extract::State;
use axum::response::Response;
use sessile_artifact::RewindError;
use sessile_session::{EventWindow, Version};

use crate::api::shared::Shared;
use crate::describe::model::{Field, Kind, Model};
use crate::describe::route_doc::{Answer, BodyDoc, Doc, Param};
use crate::http::body::Body;
use crate::http::error::{ApiError, advising};
use crate::http::path_params::OfSession;
use crate::http::query::Query;
use crate::http::response;

pub(crate) const STATE: Doc =
    Doc::new("history", "The session's own state at a version, or now.", Answer::Object)
        .with_query(&[Param::new("version", "integer", "Which version; 0 is the initial state.")])
        .failing(&[403, 404]);
pub(crate) const REWIND: Doc = Doc::new(
    "history",
    "Undoes everything since an invocation began, artifacts included.",
    Answer::One("Session"),
)
.with_body(BodyDoc::Required(&REWIND_REQUEST))
.failing(&[403, 404, 412]);
pub(crate) const FORK: Doc =
    Doc::new("history", "Makes a new session that begins as this one was.", Answer::One("Session"))
        .with_body(BodyDoc::Optional(&FORK_REQUEST))
        .failing(&[403, 404, 409]);

static REWIND_REQUEST: Model = Model::open(
    "RewindRequest",
    &[Field::required("rewindBeforeInvocationId", Kind::Text, "The first invocation that is undone.")],
);

static FORK_REQUEST: Model = Model::open(
    "ForkRequest",
    &[
        Field::optional("version", Kind::Integer, "The version it begins as; the newest if left out."),
        Field::optional("sessionId", Kind::Text, "The new id; one is made if it is left out."),
    ],
);

pub(crate) async fn state(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    query: Query,
) -> Result<Response, ApiError> {
    match query.count::<Version>("version")? {
        Some(version) => response::json(&shared.sessions.state_at(&key, version).await?),
        None => {
            let session = shared.sessions.get(&key, EventWindow::NONE).await?;
            let session = session.ok_or_else(|| ApiError::not_found("Session not found"))?;
            let own = |key: &str| sessile_state::Scope::of(key).0 == sessile_state::Scope::Session;
            let state: std::collections::BTreeMap<_, _> =
                session.state().iter().filter(|(key, _)| own(key)).collect();
            response::json(&state)
        }
    }
}

pub(crate) async fn rewind(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    body: Body,
) -> Result<Response, ApiError> {
    let fields = body.fields(&REWIND_REQUEST)?;
    let invocation = fields.text("rewindBeforeInvocationId").unwrap_or_default();
    let session = match &shared.artifacts {
        Some(artifacts) => {
            sessile_artifact::rewind(&shared.sessions, artifacts.as_ref(), &key, &invocation).await?
        }
        None => shared.sessions.rewind(&key, &invocation).await.map_err(RewindError::from)?,
    };
    response::session(&session)
}

pub(crate) async fn fork(
    State(shared): State<Shared>,
    OfSession(key): OfSession,
    body: Body,
) -> Result<Response, ApiError> {
    let fields = body.optional_fields(&FORK_REQUEST)?;
    let version = match fields.as_ref().and_then(|fields| fields.integer("version")) {
        Some(version) => Version::try_from(version).map_err(|_| {
            ApiError::Unusable(format!("There is no version {version}; versions begin with 0"))
        })?,
        None => {
            let session = shared.sessions.get(&key, EventWindow::NONE).await?;
            session.ok_or_else(|| ApiError::not_found("Session not found"))?.version()
        }
    };
    let id = fields.as_ref().and_then(|fields| fields.text("sessionId"));
    let advice = "list the user's sessions to see whether the fork is there";
    let fork = shared.sessions.fork(&key, version, id.as_deref()).await;
    response::session(&fork.map_err(advising(advice))?)
}
