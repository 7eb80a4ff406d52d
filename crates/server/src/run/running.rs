use std::sync::Arc;
use std::time::Duration;

use sessile_agent::{Run, RunError};
use sessile_session::{Event, SessionError, SessionKey};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::order::Order;
use super::runs::Ticket;
use crate::error::ApiError;
use crate::server::Shared;
use crate::trace::Recorder;

/// A run that is going on. Dropping it ends it.
pub(crate) struct Running {
    run: Option<Run>,
    /// What came before anybody asked.
    first: Option<Result<Arc<Event>, RunError>>,
    ticket: Arc<Ticket>,
    deadline: Instant,
    recorder: Recorder,
    shared: Shared,
    _permit: OwnedSemaphorePermit,
}

/// Why a run did not come to its own end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error(transparent)]
    Failed(#[from] RunError),
    #[error("the run was cancelled")]
    Cancelled,
    #[error("the run took longer than {0:?} and was ended")]
    TooLong(Duration),
}

impl Ended {
    /// What is sent: as it is, unless it is the store's own text, which is for the log.
    pub(crate) fn public_message(&self) -> String {
        match self {
            Self::Failed(RunError::Session(SessionError::Backend { action, .. })) => {
                format!("cannot {action}; the server's log has the cause")
            }
            Self::Failed(RunError::Session(SessionError::InDoubt { action, advice, .. })) => {
                format!("tried to {action}, which is done or not done; {advice}")
            }
            other => other.to_string(),
        }
    }
}

impl Running {
    /// Begins a run and waits for its first event, so that what makes it impossible is known before
    /// anything is answered.
    pub(crate) async fn begin(shared: &Shared, order: Order) -> Result<Self, ApiError> {
        let permit = shared.runs.permit()?;
        let deadline = Instant::now() + shared.limits.run_time;
        let mut recorder = shared.traces.record(order.key.clone(), order.runner.app());
        let mut run = order.runner.run(order.request);
        let too_long = || ApiError::from(Ended::TooLong(shared.limits.run_time));
        let first = tokio::time::timeout_at(deadline, run.next()).await.map_err(|_| too_long())?;
        let first = match first {
            Some(Err(error @ (RunError::Session(_) | RunError::Busy { .. }))) => return Err(error.into()),
            first => first,
        };
        let event = first.as_ref().and_then(|first| first.as_ref().ok()).cloned();
        let invocation = event.as_ref().map(|event| event.invocation_id.clone()).unwrap_or_default();
        if let Some(event) = &event {
            recorder.event(event);
        }
        // The user knows what the user said.
        let said = event.is_some_and(|event| event.author == "user");
        let (first, run) = if said { (None, Some(run)) } else { (first, Some(run)) };
        let ticket = shared.runs.enter(order.key, invocation);
        Ok(Self { run, first, ticket, deadline, recorder, shared: shared.clone(), _permit: permit })
    }

    pub(crate) fn key(&self) -> &SessionKey {
        &self.ticket.key
    }

    pub(crate) fn invocation(&self) -> &str {
        &self.ticket.invocation
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> Option<Result<Arc<Event>, Ended>> {
        if let Some(first) = self.first.take() {
            return Some(first.map_err(Ended::from));
        }
        let run = self.run.as_mut()?;
        let cancelled = self.ticket.cancel.cancelled();
        let next = tokio::select! {
            biased;
            () = cancelled => Some(Err(Ended::Cancelled)),
            next = tokio::time::timeout_at(self.deadline, run.next()) => match next {
                Ok(next) => next.map(|event| event.map_err(Ended::from)),
                Err(_) => Some(Err(Ended::TooLong(self.shared.limits.run_time))),
            },
        };
        match &next {
            Some(Ok(event)) => self.recorder.event(event),
            _ => self.run = None,
        }
        next
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.runs.leave(&self.ticket);
    }
}

impl Ended {
    /// A name for programs.
    pub(crate) fn error_type(&self) -> &str {
        match self {
            Self::Failed(error) => error.error_type(),
            Self::Cancelled => "CancelledError",
            Self::TooLong(_) => "TimeoutError",
        }
    }
}

impl From<Ended> for ApiError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Failed(error) => error.into(),
            Ended::Cancelled => Self::Conflict(ended.to_string()),
            Ended::TooLong(_) => Self::Unavailable(ended.to_string()),
        }
    }
}
