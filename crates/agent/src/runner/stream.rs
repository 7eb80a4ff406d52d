use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::BoxFuture;
use sessile_session::{Event, SessionKey};

use crate::error::RunError;
use crate::event_queue::EventQueue;
use crate::turn::Turn;

/// A run, as the stream of its events.
///
/// The run goes on while the stream is read. Dropping the stream cancels the run: what was
/// committed stays, nothing is written afterwards, and the session can be used again.
#[must_use = "a run does nothing unless its events are read"]
pub struct Run {
    /// The rest of the run; `None` when it is over.
    work: Option<BoxFuture<'static, Result<(), RunError>>>,
    ended: BoxFuture<'static, ()>,
    queue: Arc<EventQueue>,
    turn: Arc<Turn>,
    /// How the run ended, until the events before that are read.
    error: Option<RunError>,
    key: Option<SessionKey>,
}

impl Run {
    pub(super) fn new(
        work: BoxFuture<'static, Result<(), RunError>>,
        queue: Arc<EventQueue>,
        turn: Arc<Turn>,
        key: Option<SessionKey>,
    ) -> Self {
        Self { work: Some(work), ended: Box::pin(turn.ended()), queue, turn, error: None, key }
    }

    /// The next event; `None` when the run is over. After an error there is nothing more.
    pub async fn next(&mut self) -> Option<Result<Arc<Event>, RunError>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Reads all events to the end.
    ///
    /// # Errors
    ///
    /// What ended the run; the events before are in the session.
    pub async fn collect(mut self) -> Result<Vec<Arc<Event>>, RunError> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event?);
        }
        Ok(events)
    }

    /// Ends the run, and drops the rest of its work.
    fn close(&mut self) {
        if self.work.is_some() {
            self.turn.end();
            self.work = None;
        }
    }
}

impl Stream for Run {
    type Item = Result<Arc<Event>, RunError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.queue.take() {
                return Poll::Ready(Some(Ok(event)));
            }
            let this = &mut *self;
            let Some(work) = &mut this.work else {
                return Poll::Ready(this.error.take().map(Err));
            };
            this.queue.read_by(cx.waker());
            match work.as_mut().poll(cx) {
                Poll::Ready(outcome) => {
                    this.close();
                    this.error = outcome.err();
                }
                Poll::Pending => {
                    if let Some(event) = this.queue.take() {
                        return Poll::Ready(Some(Ok(event)));
                    }
                    if this.ended.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    this.close();
                    this.error = this.key.take().map(|key| RunError::Cancelled { key });
                }
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("session", &self.key).finish_non_exhaustive()
    }
}
