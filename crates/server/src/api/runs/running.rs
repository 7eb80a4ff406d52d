use std::sync::Arc;
use std::time::Duration;

use sessile_agent::{Run, RunError};
use sessile_session::{Event, SessionError, SessionKey};
use tokio::time::Instant;

use super::run_request::RunOrder;
use crate::api::run_registry::Ticket;
use crate::api::shared::Shared;
use crate::api::traces::Recorder;
use crate::http::error::{AFTER_A_RUN, ApiError, chain};
use crate::http::quota::Permit;

/// A run that is going on. Dropping it ends it.
pub(crate) struct Running {
    run: Option<Run>,
    /// What came before anybody asked.
    first: Option<Result<Arc<Event>, RunError>>,
    entered: Entered,
    deadline: Instant,
    recorder: Recorder,
    shared: Shared,
    _permit: Permit,
}

/// A run's ticket, given back when dropped.
struct Entered {
    ticket: Arc<Ticket>,
    /// The agent at the root.
    author: String,
    shared: Shared,
}

/// Why a run did not come to its own end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error(transparent)]
    Failed(#[from] RunError),
    #[error("the run was cancelled")]
    Cancelled,
    #[error("the server was stopped before the run was complete; its events until then are stored")]
    Stopped,
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
            Self::Failed(RunError::Session(SessionError::InDoubt { action, .. })) => {
                format!("tried to {action}, which is done or not done; {AFTER_A_RUN}")
            }
            other => other.to_string(),
        }
    }
}

impl Running {
    /// Begins a run and waits for its first event, so that what makes it impossible is known before
    /// anything is answered. It can be cancelled from the beginning.
    pub(crate) async fn begin(shared: &Shared, order: RunOrder) -> Result<Self, ApiError> {
        let permit = shared.http.lifecycle.permit_run(order.key.user())?;
        let deadline = Instant::now() + shared.http.limits.run_time;
        let mut recorder = shared.traces.record(order.key.clone(), order.runner.app());
        let mut request = order.request;
        let new_id = format!("e-{}", shared.http.ids.new_id());
        let invocation = request.invocation_id.clone().unwrap_or_else(|| new_id.clone());
        request.new_invocation_id = Some(new_id);
        let author = order.runner.root().name().to_owned();
        let ticket = shared.runs.enter(order.key, invocation, shared.http.lifecycle.run_token());
        let entered = Entered { ticket, author, shared: shared.clone() };
        let mut run = order.runner.run(request);
        let first = tokio::select! {
            biased;
            () = entered.ticket.cancel.cancelled() => return Err(entered.ended().into()),
            first = tokio::time::timeout_at(deadline, run.next()) => first,
        };
        let first = first.map_err(|_| ApiError::from(Ended::TooLong(shared.http.limits.run_time)))?;
        let first = match first {
            Some(Err(error @ (RunError::Session(_) | RunError::Busy { .. }))) => return Err(error.into()),
            first => first,
        };
        let event = first.as_ref().and_then(|first| first.as_ref().ok()).cloned();
        if let Some(event) = &event {
            entered.ticket.is_of(&event.invocation_id);
            recorder.event(event);
        }
        // The user knows what the user said.
        let said = event.is_some_and(|event| event.author == "user");
        let first = if said { None } else { first };
        let shared = shared.clone();
        Ok(Self { run: Some(run), first, entered, deadline, recorder, shared, _permit: permit })
    }

    pub(crate) fn key(&self) -> &SessionKey {
        &self.entered.ticket.key
    }

    pub(crate) fn invocation(&self) -> String {
        self.entered.ticket.invocation()
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> Option<Result<Arc<Event>, Ended>> {
        if let Some(first) = self.first.take() {
            return Some(first.map_err(Ended::from));
        }
        let run = self.run.as_mut()?;
        let next = tokio::select! {
            biased;
            () = self.entered.ticket.cancel.cancelled() => Some(Err(self.entered.ended())),
            next = tokio::time::timeout_at(self.deadline, run.next()) => match next {
                Ok(next) => next.map(|event| event.map_err(Ended::from)),
                Err(_) => Some(Err(Ended::TooLong(self.shared.http.limits.run_time))),
            },
        };
        match &next {
            Some(Ok(event)) => self.recorder.event(event),
            Some(Err(ended)) => {
                self.run = None;
                self.entered.store_end(ended).await;
            }
            None => self.run = None,
        }
        next
    }
}

impl Entered {
    /// Why the run was told to end.
    fn ended(&self) -> Ended {
        if self.shared.http.lifecycle.is_stopping() { Ended::Stopped } else { Ended::Cancelled }
    }

    /// Stores that the server ended the run, for whoever looks for its answer later. An agent that
    /// fails stores it itself, and whoever cancels a run knows.
    async fn store_end(&self, ended: &Ended) {
        if !matches!(ended, Ended::Stopped | Ended::TooLong(_)) {
            return;
        }
        let mut event = Event::new(&self.author);
        event.invocation_id = self.ticket.invocation();
        event.error_code = Some("INVOCATION_ABORTED".to_owned());
        event.error_message = Some(ended.to_string());
        if let Err(error) = self.shared.sessions.append_to(&self.ticket.key, event).await {
            tracing::error!(session = %self.ticket.key, error = %chain(&error), "cannot store that a run was ended");
        }
    }
}

impl Drop for Entered {
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
            Self::Stopped => "ShutdownError",
            Self::TooLong(_) => "TimeoutError",
        }
    }
}

impl From<Ended> for ApiError {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Failed(error) => error.into(),
            Ended::Cancelled => Self::Conflict(ended.to_string()),
            Ended::Stopped | Ended::TooLong(_) => Self::Unavailable(ended.to_string()),
        }
    }
}
