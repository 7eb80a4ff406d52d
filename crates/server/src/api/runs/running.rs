use std::sync::Arc;
use std::time::Duration;

use sessile_agent::{Run, RunError};
use sessile_session::{Event, SessionError, SessionKey};
use tokio::time::Instant;

use super::run_request::AuthorizedRun;
use crate::api::run_registry::Ticket;
use crate::api::shared::Shared;
use crate::api::traces::Recorder;
use crate::http::error::{AFTER_A_RUN, ApiError, chain};
use crate::http::quota::Permit;

/// A run in progress. Dropping it ends it.
pub(crate) struct Running {
    run: Option<Run>,
    /// The first event, which [`Running::begin`] waited for.
    first: Option<Result<Arc<Event>, RunError>>,
    entered: Entered,
    deadline: Instant,
    recorder: Recorder,
    shared: Shared,
    _permit: Permit,
}

/// The entry of a run in the registry, removed when dropped.
struct Entered {
    ticket: Arc<Ticket>,
    /// The agent at the root.
    author: String,
    shared: Shared,
}

/// Why a run ended before it was complete.
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
    /// The message for the client. The text of a store's error is only for the log.
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
    /// Begins a run and waits for its first event, so that a run that cannot begin gets an error
    /// status instead of a stream. It can be cancelled from the beginning.
    pub(crate) async fn begin(shared: &Shared, authorized: AuthorizedRun) -> Result<Self, ApiError> {
        let permit = shared.http.lifecycle.permit_run(authorized.key.user())?;
        let deadline = Instant::now() + shared.http.limits.run_time;
        let mut recorder = shared.traces.record(authorized.key.clone(), authorized.runner.app());
        let mut request = authorized.request;
        let new_id = format!("e-{}", shared.http.ids.new_id());
        let invocation = request.invocation_id.clone().unwrap_or_else(|| new_id.clone());
        request.new_invocation_id = Some(new_id);
        let author = authorized.runner.root().name().to_owned();
        let ticket = shared.runs.enter(authorized.key, invocation, shared.http.lifecycle.run_token());
        let entered = Entered { ticket, author, shared: shared.clone() };
        let mut run = authorized.runner.run(request);
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
        // The event with the user's message is not sent back.
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
    /// Why the run was cancelled.
    fn ended(&self) -> Ended {
        if self.shared.http.lifecycle.is_stopping() { Ended::Stopped } else { Ended::Cancelled }
    }

    /// Stores that the server ended the run, for clients that read the session later. The runner
    /// stores the failure of an agent itself, and a client that cancels a run knows about it.
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
    /// The name of the error, as Python programs expect it.
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
