//! Live sessions over a WebSocket, in the protocol of ADK: the client sends
//! [`LiveRequest`](request::LiveRequest)s, and gets events. An application with a live agent is
//! connected to that; any other runs once for each message.

mod recording;
mod request;
mod speech;
mod text;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures_util::SinkExt;
use futures_util::StreamExt;
use futures_util::stream::{SplitSink, SplitStream};
use sessile_session::{Event, EventActions, EventWindow, SessionError, SessionKey};

use crate::api::apps::App;
use crate::api::shared::Shared;
use crate::api::state_change::check_lengths;
use crate::describe::route_doc::{Answer, Doc, Param};
use crate::http::auth::Principal;
use crate::http::error::{AFTER_A_RUN, ApiError, advising, chain};
use crate::http::query::Query;
use crate::http::response;
use request::LiveRequest;

pub(crate) const RUN_LIVE: Doc = Doc::new(
    "runs",
    "Talks with an agent over a WebSocket.",
    Answer::Media("application/json"),
)
.with_query(&[
    Param::new("user_id", "string", "The user."),
    Param::new("session_id", "string", "The session."),
    Param::new("app_name", "string", "The application; the server's default if left out."),
    Param::new("modalities", "string", "TEXT or AUDIO: what the model answers with."),
    Param::new("proactive_audio", "boolean", "Whether the model decides what was meant for it."),
    Param::new("enable_affective_dialog", "boolean", "Whether its voice follows the user's mood."),
    Param::new(
        "enable_session_resumption",
        "boolean",
        "Whether a lost connection to the model is resumed without the client's help; Vertex AI only.",
    ),
    Param::new("save_live_blob", "boolean", "Whether what is heard is kept as artifacts."),
    Param::new(
        "explicit_vad_signal",
        "boolean",
        "Whether the model says when it hears speech begin and end; Vertex AI only.",
    ),
])
.failing(&[400, 403, 404, 429]);

/// One conversation over one socket.
struct Talk {
    shared: Shared,
    principal: Principal,
    app: App,
    key: SessionKey,
    options: Options,
}

/// The options of the query.
struct Options {
    text: bool,
    proactive_audio: bool,
    affective_dialog: bool,
    transparent_resumption: bool,
    save_blobs: bool,
    explicit_voice_signals: bool,
}

/// The two halves of the WebSocket.
struct Socket {
    incoming: SplitStream<WebSocket>,
    outgoing: SplitSink<WebSocket, Message>,
}

/// Upgrades to a WebSocket if the request is valid. Later errors close the socket with a reason.
pub(crate) async fn run_live(
    State(shared): State<Shared>,
    principal: Principal,
    query: Query,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade =
        upgrade.map_err(|error| ApiError::BadRequest(format!("this endpoint is for WebSockets: {error}")))?;
    let parameter = |name: &str| {
        let missing = || ApiError::Forbidden(format!("the parameter {name} is missing"));
        query.text(name).filter(|text| !text.is_empty()).ok_or_else(missing)
    };
    let (user, id) = (parameter("user_id")?, parameter("session_id")?);
    principal.acts_for(user)?;
    let app = parameter("app_name").ok().map(str::to_owned).or_else(|| shared.default_app.clone());
    let Some(app) = app else {
        return Err(ApiError::Forbidden("the parameter app_name is missing".to_owned()));
    };
    let options = Options {
        text: writes(query.text("modalities"))?,
        proactive_audio: query.flag("proactive_audio")?,
        affective_dialog: query.flag("enable_affective_dialog")?,
        transparent_resumption: query.flag("enable_session_resumption")?,
        save_blobs: query.flag("save_live_blob")?,
        explicit_voice_signals: query.flag("explicit_vad_signal")?,
    };
    let key = SessionKey::new(app.as_str(), user, id).map_err(SessionError::from)?;
    let app = shared.apps.find(&app)?.clone();
    let limit = shared.http.limits.body;
    let talk = Talk { shared, principal, app, key, options };
    Ok(upgrade.max_message_size(limit).max_frame_size(limit).on_upgrade(move |socket| talk.serve(socket)))
}

