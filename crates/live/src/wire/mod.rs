//! The wire format of Gemini Live: the messages of the client and of the server.
//!
//! To add a message: its type in `server.rs` or `client.rs`, its golden frame in
//! `tests/live/wire.rs`.

mod client;
mod lenient;
mod phase;
mod server;
mod setup;
mod time;

pub(crate) use client::{Outgoing, Purpose, activity, audio, audio_end, content, tool_responses, video};
pub use phase::WirePhase;
pub use server::TokenUsage;
pub(crate) use server::{ServerFrame, VoiceActivity, decode};
pub use setup::{ActivityHandling, MediaResolution, Modality, Sensitivity, TurnCoverage, VoiceDetection};
pub(crate) use setup::{Compression, Setup, SetupFacts};
