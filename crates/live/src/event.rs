use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sessile_state::SharedValue;
use tokio::sync::broadcast;

use crate::inbox::{Control, Inbox};
use crate::pattern::Rate;
use crate::phase::PhaseChange;
use crate::shared::lock;
use crate::tool::{ToolCall, ToolOutcome, ToolResponse};
use crate::transcript::Turn;
use crate::wire::TokenUsage;
use crate::wire_phase::WirePhase;

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

/// The events of a session from the moment of subscribing.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<LiveEvent>,
}

impl Events {
    /// The next event, or `None` when the session is over. A reader that is slower than 1024 events
    /// is told how many it missed; the session itself never waits for a reader.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(LiveEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// How far a reader may fall behind.
const CAPACITY: usize = 1024;

/// Called with every event, where it happens.
pub(crate) type OnEvent = Box<dyn Fn(&LiveEvent) + Send + Sync>;

/// Hands every event to everybody who wants to see it.
pub(crate) struct Bus {
    on_event: Vec<OnEvent>,
    /// Made when somebody first subscribes: most sessions have no reader.
    readers: Mutex<Option<broadcast::Sender<LiveEvent>>>,
    /// Whether anybody ever subscribed, to be asked without a lock.
    read: AtomicBool,
    closed: AtomicBool,
    /// Patterns that count events, each with its number among all patterns.
    rates: Mutex<Vec<(usize, Rate)>>,
    counts: bool,
    /// Who acts on a pattern that was seen.
    inbox: Inbox,
}

impl Bus {
    pub(crate) fn new(on_event: Vec<OnEvent>, rates: Vec<(usize, Rate)>, inbox: Inbox) -> Self {
        let counts = !rates.is_empty();
        Self {
            on_event,
            readers: Mutex::default(),
            read: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            rates: Mutex::new(rates),
            counts,
            inbox,
        }
    }

    pub(crate) fn emit(&self, event: LiveEvent) {
        for on_event in &self.on_event {
            on_event(&event);
        }
        if self.counts {
            let mut rates = lock(&self.rates);
            for (number, rate) in rates.iter_mut() {
                if rate.saw(&event) {
                    self.inbox.tell(Control::Fired(*number));
                }
            }
        }
        if self.read.load(Ordering::Acquire)
            && let Some(readers) = &*lock(&self.readers)
            && readers.receiver_count() > 0
            && readers.send(event).is_err()
        {
            tracing::trace!("the last reader of events has just left");
        }
    }

    pub(crate) fn subscribe(&self) -> Events {
        let mut readers = lock(&self.readers);
        let receiver = if self.closed.load(Ordering::Acquire) {
            broadcast::Sender::new(1).subscribe() // its sender is gone: there is nothing to come
        } else {
            readers.get_or_insert_with(|| broadcast::Sender::new(CAPACITY)).subscribe()
        };
        self.read.store(true, Ordering::Release);
        Events { receiver }
    }

    /// Nothing more will happen: readers come to the end.
    pub(crate) fn close(&self) {
        let mut readers = lock(&self.readers);
        self.closed.store(true, Ordering::Release);
        *readers = None;
    }
}
