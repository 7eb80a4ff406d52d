use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sessile_state::SharedValue;

use crate::phase::PhaseChange;
use crate::tool_call::{LiveToolCall, ToolOutcome, ToolResponse};
use crate::transcript::LiveTurn;
use crate::wire::{TokenUsage, WirePhase};

/// Something that happened in a live session. Clones share audio and text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LiveEvent {
    /// The server accepted the setup.
    Connected {
        /// Whether an earlier conversation was resumed.
        resumed: bool,
    },
    /// The connection was lost, and the session will reconnect.
    Reconnecting {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The pause before it.
        after: Duration,
    },
    /// The session is over.
    Disconnected {
        /// Why; `None` if the application asked for it.
        reason: Option<Arc<str>>,
    },
    /// The connection entered another phase.
    WirePhase(WirePhase),
    /// A piece of the model's voice: 16-bit little-endian samples.
    Audio(Bytes),
    /// A piece of the model's text.
    Text(Arc<str>),
    /// All of the model's text in this turn.
    TextComplete(Arc<str>),
    /// A piece of the model's reasoning.
    Thought(Arc<str>),
    /// A piece of the transcript of the user's speech.
    InputTranscript {
        /// The piece.
        text: Arc<str>,
        /// Whether it ends an utterance.
        finished: bool,
    },
    /// A piece of the transcript of the model's speech.
    OutputTranscript {
        /// The piece.
        text: Arc<str>,
        /// Whether it ends an utterance.
        finished: bool,
    },
    /// The user begins to speak.
    VoiceStart,
    /// The user stops speaking.
    VoiceEnd,
    /// The server reported how many tokens were used.
    Usage(TokenUsage),
    /// The user interrupted the model: stop the playback.
    Interrupted,
    /// The model has generated its whole answer; the audio may still be playing.
    GenerationComplete,
    /// The server ended the turn.
    TurnComplete,
    /// Everything that follows from the end of a turn is done and, if the session is attached to a
    /// stored one, committed.
    TurnEnd(Arc<LiveTurn>),
    /// The model calls a tool.
    ToolCall(Arc<LiveToolCall>),
    /// A tool call was answered.
    ToolAnswered {
        /// The answer.
        response: Arc<ToolResponse>,
        /// How it came about.
        outcome: ToolOutcome,
    },
    /// An extractor returned a value, which is committed.
    Extraction {
        /// The extractor.
        name: Arc<str>,
        /// The value.
        value: Arc<Value>,
    },
    /// An extractor failed; state did not change.
    ExtractionFailed {
        /// The extractor.
        name: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// The conversation entered another phase.
    Phase(Arc<PhaseChange>),
    /// The server will close the connection soon.
    GoAway {
        /// How much time is left, if the server sent it.
        time_left: Option<Duration>,
    },
    /// Whether the conversation can be resumed on a new connection, according to the server.
    Resumable(bool),
    /// A change of a key was not stored, because it conflicts with the stored value: another writer
    /// changed the key since this session read it and
    /// [`OnOverwrite::Refuse`](sessile_session::OnOverwrite) is configured, or an operation cannot
    /// be applied to the stored value. State now holds the stored value, and an error follows that
    /// names the key. The rejected value is only in this event.
    Conflict {
        /// The key.
        key: Arc<str>,
        /// The value in this session; `None` if it was removed.
        own: Option<SharedValue>,
        /// The stored value; `None` if the key is absent.
        stored: Option<SharedValue>,
    },
    /// A key was set after it was read, and another writer had changed it in between. The value of
    /// this session is stored, and the stored event reports the overwrite too, see
    /// `Event::overwrote`.
    Overwrote {
        /// The key.
        key: Arc<str>,
        /// The value that this session had read; `None` if the key was absent.
        read: Option<SharedValue>,
        /// The value that was overwritten; `None` if the key was absent.
        found: Option<SharedValue>,
    },
    /// Something failed; the session continues if it can.
    Error(Arc<str>),
    /// This subscriber was too slow, and missed this many events.
    Missed(u64),
}

/// Called with every event, where it happens.
pub(crate) type OnEvent = Box<dyn Fn(&LiveEvent) + Send + Sync>;
