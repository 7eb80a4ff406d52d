use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use sessile_session::Content;
use sessile_state::State;
use tokio::sync::oneshot;

use crate::bus::Events;
use crate::error::LiveError;
use crate::inbox::Control;
use crate::phase::PhaseChange;
use crate::shared::Shared;
use crate::transcript::LiveTurn;
use crate::wire::{self, WirePhase};

/// A live session. Clones are the same session; it ends when the last of them is dropped.
#[derive(Clone)]
pub struct LiveHandle {
    shared: Arc<Shared>,
    _alive: Arc<Alive>,
}

/// Stops the session when the last handle is dropped.
pub(crate) struct Alive {
    shared: Arc<Shared>,
}

impl Alive {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.shared.ending.stop();
    }
}

impl LiveHandle {
    pub(crate) fn new(shared: Arc<Shared>, alive: Arc<Alive>) -> Self {
        Self { shared, _alive: alive }
    }

    /// The session's state.
    pub fn state(&self) -> &State {
        &self.shared.state
    }

    /// Subscribes to the events from now on. `on_event` of the builder also sees those of the
    /// connection setup.
    pub fn events(&self) -> Events {
        self.shared.bus.subscribe()
    }

    /// Sends a piece of the user's voice: 16-bit little-endian samples, at the configured rate.
    /// Waits while the queue is full.
    ///
    /// # Errors
    ///
    /// [`LiveError::Closed`] if the session is over.
    pub async fn send_audio(&self, samples: impl AsRef<[u8]>) -> Result<(), LiveError> {
        self.shared.wire.send(wire::audio(samples.as_ref(), self.shared.wire.input_rate)).await
    }

    /// Sends a picture, such as `image/jpeg`.
    ///
    /// # Errors
    ///
    /// [`LiveError::Closed`] if the session is over.
    pub async fn send_video(&self, picture: Bytes, mime_type: &str) -> Result<(), LiveError> {
        self.shared.wire.send(wire::video(&picture, mime_type)).await?;
        self.shared.signals.video_sent();
        Ok(())
    }

    /// Sends a text message of the user, which the model answers.
    ///
    /// # Errors
    ///
    /// [`LiveError::Closed`] if the session is over.
    pub async fn send_text(&self, text: &str) -> Result<(), LiveError> {
        self.shared.conversation.gate.begin(&self.shared.state);
        self.shared.inbox.tell(Control::UserText(text.into()));
        self.shared.wire.send(wire::content(&[Content::text("user", text)], true)).await
    }

    /// Sends messages of the conversation; the model answers if `turn_complete` is set.
    ///
    /// # Errors
    ///
    /// [`LiveError::Closed`] if the session is over.
    pub async fn send_content(&self, turns: &[Content], turn_complete: bool) -> Result<(), LiveError> {
        self.shared.wire.send(wire::content(turns, turn_complete)).await
    }

    /// Signals that the user begins to speak. Only if the server's voice detection is disabled.
    ///
    /// # Errors
    ///
    /// [`LiveError::NotPossible`] if the server's voice detection is on; [`LiveError::Closed`] if
    /// the session is over.
    pub async fn activity_start(&self) -> Result<(), LiveError> {
        self.activity(true).await
    }

    /// Signals that the user stops speaking. Only if the server's voice detection is disabled.
    ///
    /// # Errors
    ///
    /// As [`activity_start`](Self::activity_start).
    pub async fn activity_end(&self) -> Result<(), LiveError> {
        self.activity(false).await
    }

    async fn activity(&self, starts: bool) -> Result<(), LiveError> {
        if !self.shared.wire.manual_activity {
            return Err(LiveError::NotPossible(
                "the server detects speech itself, and would close the connection; disable its voice detection first"
                    .to_owned(),
            ));
        }
        self.shared.wire.send(wire::activity(starts)).await
    }

    /// Signals that the microphone was turned off.
    ///
    /// # Errors
    ///
    /// [`LiveError::Closed`] if the session is over.
    pub async fn audio_end(&self) -> Result<(), LiveError> {
        self.shared.wire.send(wire::audio_end()).await
    }

    /// Replaces the instruction of the session, but not that of the phase. `{key}` is replaced from
    /// state.
    pub fn update_instruction(&self, text: impl Into<String>) {
        self.shared.inbox.tell(Control::Instruction(text.into()));
    }

    /// The phase of the connection.
    pub fn wire_phase(&self) -> WirePhase {
        self.shared.wire.phase()
    }

    /// The phase of the conversation, if it has phases.
    pub fn phase(&self) -> Option<String> {
        self.shared.conversation.phases().as_ref().and_then(|phases| phases.current().map(str::to_owned))
    }

    /// The last 100 changes of phase, oldest first.
    pub fn phase_history(&self) -> Vec<PhaseChange> {
        self.shared.conversation.phases().as_ref().map(|phases| phases.history()).unwrap_or_default()
    }

    /// Moves the conversation to a phase without checking guards.
    ///
    /// # Errors
    ///
    /// [`LiveError::NotPossible`] if there is no such phase, or if it is called from a callback,
    /// where it would deadlock: the session waits for the callback; [`LiveError::Closed`] if the
    /// session is over.
    pub async fn transition(&self, phase: impl Into<String>) -> Result<(), LiveError> {
        if self.shared.is_inside_lane() {
            let reason = "a callback cannot wait for a transition; change state and let a guard decide, or spawn a task";
            return Err(LiveError::NotPossible(reason.to_owned()));
        }
        let (reply, done) = oneshot::channel();
        self.shared.inbox.tell(Control::Transition(phase.into(), reply));
        done.await.unwrap_or(Err(LiveError::Closed))
    }

    /// The last turns that ended, at most 50, oldest first.
    pub fn turns(&self, count: usize) -> Vec<Arc<LiveTurn>> {
        self.shared.conversation.transcript().last(count)
    }

    /// The last value of an extractor.
    ///
    /// # Errors
    ///
    /// [`LiveError::State`] if it cannot be deserialized as a `T`.
    pub fn extracted<T: DeserializeOwned>(&self, extractor: &str) -> Result<Option<T>, LiveError> {
        Ok(self.shared.state.try_get(extractor)?)
    }

    /// Ends the session after sending the queued messages, and waits until everything is stored.
    /// Called from a callback, it does not wait: the session ends after the callback has returned.
    pub async fn disconnect(&self) {
        self.shared.ending.stop();
        if !self.shared.is_inside_lane() {
            self.closed().await;
        }
    }

    /// Waits until the session is over, and returns why; `None` if the application asked for it.
    pub async fn closed(&self) -> Option<Arc<str>> {
        self.shared.ending.wait().await
    }
}

impl std::fmt::Debug for LiveHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveHandle").field("wire_phase", &self.wire_phase()).finish_non_exhaustive()
    }
}
