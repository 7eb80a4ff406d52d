use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;

use crate::event::LiveEvent;
use crate::inbox::Control;
use crate::shared::Shared;
use crate::tool_call::LiveToolCall;
use crate::wire::{ServerFrame, VoiceActivity, WirePhase, decode};

/// Passes the content of frames to signals, callbacks and subscribers at once, and to the control
/// lane what takes time, all in the order of the wire.
pub(super) struct Dispatch {
    shared: Arc<Shared>,
    /// The model's text in this turn, for `on_text_complete`.
    text: String,
}

/// The facts of a frame that decide about the connection itself.
#[derive(Default)]
pub(super) struct Seen {
    /// GoAway: the server will close the connection, possibly with the time that is left.
    pub(super) go_away: Option<Option<Duration>>,
    pub(super) turn_complete: bool,
}

impl Dispatch {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, text: String::new() }
    }

    pub(super) async fn frame(&mut self, frame: &[u8]) -> Seen {
        let decoded = decode(frame);
        for problem in decoded.problems {
            self.error(problem).await;
        }
        let frame = decoded.frame;
        let mut seen = Seen::default();
        self.voice(&frame);
        self.content(&frame).await;
        if let Some(usage) = &frame.usage_metadata {
            self.shared.signals.usage(usage);
            if let Some(callback) = &self.shared.fast.usage {
                callback(usage);
            }
            self.shared.bus.emit(LiveEvent::Usage(*usage));
        }
        if let Some(calls) = frame.tool_call {
            let calls = calls.function_calls.into_iter().map(|call| LiveToolCall {
                id: call.id,
                name: call.name,
                args: call.args.unwrap_or_default(),
            });
            self.tool_calls(calls.collect()).await;
        }
        if let Some(cancellation) = frame.tool_call_cancellation {
            self.shared.inbox.send(Control::ToolCancellation(cancellation.ids)).await;
        }
        if let Some(update) = frame.session_resumption_update {
            let resumable = update.resumable.unwrap_or(update.new_handle.is_some());
            let handle = update.new_handle.filter(|handle| !handle.is_empty());
            self.shared.signals.resumption(resumable, update.last_consumed_client_message_index.as_deref());
            if resumable && handle.is_some() {
                self.shared.wire.set_resume_handle(handle);
            }
            self.shared.bus.emit(LiveEvent::Resumable(resumable));
        }
        if let Some(go_away) = frame.go_away {
            seen.go_away = Some(go_away.time_left);
            self.shared.signals.go_away(go_away.time_left);
            self.shared.bus.emit(LiveEvent::GoAway { time_left: go_away.time_left });
            self.shared.inbox.send(Control::GoAway(go_away.time_left)).await;
        }
        if let Some(content) = frame.server_content {
            self.ends(content.interrupted, content.generation_complete, content.turn_complete).await;
            seen.turn_complete = content.turn_complete == Some(true);
        }
        seen
    }

    /// The start and end of the user's speech.
    fn voice(&self, frame: &ServerFrame<'_>) {
        let shared = &self.shared;
        let speaking = match frame.voice_activity {
            Some(VoiceActivity::Start) => true,
            Some(VoiceActivity::End) => false,
            Some(VoiceActivity::Other) | None => return,
        };
        shared.signals.voice(speaking);
        let (callback, event) = if speaking {
            shared.conversation.gate.begin(&shared.state);
            (&shared.fast.voice_start, LiveEvent::VoiceStart)
        } else {
            (&shared.fast.voice_end, LiveEvent::VoiceEnd)
        };
        if let Some(callback) = callback {
            callback();
        }
        shared.bus.emit(event);
        match (shared.wire.phase(), speaking) {
            (WirePhase::Active, true) => shared.enter(WirePhase::UserSpeaking),
            (WirePhase::UserSpeaking, false) => shared.enter(WirePhase::Active),
            _ => {}
        }
    }

    /// The text, audio and transcripts of a frame.
    async fn content(&mut self, frame: &ServerFrame<'_>) {
        let Some(content) = &frame.server_content else { return };
        for part in content.model_turn.iter().flat_map(|turn| &turn.parts) {
            if let Some(text) = &part.text {
                self.text(text, part.thought == Some(true)).await;
            }
            if let Some(data) = &part.inline_data {
                let is_audio = data.mime_type.as_deref().is_none_or(|mime| mime.starts_with("audio/"));
                match BASE64_STANDARD.decode(data.data.as_bytes()) {
                    Ok(samples) if is_audio => self.audio(samples.into()),
                    Ok(_) => {}
                    Err(error) => {
                        self.error(format!("the server sent audio that is not base64: {error}")).await
                    }
                }
            }
        }
        let shared = &self.shared;
        if let Some(heard) = &content.input_transcription {
            shared.conversation.gate.begin(&shared.state);
            shared.signals.input(&heard.text);
            let (text, finished) = (Arc::<str>::from(heard.text.as_str()), heard.finished == Some(true));
            if let Some(callback) = &shared.fast.input_transcript {
                callback(&text, finished);
            }
            shared.bus.emit(LiveEvent::InputTranscript { text: text.clone(), finished });
            shared.inbox.send(Control::UserText(text)).await;
        }
        if let Some(spoken) = &content.output_transcription {
            shared.conversation.gate.begin(&shared.state);
            shared.signals.output(&spoken.text);
            let (text, finished) = (Arc::<str>::from(spoken.text.as_str()), spoken.finished == Some(true));
            if let Some(callback) = &shared.fast.output_transcript {
                callback(&text, finished);
            }
            shared.bus.emit(LiveEvent::OutputTranscript { text: text.clone(), finished });
            shared.inbox.send(Control::ModelText(text)).await;
        }
    }

    fn audio(&self, samples: Bytes) {
        let shared = &self.shared;
        shared.conversation.gate.begin(&shared.state);
        shared.enter(WirePhase::ModelSpeaking);
        shared.signals.touch();
        if let Some(callback) = &shared.fast.audio {
            callback(&samples);
        }
        shared.bus.emit(LiveEvent::Audio(samples));
    }

    async fn text(&mut self, text: &str, thought: bool) {
        let shared = &self.shared;
        shared.conversation.gate.begin(&shared.state);
        shared.signals.touch();
        let piece = Arc::<str>::from(text);
        if thought {
            if let Some(callback) = &shared.fast.thought {
                callback(text);
            }
            shared.bus.emit(LiveEvent::Thought(piece));
            return;
        }
        shared.enter(WirePhase::ModelSpeaking);
        if let Some(callback) = &shared.fast.text {
            callback(text);
        }
        shared.bus.emit(LiveEvent::Text(piece.clone()));
        shared.inbox.send(Control::ModelText(piece)).await;
        self.text.push_str(text);
    }

    async fn tool_calls(&self, calls: Vec<LiveToolCall>) {
        let shared = &self.shared;
        shared.conversation.gate.begin(&shared.state);
        shared.enter(WirePhase::ToolCallPending);
        for call in &calls {
            shared.bus.emit(LiveEvent::ToolCall(Arc::new(call.clone())));
        }
        let conversation = shared.wire.conversation();
        shared.inbox.send(Control::ToolCalls { calls, conversation }).await;
    }

    /// The interruption, the end of the generation, and the end of the turn.
    async fn ends(&mut self, interrupted: Option<bool>, generated: Option<bool>, complete: Option<bool>) {
        let shared = &self.shared;
        if interrupted == Some(true) {
            shared.signals.interrupted();
            shared.enter(WirePhase::Interrupted);
            shared.bus.emit(LiveEvent::Interrupted);
            shared.inbox.send(Control::Interrupted).await;
            shared.enter(WirePhase::Active);
        }
        if generated == Some(true) {
            shared.bus.emit(LiveEvent::GenerationComplete);
            shared.inbox.send(Control::GenerationComplete).await;
        }
        if complete == Some(true) {
            let text = std::mem::take(&mut self.text);
            if !text.is_empty() {
                if let Some(callback) = &shared.fast.text_complete {
                    callback(&text);
                }
                shared.bus.emit(LiveEvent::TextComplete(text.into()));
            }
            shared.signals.turn_completed();
            shared.conversation.gate.complete();
            shared.enter(WirePhase::Active);
            shared.bus.emit(LiveEvent::TurnComplete);
            shared.inbox.send(Control::TurnComplete).await;
        }
    }

    async fn error(&self, message: String) {
        let message = self.shared.report(message);
        self.shared.inbox.send(Control::Error(message)).await;
    }
}
