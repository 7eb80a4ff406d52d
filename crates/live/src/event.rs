use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sessile_state::SharedValue;

use crate::phase::PhaseChange;
use crate::tool_call::{ToolCall, ToolOutcome, ToolResponse};
use crate::transcript::Turn;
use crate::wire::{TokenUsage, WirePhase};

/// Something that happened in a live session. Cloning one copies no sound and no text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum LiveEvent {
    /// The server agreed to the setup; `resumed` if it goes on with an earlier conversation.
    Connected {
        /// Whether an earlier conversation goes on.
        resumed: bool,
    },
    /// The connection was lost, and is tried again after this time.
    Reconnecting {
        /// Which try it is, from 1.
        attempt: u32,
        /// How long is waited before it.
        after: Duration,
    },
    /// The session is over.
    Disconnected {
        /// Why, unless it was asked for.
        reason: Option<Arc<str>>,
    },
    /// The connection is doing something else.
    WirePhase(WirePhase),
    /// A piece of the model's voice: 16-bit samples, little end first.
    Audio(Bytes),
    /// A piece of the model's text.
    Text(Arc<str>),
    /// All of the model's text in this turn.
    TextComplete(Arc<str>),
    /// A piece of the model's reasoning.
    Thought(Arc<str>),
    /// A piece of what the user was heard to say.
    InputTranscript {
        /// The piece.
        text: Arc<str>,
        /// Whether it is the last of an utterance.
        finished: bool,
    },
    /// A piece of what the model says aloud.
    OutputTranscript {
        /// The piece.
        text: Arc<str>,
        /// Whether it is the last of an utterance.
        finished: bool,
    },
    /// The user begins to speak.
    VoiceStart,
    /// The user stops speaking.
    VoiceEnd,
    /// Tokens that were used.
    Usage(TokenUsage),
    /// The user interrupts the model: stop playing what it said.
    Interrupted,
    /// The model has made its whole answer; it may still be speaking.
    GenerationComplete,
    /// The server says that the turn is complete.
    TurnComplete,
    /// Everything that follows from a complete turn is done and, if the session is attached to a
    /// stored one, committed.
    TurnEnd(Arc<Turn>),
    /// The model calls a tool.
    ToolCall(Arc<ToolCall>),
    /// A call was answered.
    ToolAnswered {
        /// The answer.
        response: Arc<ToolResponse>,
        /// How it came about.
        outcome: ToolOutcome,
    },
    /// An extractor found something, and it is committed.
    Extraction {
        /// The extractor.
        name: Arc<str>,
        /// What it found.
        value: Arc<Value>,
    },
    /// An extractor failed; state is as it was.
    ExtractionFailed {
        /// The extractor.
        name: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// The conversation is in another phase.
    Phase(Arc<PhaseChange>),
    /// The server will disconnect.
    GoAway {
        /// When, if it said so.
        time_left: Option<Duration>,
    },
    /// The server gave a handle with which the session can go on, or took it back.
    Resumable(bool),
    /// A change of a key could not be stored, because of what is stored: another writer changed the
    /// key since this session read it and [`OnOverwrite::Refuse`](sessile_session::OnOverwrite) was
    /// asked for, or an operation cannot be applied to it. The stored value stays, the state holds
    /// it now, and an error follows that names the key. What was written here is not stored: it is
    /// only in this event.
    Conflict {
        /// The key.
        key: Arc<str>,
        /// What it held here; `None` if it was removed.
        own: Option<SharedValue>,
        /// What is stored; `None` if nothing is.
        stored: Option<SharedValue>,
    },
    /// A key was set after it was read, and another writer had changed it in between. The value of
    /// this session is stored, and the event that stored it reports the same, see
    /// `Event::overwrote`.
    Overwrote {
        /// The key.
        key: Arc<str>,
        /// What this session had read; `None` if the key was absent.
        read: Option<SharedValue>,
        /// What was stored before; `None` if the key was absent.
        found: Option<SharedValue>,
    },
    /// Something went wrong; the session goes on if it can.
    Error(Arc<str>),
    /// This reader was too slow and missed so many events. Only it is told.
    Missed(u64),
}

/// Called with every event, where it happens.
pub(crate) type OnEvent = Box<dyn Fn(&LiveEvent) + Send + Sync>;
