//! The memory that agents have of a user.

use axum::extract::State;
use axum::response::Response;
use sessile_session::{EventWindow, SessionError, SessionKey};

use super::shared::Shared;
use crate::describe::model::{Field, Kind, Model};
use crate::describe::route_doc::{Answer, BodyDoc, Doc};
use crate::http::body::Body;
use crate::http::error::ApiError;
use crate::http::path_params::OfUser;
use crate::http::response;

pub(crate) const REMEMBER: Doc = Doc::new("memory", "Adds a session to the memory.", Answer::Null)
    .with_body(BodyDoc::Required(&REQUEST))
    .failing(&[400, 403, 404]);

static REQUEST: Model =
    Model::open("UpdateMemoryRequest", &[Field::required("sessionId", Kind::Text, "The session.")]);

pub(crate) async fn remember(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    body: Body,
) -> Result<Response, ApiError> {
    let fields = body.fields(&REQUEST)?;
    let Some(memory) = &shared.memory else {
        return Err(ApiError::BadRequest("Memory service is not configured.".to_owned()));
    };
    let id = fields.text("sessionId").unwrap_or_default();
    let key = SessionKey::new(app, user, &id).map_err(SessionError::from)?;
    let Some(session) = shared.sessions.get(&key, EventWindow::ALL).await? else {
        return Err(ApiError::not_found("Session not found"));
    };
    memory.add_session(&session).await?;
    response::json(&())
}
