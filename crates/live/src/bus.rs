use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::broadcast;

use crate::event::{LiveEvent, OnEvent};
use crate::inbox::{Control, Inbox};
use crate::lock::lock;
use crate::pattern::Rate;

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
