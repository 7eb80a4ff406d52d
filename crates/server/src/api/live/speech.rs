//! A conversation with a live agent: requests of the client go to the agent, and what happens comes
//! back as events.

use serde_json::json;
use sessile_live::{Live, LiveError, LiveEvent, LiveHandle, LiveToolCall, ToolResponse};
use sessile_session::{Blob, Bytes, Content, Event, FunctionCall, FunctionResponse, Opaque, Part};
use tokio::sync::mpsc;

use super::recording::{Recording, Side};
use super::request::{LiveRequest, given};
use super::{Socket, Talk};
use crate::api::apps::LiveAgent;
use crate::api::state_change::check_lengths;
use crate::http::error::ApiError;

/// The MIME type of the model's audio.
const VOICE: &str = "audio/pcm;rate=24000";

/// How many events a client may fall behind before it is disconnected.
const BEHIND: usize = 4096;

impl Talk {
    /// Connects the client with the live agent until either disconnects.
    pub(super) async fn speak(&self, socket: &mut Socket, agent: &LiveAgent) -> Result<(), ApiError> {
        let mut recording = match (self.options.save_blobs, &self.shared.artifacts) {
            (false, _) => None,
            (true, Some(artifacts)) => Some(Recording::new(artifacts.clone())),
            (true, None) => {
                let text =
                    "this server has no artifact service, so audio cannot be saved: leave save_live_blob out";
                return Err(ApiError::BadRequest(text.to_owned()));
            }
        };
        let _permit = self.shared.http.lifecycle.permit_run(self.key.user())?;
        let (sender, mut events) = mpsc::channel(BEHIND);
        let (too_slow, mut slow) = mpsc::channel::<()>(1);
        let name = self.app.runner().root().name().to_owned();
        let mut live = Live::builder()
            .name(name.as_str())
            .session(self.shared.sessions.clone(), self.key.clone())
            .on_event(move |event| {
                if sender.try_send(event.clone()).is_err() && too_slow.try_send(()).is_err() {
                    tracing::debug!("a client of a live session is slow or gone");
                }
            });
        if self.options.text {
            live = live.text_only();
        }
        if self.options.proactive_audio {
            live = live.proactive_audio();
        }
        if self.options.affective_dialog {
            live = live.affective_dialog();
        }
        if self.options.transparent_resumption {
            live = live.transparent_resumption();
        }
        if self.options.explicit_voice_signals {
            live = live.explicit_voice_signals();
        }
        let session = agent(live).await.map_err(failed)?;
        let closing = self.shared.http.lifecycle.closing();
        tokio::pin!(closing);
        let result = loop {
            tokio::select! {
                event = events.recv() => match event {
                    None | Some(LiveEvent::Disconnected { reason: None }) => break Ok(()),
                    Some(LiveEvent::Disconnected { reason: Some(reason) }) => break Err(ApiError::Unavailable(reason.to_string())),
                    Some(event) => {
                        let saved = self.keep(&mut recording, &event).await;
                        let event = self.event(&name, event);
                        if !socket.send_all(saved.into_iter().chain(event)).await? {
                            break Ok(());
                        }
                    }
                },
                request = socket.next() => match request {
                    Ok(None) => break Ok(()),
                    Ok(Some(request)) => {
                        let saved = self.keep_blob(&mut recording, request.blob.as_ref()).await;
                        match self.pass_on(&session, request).await {
                            Ok(true) if socket.send_all(saved).await? => {}
                            Ok(_) => break Ok(()),
                            Err(error) => break Err(error),
                        }
                    }
                    Err(error) => break Err(error),
                },
                Some(()) = slow.recv() => {
                    break Err(ApiError::TooSlow(format!("the client is {BEHIND} events behind")));
                }
                () = &mut closing => break Err(ApiError::Unavailable("the server is shutting down".to_owned())),
            }
        };
        session.disconnect().await;
        // The client has disconnected, but the rest of the audio is saved.
        let rest = self.keep_sides(&mut recording, &[Side::User, Side::Model]).await;
        if !rest.is_empty() {
            tracing::debug!(session = %self.key, "saved the rest of the audio");
        }
        result
    }

    /// Records the model's audio, and saves it when it is interrupted or a turn is complete.
    async fn keep(&self, recording: &mut Option<Recording>, event: &LiveEvent) -> Vec<Event> {
        match (recording.as_mut(), event) {
            (Some(recording), LiveEvent::Audio(samples)) => {
                self.told(self.record(recording, Side::Model, VOICE, samples).await).into_iter().collect()
            }
            (Some(_), LiveEvent::Interrupted) => self.keep_sides(recording, &[Side::Model]).await,
            (Some(_), LiveEvent::TurnComplete) => {
                self.keep_sides(recording, &[Side::User, Side::Model]).await
            }
            _ => Vec::new(),
        }
    }

    /// Records the user's audio.
    async fn keep_blob(&self, recording: &mut Option<Recording>, blob: Option<&Blob>) -> Vec<Event> {
        let (Some(recording), Some(Blob { data: Some(Bytes(data)), mime_type, .. })) = (recording, blob)
        else {
            return Vec::new();
        };
        let mime_type = mime_type.as_deref().unwrap_or("audio/pcm");
        if !mime_type.starts_with("audio/") {
            return Vec::new();
        }
        self.told(self.record(recording, Side::User, mime_type, data).await).into_iter().collect()
    }

    async fn keep_sides(&self, recording: &mut Option<Recording>, sides: &[Side]) -> Vec<Event> {
        let mut events = Vec::new();
        if let Some(recording) = recording {
            for side in sides {
                events.extend(self.told(self.save(recording, *side).await));
            }
        }
        events
    }

