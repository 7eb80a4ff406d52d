//! State of applications and users, without a session.

use axum::extract::State;
use axum::response::Response;
use sessile_session::StateMap;
use sessile_state::{Delta, Scope};

use crate::answer;
use crate::auth::Principal;
use crate::body::Body;
use crate::doc::{Answer, BodyDoc, Doc};
use crate::error::ApiError;
use crate::json::{Field, Kind, Model};
use crate::place::{InApp, OfUser};
use crate::server::Shared;
use crate::size::check_scope_delta;

pub(crate) const READ_APP: Doc =
    Doc::new("state", "The state of an application, keys without `app:`.", Answer::Object);
pub(crate) const CHANGE_APP: Doc = Doc::new("state", "Changes the state of an application.", Answer::Object)
    .with_body(BodyDoc::Required(&REQUEST))
    .failing(&[403, 413]);
pub(crate) const READ_USER: Doc =
    Doc::new("state", "The state of a user, keys without `user:`.", Answer::Object).failing(&[403]);
pub(crate) const CHANGE_USER: Doc = Doc::new("state", "Changes the state of a user.", Answer::Object)
    .with_body(BodyDoc::Required(&REQUEST))
    .failing(&[403, 413]);

static REQUEST: Model = Model::open(
    "UpdateStateRequest",
    &[
        Field::optional("stateDelta", Kind::Map, "Keys to set, without a prefix; null is a value."),
        Field::optional("stateRemove", Kind::List(&Kind::Text), "Keys to remove, without a prefix."),
    ],
);

pub(crate) async fn read_app(State(shared): State<Shared>, InApp(app): InApp) -> Result<Response, ApiError> {
    answer::json(&shared.sessions.app_state(&app).await?)
}

pub(crate) async fn change_app(
    State(shared): State<Shared>,
    InApp(app): InApp,
    principal: Principal,
    body: Body,
) -> Result<Response, ApiError> {
    let delta = delta(&body)?;
    principal.writes([Scope::App.prefix()])?;
    let state = shared.sessions.app_state(&app).await?;
    check_scope_delta(&shared.limits, Scope::App, &state, &delta)?;
    shared.sessions.write_app_state(&app, &delta).await?;
    answer::json(&shared.sessions.app_state(&app).await?)
}

pub(crate) async fn read_user(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
) -> Result<Response, ApiError> {
    answer::json(&shared.sessions.user_state(&app, &user).await?)
}

pub(crate) async fn change_user(
    State(shared): State<Shared>,
    OfUser { app, user, .. }: OfUser,
    body: Body,
) -> Result<Response, ApiError> {
    let delta = delta(&body)?;
    let state: StateMap = shared.sessions.user_state(&app, &user).await?;
    check_scope_delta(&shared.limits, Scope::User, &state, &delta)?;
    shared.sessions.write_user_state(&app, &user, &delta).await?;
    answer::json(&shared.sessions.user_state(&app, &user).await?)
}

fn delta(body: &Body) -> Result<Delta, ApiError> {
    let fields = body.fields(&REQUEST)?;
    crate::sessions::change::delta(&fields)
}
