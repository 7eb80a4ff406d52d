use sessile_agent::{RunConfig, RunRequest, Runner, Streaming};
use sessile_session::{SessionError, SessionKey};

use crate::api::shared::Shared;
use crate::api::state_change::{Keys, StateChange};
use crate::describe::model::{
    CONTENT, Field, Kind, Model, ON_OVERWRITE, STATE_ABSENT, STATE_OPS, STATE_READ, STATE_REMOVE,
};
use crate::http::auth::Principal;
use crate::http::body::Body;
use crate::http::error::ApiError;

pub(crate) static REQUEST: Model = Model::open(
    "RunAgentRequest",
    &[
        Field::optional("appName", Kind::Text, "The application; the server's default if left out."),
        Field::required("userId", Kind::Text, "The user."),
        Field::required("sessionId", Kind::Text, "The session."),
        Field::optional("newMessage", Kind::Object(&CONTENT), "What the user says."),
        Field::defaulted("streaming", Kind::Flag, "Whether answers come in pieces too."),
        Field::optional(
            "stateDelta",
            Kind::Map,
            "Keys to set, with their prefixes; committed with the message.",
        ),
        STATE_REMOVE,
        STATE_OPS,
        STATE_READ,
        STATE_ABSENT,
        ON_OVERWRITE,
        Field::optional("functionCallEventId", Kind::Text, "The event whose call is answered."),
        Field::optional("invocationId", Kind::Text, "The invocation to go on with."),
        Field::optional("customMetadata", Kind::Notes, "Notes for every event of the run."),
        Field::optional("serviceTier", Kind::Text, "Accepted, and not used."),
        Field::defaulted("detach", Kind::Flag, "Whether the run goes on when its client is gone."),
    ],
);

/// A run that a client asked for and may have.
pub(crate) struct AuthorizedRun {
    pub(crate) key: SessionKey,
    pub(crate) runner: Runner,
    pub(crate) request: RunRequest,
    /// Whether it continues when its client is gone.
    pub(crate) detach: bool,
    /// Whether artifacts are sent in a frame of their own, as ADK's web UI expects them.
    pub(crate) split_artifacts: bool,
}

impl AuthorizedRun {
    /// Reads a request. `pieces` is whether this endpoint can stream pieces of answers.
    pub(crate) fn read(
        shared: &Shared,
        principal: &Principal,
        body: &Body,
        pieces: bool,
    ) -> Result<Self, ApiError> {
        let fields = body.fields(&REQUEST)?;
        let user = fields.text("userId").unwrap_or_default();
        principal.acts_for(&user)?;
        let app = fields.text("appName").filter(|app| !app.is_empty()).or_else(|| shared.default_app.clone());
        let Some(app) = app else {
            let text = "app_name is required when ADK_DEFAULT_APP_NAME is not set";
            return Err(ApiError::BadRequest(text.to_owned()));
        };
        let StateChange { delta, guards } = StateChange::read(&fields, Keys::Prefixed)?;
        principal.writes(delta.iter().map(|(key, _)| key))?;
        let runner = shared.apps.find(&app)?.runner().clone();
        let id = fields.text("sessionId").unwrap_or_default();
        let key = SessionKey::new(app, &user, &id).map_err(SessionError::from)?;
        let streaming = match pieces && fields.flag("streaming") {
            true => Streaming::Pieces,
            false => Streaming::Whole,
        };
        let config = RunConfig {
            streaming,
            custom_metadata: fields.map("customMetadata")?.unwrap_or_default(),
            max_llm_calls: shared.max_llm_calls,
            // The first event then carries the invocation's id, before any model is called.
            yield_user_message: true,
            ..RunConfig::default()
        };
        let mut request =
            RunRequest::new(user, key.id()).with_delta(delta).with_guards(guards).with_config(config);
        request.message = fields.read("newMessage")?;
        request.invocation_id = fields.text("invocationId");
        Ok(Self {
            key,
            runner,
            request,
            detach: fields.flag("detach"),
            split_artifacts: fields.text("functionCallEventId").is_none_or(|id| id.is_empty()),
        })
    }
}
