use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessile_session::SessionKey;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::detached::Log;
use crate::error::ApiError;
use crate::limits::Limits;
use crate::quota::{Place, Quota};

/// How many detached runs that are over can still be followed from memory.
const REMEMBERED: usize = 256;

/// How much they may have said together, in bytes.
const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;

/// The runs of this server: how many, which, and whether there may be more.
pub(crate) struct Runs {
    places: Arc<Quota>,
    /// No run begins any more, and streams that have no end come to one.
    closing: CancellationToken,
    /// Runs end where they are.
    stopping: CancellationToken,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    active: Vec<Arc<Ticket>>,
    /// Detached runs, the oldest first, also those that are over.
    logs: VecDeque<Arc<Log>>,
}

/// A run as others see it.
pub(crate) struct Ticket {
    pub(crate) key: SessionKey,
    /// The id that a new invocation will have, until the first event says which one it is.
    invocation: Mutex<String>,
    /// Ends the run.
    pub(crate) cancel: CancellationToken,
}

impl Ticket {
    pub(crate) fn invocation(&self) -> String {
        self.invocation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says which invocation it is.
    pub(crate) fn is_of(&self, invocation: &str) {
        invocation.clone_into(&mut self.invocation.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Runs {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            places: Quota::new("runs", limits.runs, limits.user_runs),
            closing: CancellationToken::new(),
            stopping: CancellationToken::new(),
            table: Mutex::default(),
        }
    }

    /// Leave to run for a user, unless there are too many runs or the server is shutting down.
    pub(crate) fn permit(&self, user: &str) -> Result<Place, ApiError> {
        if self.closing.is_cancelled() {
            return Err(ApiError::Unavailable(
                "The server is shutting down; ask another, or later".to_owned(),
            ));
        }
        self.places.take(user)
    }

    /// How many runs are going on.
    pub(crate) fn running(&self) -> usize {
        self.places.count()
    }

    /// Lets no more runs begin.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Ends all runs where they are.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Whether runs end because the server does.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Comes when the server is shutting down.
    pub(crate) fn closing(&self) -> WaitForCancellationFutureOwned {
        self.closing.clone().cancelled_owned()
    }

    /// Enters a run, which others can then cancel.
    pub(crate) fn enter(&self, key: SessionKey, invocation: String) -> Arc<Ticket> {
        let ticket =
            Arc::new(Ticket { key, invocation: Mutex::new(invocation), cancel: self.stopping.child_token() });
        self.table().active.push(ticket.clone());
        ticket
    }

    pub(crate) fn leave(&self, ticket: &Arc<Ticket>) {
        self.table().active.retain(|other| !Arc::ptr_eq(other, ticket));
    }

    /// Ends a run. Tells whether there was one.
    pub(crate) fn cancel(&self, key: &SessionKey, invocation: &str) -> bool {
        let table = self.table();
        let found = table.active.iter().find(|run| run.key == *key && run.invocation() == invocation);
        found.inspect(|run| run.cancel.cancel()).is_some()
    }

    /// The invocations that are going on in a session.
    pub(crate) fn of(&self, key: &SessionKey) -> Vec<String> {
        let table = self.table();
        table.active.iter().filter(|run| run.key == *key).map(|run| run.invocation()).collect()
    }

    /// Remembers a detached run.
    pub(crate) fn remember(&self, log: Arc<Log>) {
        self.table().logs.push_back(log);
        self.forget();
    }

    /// Forgets the oldest runs that are over, if there are too many or they said too much.
    pub(crate) fn forget(&self) {
        let logs = &mut self.table().logs;
        let mut size: usize = logs.iter().map(|log| log.size()).sum();
        while logs.len() > REMEMBERED || size > REMEMBERED_BYTES {
            let over = logs.iter().position(|log| log.is_over());
            let Some(log) = over.and_then(|place| logs.remove(place)) else { break };
            size = size.saturating_sub(log.size());
        }
    }

    /// A detached run.
    pub(crate) fn log(&self, key: &SessionKey, invocation: &str) -> Option<Arc<Log>> {
        let table = self.table();
        table.logs.iter().rev().find(|log| log.key == *key && log.invocation == invocation).cloned()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
