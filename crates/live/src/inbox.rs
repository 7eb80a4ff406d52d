use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::error::LiveError;
use crate::tool_call::LiveToolCall;

/// A message to the control lane.
#[derive(Debug)]
pub(crate) enum Control {
    /// The server accepted the setup.
    Connected {
        resumed: bool,
    },
    /// The session is over.
    Disconnected(Option<Arc<str>>),
    /// The user wrote or said this.
    UserText(Arc<str>),
    /// The model wrote or said this.
    ModelText(Arc<str>),
    ToolCalls {
        calls: Vec<LiveToolCall>,
        /// The number of the conversation that they belong to, see `Wire::conversation`.
        conversation: u64,
    },
    ToolCancellation(Vec<String>),
    Interrupted,
    GenerationComplete,
    TurnComplete,
    GoAway(Option<Duration>),
    /// An error that is already in the signals and events; `on_error` has yet to be called.
    Error(Arc<str>),
    /// The pattern with this index fired.
    Fired(usize),
    /// Time has passed.
    Tick,
    /// The application forces a transition to a phase.
    Transition(String, oneshot::Sender<Result<(), LiveError>>),
    /// The application replaces the instruction.
    Instruction(String),
}

/// The queue of the control lane. Messages from the network wait for free capacity, so that a fast
/// server cannot fill the memory. Messages from the session itself never wait: the control lane may
/// be waiting for their sender, which would be a deadlock.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: mpsc::UnboundedSender<(Control, Paced)>,
    capacity: Arc<Semaphore>,
    /// Whether a tick is in the queue: one is enough.
    ticked: Arc<AtomicBool>,
}

/// The receiving end of the queue.
pub(crate) struct Messages {
    receiver: mpsc::UnboundedReceiver<(Control, Paced)>,
    capacity: Arc<Semaphore>,
    ticked: Arc<AtomicBool>,
}

/// Whether a message took a permit of the capacity.
type Paced = bool;

/// How many messages of the network may be queued.
const CAPACITY: usize = 1024;

pub(crate) fn inbox() -> (Inbox, Messages) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let capacity = Arc::new(Semaphore::new(CAPACITY));
    let ticked = Arc::new(AtomicBool::new(false));
    let inbox = Inbox { sender, capacity: capacity.clone(), ticked: ticked.clone() };
    (inbox, Messages { receiver, capacity, ticked })
}

impl Inbox {
    /// Queues a message from the network, when there is capacity.
    pub(crate) async fn send(&self, message: Control) {
        if let Ok(permit) = self.capacity.acquire().await {
            permit.forget();
            self.put(message, true);
        }
    }

    /// Queues a message of the session itself at once.
    pub(crate) fn tell(&self, message: Control) {
        self.put(message, false);
    }

    /// Sends a tick, unless one is in the queue.
    pub(crate) fn tick(&self) {
        if !self.ticked.swap(true, Ordering::Relaxed) {
            self.tell(Control::Tick);
        }
    }

    fn put(&self, message: Control, paced: Paced) {
        if let Err(mpsc::error::SendError((message, _))) = self.sender.send((message, paced)) {
            tracing::debug!(?message, "message dropped: the session is over");
        }
    }
}

impl Messages {
    pub(crate) async fn next(&mut self) -> Option<Control> {
        let (message, paced) = self.receiver.recv().await?;
        if paced {
            self.capacity.add_permits(1);
        }
        if matches!(message, Control::Tick) {
            self.ticked.store(false, Ordering::Relaxed);
        }
        Some(message)
    }
}

/// Wakes senders that wait for capacity: the lane has ended, so there will never be any.
impl Drop for Messages {
    fn drop(&mut self) {
        self.capacity.close();
    }
}