    /// The event for the client about saved audio; a failure does not end the conversation.
    fn told(&self, saved: Result<Option<Event>, ApiError>) -> Option<Event> {
        saved.unwrap_or_else(|error| {
            tracing::error!(session = %self.key, %error, "the audio cannot be saved");
            let message = format!("the audio cannot be saved: {error}");
            self.event(self.app.runner().root().name(), LiveEvent::Error(message.into()))
        })
    }

    /// Passes a request on to the session; returns whether the conversation continues.
    async fn pass_on(&self, session: &LiveHandle, request: LiveRequest) -> Result<bool, ApiError> {
        let delta = request.delta();
        self.principal.writes(delta.iter().map(|(key, _)| key))?;
        check_lengths(&self.shared.http.limits, &delta)?;
        // The live session stores it with the turn.
        session.state().try_apply(&delta).map_err(|error| ApiError::BadRequest(error.to_string()))?;
        if given(request.activity_start.as_ref()) {
            session.activity_start().await.map_err(failed)?;
        }
        if let Some(content) = request.content {
            let texts: Option<Vec<_>> = content.parts().iter().map(|part| part.text.as_deref()).collect();
            match texts.filter(|_| !request.partial) {
                Some(texts) => session.send_text(&texts.concat()).await.map_err(failed)?,
                None => session.send_content(&[content], !request.partial).await.map_err(failed)?,
            }
        }
        if let Some(Blob { data: Some(Bytes(data)), mime_type, .. }) = request.blob {
            match mime_type.as_deref() {
                Some(mime_type) if mime_type.starts_with("image/") => {
                    session.send_video(data.into(), mime_type).await.map_err(failed)?;
                }
                None => session.send_audio(data).await.map_err(failed)?,
                Some(mime_type) if mime_type.starts_with("audio/pcm") => {
                    session.send_audio(data).await.map_err(failed)?;
                }
                Some(other) => {
                    return Err(ApiError::BadRequest(format!(
                        "a blob of type {other:?} cannot be sent live"
                    )));
                }
            }
        }
        if given(request.activity_end.as_ref()) {
            session.activity_end().await.map_err(failed)?;
        }
        if given(request.audio_stream_end.as_ref()) {
            session.audio_end().await.map_err(failed)?;
        }
        Ok(!request.close)
    }

    /// A live event as ADK's clients read it; `None` for those that they do not know.
    fn event(&self, agent: &str, happened: LiveEvent) -> Option<Event> {
        let mut event = Event::new(agent);
        event.timestamp = Some(self.shared.http.clock.now());
        event.id = self.shared.http.ids.new_id();
        let transcript =
            |text: &str, finished| Some(Opaque::from(json!({"text": text, "finished": finished})));
        match happened {
            LiveEvent::Audio(samples) => {
                let data = Some(Bytes(samples.to_vec()));
                let blob = Blob { data, mime_type: Some(VOICE.to_owned()), ..Blob::default() };
                event.content =
                    Some(says("model", Part { inline_data: Some(blob.into()), ..Part::default() }));
            }
            LiveEvent::Text(text) => {
                event.content = Some(Content::text("model", &*text));
                event.partial = Some(true);
            }
            LiveEvent::TextComplete(text) => event.content = Some(Content::text("model", &*text)),
            LiveEvent::InputTranscript { text, finished } => {
                event.author = "user".into();
                event.input_transcription = transcript(&text, finished);
                event.partial = Some(!finished);
            }
            LiveEvent::OutputTranscript { text, finished } => {
                event.output_transcription = transcript(&text, finished);
                event.partial = Some(!finished);
            }
            LiveEvent::Interrupted => event.interrupted = Some(true),
            LiveEvent::TurnComplete => event.turn_complete = Some(true),
            LiveEvent::ToolCall(call) => event.content = Some(says("model", called(&call))),
            LiveEvent::ToolAnswered { response, .. } => {
                event.content = Some(says("user", answered(&response)))
            }
            LiveEvent::GoAway { time_left } => {
                let left = time_left.map(|left| format!("{}s", left.as_secs_f64()));
                event.go_away = Some(Opaque::from(json!({"time_left": left})));
            }
            LiveEvent::Error(message) => {
                event.error_code = Some("LIVE_ERROR".to_owned());
                event.error_message = Some(message.to_string());
            }
            _ => return None,
        }
        Some(event)
    }
}

pub(super) fn says(role: &str, part: Part) -> Content {
    Content { role: Some(role.to_owned()), parts: Some(vec![part]), ..Content::default() }
}

fn called(call: &LiveToolCall) -> Part {
    let args = call.args.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    let call = FunctionCall {
        id: Some(call.id.clone()),
        name: Some(call.name.clone()),
        args: Some(args),
        ..FunctionCall::default()
    };
    Part { function_call: Some(call.into()), ..Part::default() }
}

fn answered(answer: &ToolResponse) -> Part {
    let fields = answer.response.as_object().cloned();
    let fields =
        fields.unwrap_or_else(|| [("result".to_owned(), answer.response.clone())].into_iter().collect());
    let response = FunctionResponse {
        id: Some(answer.id.clone()),
        name: Some(answer.name.clone()),
        response: Some(fields.into_iter().map(|(name, value)| (name, value.into())).collect()),
        ..FunctionResponse::default()
    };
    Part { function_response: Some(response.into()), ..Part::default() }
}

fn failed(error: LiveError) -> ApiError {
    match error {
        LiveError::NotPossible(reason) => ApiError::BadRequest(reason),
        error @ LiveError::Invalid { .. } => ApiError::BadRequest(error.to_string()),
        LiveError::Session(error) => error.into(),
        error => ApiError::Unavailable(error.to_string()),
    }
}
