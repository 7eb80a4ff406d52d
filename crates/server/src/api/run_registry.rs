use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sessile_session::SessionKey;
use tokio_util::sync::CancellationToken;

use super::run_log::RunLog;

/// How many logs of detached runs are kept.
const REMEMBERED: usize = 256;

/// The size of all their logs together, in bytes.
const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;

/// The runs of this process: those in progress, and the detached ones that are over but can still
/// be followed.
#[derive(Default)]
pub(crate) struct RunRegistry {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    active: Vec<Arc<Ticket>>,
    /// Detached runs, the oldest first, also those that are over.
    logs: VecDeque<Arc<RunLog>>,
}

/// A run as other requests see it.
pub(crate) struct Ticket {
    pub(crate) key: SessionKey,
    /// The id that a new invocation would get, until the first event has the actual one.
    invocation: Mutex<String>,
    /// Cancels the run.
    pub(crate) cancel: CancellationToken,
}

impl Ticket {
    pub(crate) fn invocation(&self) -> String {
        self.invocation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the invocation, once it is known.
    pub(crate) fn is_of(&self, invocation: &str) {
        invocation.clone_into(&mut self.invocation.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl RunRegistry {
    /// Enters a run, which other requests can then cancel.
    pub(crate) fn enter(
        &self,
        key: SessionKey,
        invocation: String,
        cancel: CancellationToken,
    ) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket { key, invocation: Mutex::new(invocation), cancel });
        self.table().active.push(ticket.clone());
        ticket
    }

    pub(crate) fn leave(&self, ticket: &Arc<Ticket>) {
        self.table().active.retain(|other| !Arc::ptr_eq(other, ticket));
    }

    /// Cancels a run. Returns whether there was one.
    pub(crate) fn cancel(&self, key: &SessionKey, invocation: &str) -> bool {
        let table = self.table();
        let found = table.active.iter().find(|run| run.key == *key && run.invocation() == invocation);
        found.inspect(|run| run.cancel.cancel()).is_some()
    }

    /// The invocations in progress in a session.
    pub(crate) fn of(&self, key: &SessionKey) -> Vec<String> {
        let table = self.table();
        table.active.iter().filter(|run| run.key == *key).map(|run| run.invocation()).collect()
    }

    /// Keeps the log of a detached run.
    pub(crate) fn remember(&self, log: Arc<RunLog>) {
        self.table().logs.push_back(log);
        self.forget();
    }

    /// Drops the logs of the oldest runs that are over, while there are too many or they are too
    /// large.
    pub(crate) fn forget(&self) {
        let logs = &mut self.table().logs;
        let mut size: usize = logs.iter().map(|log| log.size()).sum();
        while logs.len() > REMEMBERED || size > REMEMBERED_BYTES {
            let over = logs.iter().position(|log| log.is_over());
            let Some(log) = over.and_then(|index| logs.remove(index)) else { break };
            size = size.saturating_sub(log.size());
        }
    }

    /// The log of a detached run.
    pub(crate) fn log(&self, key: &SessionKey, invocation: &str) -> Option<Arc<RunLog>> {
        let table = self.table();
        table.logs.iter().rev().find(|log| log.key == *key && log.invocation == invocation).cloned()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
