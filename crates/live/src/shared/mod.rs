//! What the lanes of a session and its handles have in common, by what it is about: the connection,
//! the conversation, and the end of the session.

mod conversation;
mod ending;
mod wire;

use std::sync::{Arc, OnceLock};

use sessile_session::{Clock, Ids};
use sessile_state::State;

pub(crate) use conversation::Conversation;
pub(crate) use ending::{EndReason, Ending};
pub(crate) use wire::Wire;

use crate::bus::Bus;
use crate::event::LiveEvent;
use crate::fast_callbacks::FastCallbacks;
use crate::inbox::{Control, Inbox};
use crate::signals::Signals;
use crate::wire::WirePhase;

/// What the lanes of a session and its handles have in common.
pub(crate) struct Shared {
    pub(crate) state: State,
    pub(crate) wire: Wire,
    pub(crate) conversation: Conversation,
    pub(crate) ending: Ending,
    pub(crate) signals: Signals,
    pub(crate) bus: Bus,
    pub(crate) fast: FastCallbacks,
    pub(crate) inbox: Inbox,
    /// The task of the control lane. Waiting for the lane inside this task would never end.
    pub(crate) lane: OnceLock<tokio::task::Id>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl Shared {
    /// A view of the state for computed variables, conditions and instructions: what they read does
    /// not count as read by the code that writes state later.
    pub(crate) fn quiet(&self) -> State {
        self.state.without_read_tracking()
    }

    /// Begins another phase of the connection.
    pub(crate) fn enter(&self, phase: WirePhase) {
        if self.wire.set_phase(phase) {
            self.signals.phase(phase);
            self.bus.emit(LiveEvent::WirePhase(phase));
        }
    }

    /// Reports a problem in the log, the signals and the events.
    pub(crate) fn report(&self, message: impl Into<Arc<str>>) -> Arc<str> {
        let message = message.into();
        tracing::warn!(%message, "live session");
        self.signals.error(&message);
        self.bus.emit(LiveEvent::Error(message.clone()));
        message
    }

    /// Reports a problem from outside the control lane, which calls `on_error`.
    pub(crate) fn problem(&self, message: impl Into<Arc<str>>) {
        let message = self.report(message);
        self.inbox.tell(Control::Error(message));
    }

    /// Whether the caller runs on the control lane: in a callback, a watch or a hook of a phase.
    pub(crate) fn is_inside_lane(&self) -> bool {
        self.lane.get().copied() == tokio::task::try_id() && self.lane.get().is_some()
    }
}
