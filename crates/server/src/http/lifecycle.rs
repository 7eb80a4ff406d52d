use std::sync::Arc;

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::error::ApiError;
use super::limits::Limits;
use super::quota::{Permit, Quota};

/// Whether new runs may begin and running ones may go on. A server is open; then it is closing,
/// while it waits for its runs; then, if they take too long, it is stopping.
pub(crate) struct Lifecycle {
    /// The runs in progress, which a shutdown waits for.
    runs: Arc<Quota>,
    /// Cancelled when no more runs may begin. Streams without an end of their own end with it.
    closing: CancellationToken,
    /// Cancelled when runs are ended where they are.
    stopping: CancellationToken,
}

impl Lifecycle {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            runs: Quota::new("runs", limits.runs, limits.user_runs),
            closing: CancellationToken::new(),
            stopping: CancellationToken::new(),
        }
    }

    /// Permits a run of a user, unless there are too many runs or the server is shutting down.
    pub(crate) fn permit_run(&self, user: &str) -> Result<Permit, ApiError> {
        if self.closing.is_cancelled() {
            return Err(ApiError::Unavailable(
                "The server is shutting down; retry later or on another server".to_owned(),
            ));
        }
        self.runs.take(user)
    }

    /// How many runs are in progress.
    pub(crate) fn runs(&self) -> usize {
        self.runs.count()
    }

    /// Refuses new runs from now on.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Ends all runs where they are.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Whether runs are ended because the server stops.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Resolves when the server begins to shut down.
    pub(crate) fn closing(&self) -> WaitForCancellationFutureOwned {
        self.closing.clone().cancelled_owned()
    }

    /// A token that cancels one run, and is cancelled when the server stops.
    pub(crate) fn run_token(&self) -> CancellationToken {
        self.stopping.child_token()
    }
}
