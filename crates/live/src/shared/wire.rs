use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use crate::error::LiveError;
use crate::lock::lock;
use crate::transport::Platform;
use crate::wire::{Outgoing, Purpose, WirePhase};

/// The connection of a session as the rest of the session sees it. It outlives reconnects.
///
/// The mutexes are those of std, not Tokio's: they are never held across an `.await`.
pub(crate) struct Wire {
    pub(crate) platform: Platform,
    /// Whether the client signals the start and end of speech, instead of the server detecting it.
    pub(crate) manual_activity: bool,
    /// The sample rate of the user's voice, in Hz.
    pub(crate) input_rate: u32,
    outgoing: mpsc::Sender<Outgoing>,
    phase: Mutex<WirePhase>,
    /// The handle that resumes the conversation on a new connection, if the server gave one.
    resume_handle: Mutex<Option<String>>,
    /// Counts the conversations of this session. A connection that resumes none begins the next.
    conversation: AtomicU64,
}

impl Wire {
    pub(crate) fn new(
        platform: Platform,
        manual_activity: bool,
        input_rate: u32,
        outgoing: mpsc::Sender<Outgoing>,
        resume_handle: Option<String>,
    ) -> Self {
        Self {
            platform,
            manual_activity,
            input_rate,
            outgoing,
            phase: Mutex::default(),
            resume_handle: Mutex::new(resume_handle),
            conversation: AtomicU64::new(0),
        }
    }

    /// Queues a frame, and waits while the queue is full.
    pub(crate) async fn send(&self, frame: Outgoing) -> Result<(), LiveError> {
        self.outgoing.send(frame).await.map_err(|_| LiveError::Closed)
    }

    pub(crate) fn phase(&self) -> WirePhase {
        *lock(&self.phase)
    }

    /// Sets the phase, and returns whether it is a different one.
    pub(super) fn set_phase(&self, phase: WirePhase) -> bool {
        std::mem::replace(&mut *lock(&self.phase), phase) != phase
    }

    pub(crate) fn resume_handle(&self) -> Option<String> {
        lock(&self.resume_handle).clone()
    }

    pub(crate) fn set_resume_handle(&self, handle: Option<String>) {
        *lock(&self.resume_handle) = handle;
    }

    /// The number of the conversation that the server knows.
    pub(crate) fn conversation(&self) -> u64 {
        self.conversation.load(Ordering::Acquire)
    }

    /// Begins a new conversation: answers to calls of earlier ones are stale from now on.
    pub(crate) fn begin_conversation(&self) {
        self.conversation.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the server can still use a frame. An answer is stale if the conversation whose call
    /// it answers is over.
    pub(crate) fn is_current(&self, frame: &Outgoing) -> bool {
        match frame.purpose {
            Purpose::Input => true,
            Purpose::Answer { conversation } => conversation == self.conversation(),
        }
    }
}
