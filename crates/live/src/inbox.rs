use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::error::LiveError;
use crate::tool_call::ToolCall;

/// What the control lane is told.
#[derive(Debug)]
pub(crate) enum Control {
    /// The server agreed to a setup.
    Connected {
        resumed: bool,
    },
    /// The session is over.
    Disconnected(Option<Arc<str>>),
    /// The user wrote or was heard to say this.
    UserText(Arc<str>),
    /// The model wrote or said this.
    ModelText(Arc<str>),
    ToolCalls {
        calls: Vec<ToolCall>,
        /// The number of the conversation that they belong to.
        conversation: u64,
    },
    ToolCancellation(Vec<String>),
    Interrupted,
    GenerationComplete,
    TurnComplete,
    GoAway(Option<Duration>),
    /// An error that was reported already; the application is still to be told.
    Error(Arc<str>),
    /// The pattern with this number was seen.
    Fired(usize),
    /// Time has passed.
    Tick,
    /// Somebody asks for another phase.
    Transition(String, oneshot::Sender<Result<(), LiveError>>),
    /// Somebody asks for another instruction.
    Instruction(String),
}

/// The way to the control lane. What the network sends waits for room, so that nobody can fill the
/// memory; what the session itself says never waits, so that nobody waits in a circle.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: mpsc::UnboundedSender<(Control, Paced)>,
    room: Arc<Semaphore>,
    /// Whether a tick is in the queue: one is enough.
    ticked: Arc<AtomicBool>,
}

/// The control lane's end.
pub(crate) struct Messages {
    receiver: mpsc::UnboundedReceiver<(Control, Paced)>,
    room: Arc<Semaphore>,
    ticked: Arc<AtomicBool>,
}

type Paced = bool;

/// How many messages of the network may wait.
const ROOM: usize = 1024;

pub(crate) fn inbox() -> (Inbox, Messages) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(ROOM));
    let ticked = Arc::new(AtomicBool::new(false));
    let inbox = Inbox { sender, room: room.clone(), ticked: ticked.clone() };
    (inbox, Messages { receiver, room, ticked })
}

impl Inbox {
    /// Tells the lane something from the network, when there is room.
    pub(crate) async fn send(&self, message: Control) {
        if let Ok(permit) = self.room.acquire().await {
            permit.forget();
            self.put(message, true);
        }
    }

    /// Tells the lane something at once.
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
            tracing::debug!(?message, "came after the end of the session");
        }
    }
}

impl Messages {
    pub(crate) async fn next(&mut self) -> Option<Control> {
        let (message, paced) = self.receiver.recv().await?;
        if paced {
            self.room.add_permits(1);
        }
        if matches!(message, Control::Tick) {
            self.ticked.store(false, Ordering::Relaxed);
        }
        Some(message)
    }
}

/// Whoever waits for room when the lane has ended is sent on his way.
impl Drop for Messages {
    fn drop(&mut self) {
        self.room.close();
    }
}
