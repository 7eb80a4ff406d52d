//! One run at a time in each session.
//!
//! A [`Turn`] is a run's right to write. It ends when the run is done or cancelled, or when its
//! stream is dropped, and nothing is written afterwards: a commit that has begun is finished first,
//! and only then the next run gets its turn.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use sessile_session::{Event, SessionKey};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::error::AgentError;
use crate::run_request::WhenBusy;

/// The result of a commit.
type Committed = Result<Arc<Event>, AgentError>;
/// A commit that has begun.
type Commit = BoxFuture<'static, Committed>;

/// A run's right to write to its session.
#[derive(Default)]
pub(crate) struct Turn {
    state: Mutex<TurnState>,
    /// Tells the run's stream that its turn is over.
    over: CancellationToken,
}

#[derive(Default)]
struct TurnState {
    is_over: bool,
    /// The commit in progress. It is here and not in the future of the run, so that [`Turn::end`]
    /// can finish it after the run was dropped.
    commit: Option<Commit>,
    /// The lock of the session, released when the turn is over and the commit has ended.
    seat: Option<Taken>,
}

impl Turn {
    pub(crate) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Resolves when the turn was ended from outside, by a cancellation or a newer run.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        self.over.clone().cancelled_owned()
    }

    /// Ends the turn: from here on it writes nothing.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        let (commit, seat) = (state.commit.take(), state.seat.take());
        drop(state);
        settle(commit, seat);
        self.over.cancel();
    }

    /// Runs a commit to its end, if it is still this run's turn.
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Arc<Event>, AgentError> {
        self.begin(commit)?;
        Committing { turn: self, done: false }.await
    }

    fn begin(&self, commit: Commit) -> Result<(), AgentError> {
        let mut state = self.state();
        if state.is_over {
            return Err(AgentError::Cancelled);
        }
        state.commit = Some(commit);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Finishes a commit whose caller was dropped, then releases the session.
fn settle(commit: Option<Commit>, seat: Option<Taken>) {
    if let Some(commit) = commit
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        drop(runtime.spawn(async move {
            if let Err(error) = commit.await {
                tracing::warn!(%error, "the last commit of a run that had ended failed");
            }
            drop(seat);
        }));
    }
}

/// Waits for the commit of a turn.
struct Committing<'a> {
    turn: &'a Turn,
    done: bool,
}

impl Future for Committing<'_> {
    type Output = Committed;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.turn.state();
        let Some(commit) = &mut state.commit else {
            drop(state);
            self.done = true;
            return Poll::Ready(Err(AgentError::Cancelled));
        };
        let Poll::Ready(committed) = commit.as_mut().poll(cx) else { return Poll::Pending };
        state.commit = None;
        drop(state);
        self.done = true;
        Poll::Ready(committed)
    }
}

/// An agent may stop waiting without ending the turn; the commit ends all the same, before the next
/// one.
impl Drop for Committing<'_> {
    fn drop(&mut self) {
        if !self.done {
            let commit = self.turn.state().commit.take();
            settle(commit, None);
        }
    }
}

/// The sessions that are being run.
#[derive(Default)]
pub(crate) struct Seats {
    by_session: Mutex<HashMap<SessionKey, Arc<Seat>>>,
}

/// Where the runs of a session take turns.
#[derive(Default)]
struct Seat {
    /// Locked by the run whose turn it is. The lock is fair, so runs proceed in the order of their
    /// requests.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// The runs that have or wait for their turn, in order.
    runs: Mutex<Vec<Arc<Turn>>>,
}

/// The session is busy, and the run does not wait ([`WhenBusy::Reject`]).
pub(crate) struct Busy;

impl Seats {
    /// Waits until it is this run's turn.
    pub(crate) async fn take(
        self: &Arc<Self>,
        key: &SessionKey,
        turn: &Arc<Turn>,
        when_busy: WhenBusy,
    ) -> Result<(), Busy> {
        let seat = self.table().entry(key.clone()).or_default().clone();
        let before = {
            let mut runs = seat.runs();
            let before = if when_busy == WhenBusy::CancelPrevious { runs.clone() } else { Vec::new() };
            runs.push(turn.clone());
            before
        };
        // From here on, dropping this value releases the seat, also if the run is cancelled.
        let mut taken =
            Taken { seats: self.clone(), key: key.clone(), seat, turn: Arc::downgrade(turn), guard: None };
        before.iter().for_each(|turn| turn.end());
        let lock = taken.seat.turn.clone();
        taken.guard = match when_busy {
            WhenBusy::Reject => Some(lock.try_lock_owned().map_err(|_| Busy)?),
            WhenBusy::Queue | WhenBusy::CancelPrevious => Some(lock.lock_owned().await),
        };
        let mut state = turn.state();
        if !state.is_over {
            state.seat = Some(taken);
        }
        Ok(())
    }

    /// Ends the run whose turn it is. Returns whether there was one.
    pub(crate) fn cancel(&self, key: &SessionKey) -> bool {
        let seat = self.table().get(key).cloned();
        let running = seat.and_then(|seat| seat.runs().first().cloned());
        match running {
            Some(turn) => {
                turn.end();
                true
            }
            None => false,
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionKey, Arc<Seat>>> {
        self.by_session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    fn runs(&self) -> MutexGuard<'_, Vec<Arc<Turn>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run's lock of its session, or its place in the queue for it; released when dropped.
struct Taken {
    seats: Arc<Seats>,
    key: SessionKey,
    seat: Arc<Seat>,
    turn: std::sync::Weak<Turn>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.seat.runs().retain(|run| !std::ptr::eq(Arc::as_ptr(run), self.turn.as_ptr()));
        drop(self.guard.take());
        let mut table = self.seats.table();
        // Only the table and this value hold the seat: no other run has the lock or waits for it.
        if Arc::strong_count(&self.seat) <= 2 {
            table.remove(&self.key);
        }
    }
}
