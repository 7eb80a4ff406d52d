//! The queue of events between agents and the reader of a run's stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use sessile_session::Event;

/// A queue with backpressure: a writer waits until the reader has taken its event, so agents do not
/// run ahead of the reader.
#[derive(Default)]
pub(crate) struct EventQueue {
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<Arc<Event>>,
    /// The total numbers of events that were taken and put in.
    taken: u64,
    put: u64,
    reader: Option<Waker>,
    /// Writers that wait, with the number of their event.
    writers: Vec<(u64, Waker)>,
}

impl EventQueue {
    /// Queues an event, and waits until the reader has taken it.
    pub(crate) async fn put(&self, event: Arc<Event>) {
        let number = {
            let mut state = self.state();
            state.events.push_back(event);
            state.put += 1;
            if let Some(reader) = state.reader.take() {
                reader.wake();
            }
            state.put
        };
        std::future::poll_fn(|cx| {
            let mut state = self.state();
            if state.taken >= number {
                return Poll::Ready(());
            }
            match state.writers.iter_mut().find(|(waits, _)| *waits == number) {
                Some((_, waker)) => waker.clone_from(cx.waker()),
                None => state.writers.push((number, cx.waker().clone())),
            }
            Poll::Pending
        })
        .await;
    }

    /// The next event, if there is one.
    pub(crate) fn take(&self) -> Option<Arc<Event>> {
        let mut state = self.state();
        let event = state.events.pop_front()?;
        state.taken += 1;
        let taken = state.taken;
        if let Some(index) = state.writers.iter().position(|(number, _)| *number == taken) {
            let (_, waker) = state.writers.swap_remove(index);
            drop(state);
            waker.wake();
        }
        Some(event)
    }

    /// Sets the waker of the reader, which is woken when there is an event.
    pub(crate) fn read_by(&self, waker: &Waker) {
        let mut state = self.state();
        match &mut state.reader {
            Some(reader) => reader.clone_from(waker),
            None => state.reader = Some(waker.clone()),
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
