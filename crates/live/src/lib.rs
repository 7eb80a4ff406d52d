//! Live sessions: state that reacts while people speak.
//!
//! [`Live::builder`] describes a session with a model that hears and speaks; connecting begins it.
//! Everything in it uses one [`State`](sessile_state::State): callbacks and tools write it,
//! extractors fill it from the transcript, computed variables are derived from it, watches and
//! phases react to it, and the `session:` keys describe the connection. If the session is attached
//! to a stored one, every turn is committed as ordinary events.
//!
//! `docs/live.md` is the guide; `ARCHITECTURE.md` shows the lanes (the tasks of a session).

mod builder;
mod bus;
mod callbacks;
mod changes;
mod computed;
mod control;
mod error;
mod event;
mod extract;
mod fast_callbacks;
mod handle;
mod inbox;
mod link;
mod lock;
mod pattern;
mod phase;
mod scripted;
mod shared;
mod signals;
mod store;
mod tool;
mod tool_call;
mod transcript;
mod transport;
mod turn_gate;
mod watch;
mod wire;

pub use builder::{Live, LiveBuilder};
pub use bus::Events;
pub use error::LiveError;
pub use event::LiveEvent;
pub use extract::{Extractor, Trigger, TurnExtractor};
pub use handle::LiveHandle;
pub use link::Reconnect;
pub use pattern::{Pattern, PatternOf};
pub use phase::{Phase, PhaseChange, PhaseTrigger};
pub use scripted::{Script, ScriptedServer};
pub use tool::{LiveTool, LiveToolContext};
pub use tool_call::{LiveToolCall, Scheduling, ToolOutcome, ToolResponse};
pub use transcript::{LiveTurn, TurnItem};
pub use transport::{
    Connection, FrameReceiver, FrameSender, Platform, Received, Transport, TransportError, WebSocket,
};
pub use watch::{KeyWatch, WatchOn, WatchedChange};
pub use wire::{
    ActivityHandling, MediaResolution, Modality, Sensitivity, TokenUsage, TurnCoverage, VoiceDetection,
    WirePhase,
};

/// The code of docs/live.md runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/live.md")]
struct Page;
