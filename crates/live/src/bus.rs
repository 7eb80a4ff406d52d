use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::broadcast;

use crate::event::{LiveEvent, OnEvent};
use crate::inbox::{Control, Inbox};
use crate::lock::lock;
use crate::pattern::Rate;

/// The events of a session since this subscription.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<LiveEvent>,
}

impl Events {
    /// The next event, or `None` when the session is over. A subscriber that falls more than 1024
    /// events behind gets [`LiveEvent::Missed`]; the session never waits for a subscriber.
    pub async fn next(&mut self) -> Option<LiveEvent> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(LiveEvent::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// How many events a subscriber may fall behind before it misses some.
const CAPACITY: usize = 1024;

/// Delivers every event to the callbacks, the rate patterns and the subscribers.
pub(crate) struct Bus {
    on_event: Vec<OnEvent>,
    /// Created by the first subscription: most sessions have none, and the buffer is large.
    readers: Mutex<Option<broadcast::Sender<LiveEvent>>>,
    /// Whether there was ever a subscription; checked for each event without a lock.
    read: AtomicBool,
    closed: AtomicBool,
    /// Patterns that count events, each with its index among all patterns.
    rates: Mutex<Vec<(usize, Rate)>>,
    counts: bool,
    /// The control lane, which runs the action of a pattern.
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
            tracing::trace!("the last subscriber has just unsubscribed");
        }
    }

    pub(crate) fn subscribe(&self) -> Events {
        let mut readers = lock(&self.readers);
        let receiver = if self.closed.load(Ordering::Acquire) {
            broadcast::Sender::new(1).subscribe() // the sender is dropped at once, so the stream is at its end
        } else {
            readers.get_or_insert_with(|| broadcast::Sender::new(CAPACITY)).subscribe()
        };
        self.read.store(true, Ordering::Release);
        Events { receiver }
    }

    /// Ends the streams of all subscribers.
    pub(crate) fn close(&self) {
        let mut readers = lock(&self.readers);
        self.closed.store(true, Ordering::Release);
        *readers = None;
    }
}
