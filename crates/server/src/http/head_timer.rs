//! How long a client may take to send the head of a request, with one timer for each connection.
//!
//! hyper begins a timer for every request and cancels it when the head is there. Each one is
//! earlier than everything that the runtime waits for, so each one wakes the thread that waits for
//! connections: a system call and a change of threads for every request. Here a connection keeps
//! its timer. When that goes off before the deadline of the current head, it is set again.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

/// The timer of one connection.
#[derive(Clone, Default)]
pub(crate) struct HeadTimer(Arc<Mutex<Option<Pin<Box<Sleep>>>>>);

impl hyper::rt::Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Deadline { at: deadline.into(), timer: self.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// A moment that the connection's timer waits for.
struct Deadline {
    at: tokio::time::Instant,
    timer: HeadTimer,
}

impl hyper::rt::Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut timer = self.timer.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sleep = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(self.at)));
        if sleep.deadline() > self.at {
            sleep.as_mut().reset(self.at);
        }
        while sleep.as_mut().poll(cx).is_ready() {
            if sleep.deadline() == self.at {
                return Poll::Ready(());
            }
            // It was set for an earlier head, which came in time.
            sleep.as_mut().reset(self.at);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::poll_immediate;
    use hyper::rt::Timer;

    use super::HeadTimer;

    /// Waits for a deadline, which must come, and not too early.
    async fn wait(timer: &HeadTimer, duration: Duration) {
        let deadline = timer.now() + duration;
        timer.sleep_until(deadline).await;
        assert!(timer.now() >= deadline, "{duration:?} are not over");
    }

    /// What hyper does: it waits for a head, which comes, and then for the next.
    #[tokio::test]
    async fn a_deadline_holds_whatever_the_timer_was_set_for_before() {
        let (timer, short) = (HeadTimer::default(), Duration::from_millis(20));
        for _ in 0..3 {
            let mut head = timer.sleep(short);
            assert_eq!(poll_immediate(&mut head).await, None);
            drop(head); // it came
            tokio::time::sleep(short / 2).await;
        }
        wait(&timer, short).await; // set for an earlier head
        wait(&timer, short).await; // gone off before
        let mut later = timer.sleep(Duration::from_secs(3600));
        assert_eq!(poll_immediate(&mut later).await, None);
        wait(&timer, short).await; // earlier than what it was set for
    }
}
