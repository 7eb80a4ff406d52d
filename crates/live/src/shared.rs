use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use sessile_session::{Clock, Ids};
use sessile_state::State;
use tokio::sync::{mpsc, watch};

use crate::bus::Bus;
use crate::error::LiveError;
use crate::event::LiveEvent;
use crate::fast_callbacks::FastCallbacks;
use crate::inbox::{Control, Inbox};
use crate::lock::lock;
use crate::phase::PhaseMachine;
use crate::signals::Signals;
use crate::transcript::Transcript;
use crate::transport::Platform;
use crate::turn_gate::TurnGate;
use crate::wire::WirePhase;
use crate::wire::{Outgoing, Purpose};

/// What the lanes of a session and its handles have in common.
pub(crate) struct Shared {
    pub(crate) state: State,
    pub(crate) signals: Signals,
    pub(crate) bus: Bus,
    pub(crate) fast: FastCallbacks,
    pub(crate) gate: TurnGate,
    pub(crate) inbox: Inbox,
    pub(crate) platform: Platform,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    /// Whether the client tells when the user speaks.
    pub(crate) manual_activity: bool,
    pub(crate) input_rate: u32,
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) transcript: Mutex<Transcript>,
    /// A std mutex, not Tokio's: like all here, it is never held across an `.await`.
    pub(crate) phases: Mutex<Option<PhaseMachine>>,
    /// What the model was last told to do.
    pub(crate) instruction: Mutex<Option<String>>,
    /// The handle with which the conversation goes on after a lost connection.
    pub(crate) resume: Mutex<Option<String>>,
    /// The number of the conversation that the server knows; a connection that resumes none begins
    /// another.
    pub(crate) conversation: AtomicU64,
    pub(crate) wire_phase: Mutex<WirePhase>,
    /// Whether the control lane has yet to hear that time has passed.
    pub(crate) ticked: AtomicBool,
    /// True once the session is to end.
    pub(crate) stop: watch::Sender<bool>,
    /// The task of the control lane: whoever waits for the lane inside it would wait for ever.
    pub(crate) lane: OnceLock<tokio::task::Id>,
    /// The reason, once it has ended.
    pub(crate) closed: watch::Sender<Option<Option<Arc<str>>>>,
}

impl Shared {
    /// The state for what only looks at it: computed variables, conditions and instructions. A key
    /// that they read is no key that a later write was computed from.
    pub(crate) fn quiet(&self) -> State {
        self.state.without_read_tracking()
    }

    /// The connection is doing something else.
    pub(crate) fn enter(&self, phase: WirePhase) {
        let before = std::mem::replace(&mut *lock(&self.wire_phase), phase);
        if before != phase {
            self.signals.phase(phase);
            self.bus.emit(LiveEvent::WirePhase(phase));
        }
    }

    pub(crate) fn wire_phase(&self) -> WirePhase {
        *lock(&self.wire_phase)
    }

    /// Something went wrong: signals and readers of events are told.
    pub(crate) fn report(&self, message: impl Into<Arc<str>>) -> Arc<str> {
        let message = message.into();
        tracing::warn!(%message, "live session");
        self.signals.error(&message);
        self.bus.emit(LiveEvent::Error(message.clone()));
        message
    }

    /// Something went wrong outside the control lane, which tells the application.
    pub(crate) fn problem(&self, message: impl Into<Arc<str>>) {
        let message = self.report(message);
        self.inbox.tell(Control::Error(message));
    }

    /// Whether the server can make sense of a frame: answers belong to the conversation that asked.
    pub(crate) fn is_current(&self, frame: &Outgoing) -> bool {
        match frame.purpose {
            Purpose::Input => true,
            Purpose::Answer { conversation } => conversation == self.conversation.load(Ordering::Acquire),
        }
    }

    /// Whether this is called by the control lane itself: by a callback, a watch or a hook of a
    /// phase.
    pub(crate) fn is_inside_lane(&self) -> bool {
        self.lane.get().copied() == tokio::task::try_id() && self.lane.get().is_some()
    }

    /// Tells the control lane that time has passed, unless it has yet to hear so.
    pub(crate) fn tick(&self) {
        if !self.ticked.swap(true, Ordering::Relaxed) {
            self.inbox.tell(Control::Tick);
        }
    }

    /// Sends a frame, waiting while too many are on their way.
    pub(crate) async fn send(&self, frame: Outgoing) -> Result<(), LiveError> {
        self.outgoing.send(frame).await.map_err(|_| LiveError::Closed)
    }
}