/// Whether the model answers with text instead of audio.
fn writes(modality: Option<&str>) -> Result<bool, ApiError> {
    match modality.map(str::to_ascii_uppercase).as_deref() {
        None | Some("AUDIO") => Ok(false),
        Some("TEXT") => Ok(true),
        Some("VIDEO") => Err(ApiError::Forbidden(
            "the model cannot answer with pictures here: ask for the modality AUDIO or TEXT".to_owned(),
        )),
        Some(other) => {
            Err(ApiError::Forbidden(format!("{other:?} is not a modality: ask for AUDIO or TEXT")))
        }
    }
}

impl Talk {
    async fn serve(self, socket: WebSocket) {
        let (outgoing, incoming) = socket.split();
        let mut socket = Socket { incoming, outgoing };
        let (code, reason) = match self.hold(&mut socket).await {
            Ok(()) => (1000, String::new()),
            Err(ApiError::NotFound(reason)) => (1002, reason),
            Err(error) => {
                tracing::warn!(session = %self.key, error = %chain(&error), "a live session failed");
                (1011, error.to_string())
            }
        };
        socket.close(code, &reason).await;
    }

    async fn hold(&self, socket: &mut Socket) -> Result<(), ApiError> {
        if self.shared.sessions.get(&self.key, EventWindow::NONE).await?.is_none() {
            return Err(ApiError::not_found("Session not found"));
        }
        match self.app.live() {
            Some(agent) => self.speak(socket, agent).await,
            None => self.write(socket).await,
        }
    }

    /// Stores the state that the client sets without a message.
    async fn set(&self, request: &LiveRequest) -> Result<(), ApiError> {
        let delta = request.delta();
        self.principal.writes(delta.iter().map(|(key, _)| key))?;
        check_lengths(&self.shared.http.limits, &delta)?;
        if !delta.is_empty() {
            let event = Event::new("user").with_actions(EventActions::from_delta(delta));
            self.shared.sessions.append_to(&self.key, event).await.map_err(advising(AFTER_A_RUN))?;
        }
        Ok(())
    }
}

impl Socket {
    /// The next request; `None` when the client has disconnected.
    async fn next(&mut self) -> Result<Option<LiveRequest>, ApiError> {
        loop {
            let text = match self.incoming.next().await {
                None | Some(Err(_) | Ok(Message::Close(_))) => return Ok(None),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Binary(_))) => {
                    return Err(ApiError::BadRequest("frames are JSON texts, not bytes".to_owned()));
                }
            };
            // serde would read a list as the fields of a request in their order.
            if !text.trim_start().starts_with('{') {
                return Err(ApiError::BadRequest("the frame is not a JSON object".to_owned()));
            }
            return match serde_json::from_str(&text) {
                Ok(request) => Ok(Some(request)),
                Err(error) => Err(ApiError::BadRequest(format!("the frame is not a live request: {error}"))),
            };
        }
    }

    /// Sends an event; returns whether the client is still connected.
    async fn send(&mut self, event: &Event) -> Result<bool, ApiError> {
        let json = String::from_utf8(response::to_json(event)?)
            .map_err(|source| ApiError::Failed { action: "write an event", source: source.into() })?;
        Ok(self.outgoing.send(Message::text(json)).await.is_ok())
    }

    /// Sends events; returns whether the client is still connected.
    async fn send_all(&mut self, events: impl IntoIterator<Item = Event>) -> Result<bool, ApiError> {
        for event in events {
            if !self.send(&event).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Closes the socket; a reason has at most 123 bytes.
    async fn close(&mut self, code: u16, reason: &str) {
        let end = (0..=reason.len().min(123)).rev().find(|end| reason.is_char_boundary(*end)).unwrap_or(0);
        let frame = CloseFrame { code, reason: reason[..end].into() };
        if self.outgoing.send(Message::Close(Some(frame))).await.is_err() {
            tracing::debug!("the client was gone before the socket was closed");
        }
    }
}
