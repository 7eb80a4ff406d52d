//! Lanes beside the batch of all sessions, for events that need a row that somebody else holds.
//!
//! A lane commits what it holds together, as the batch does, but may wait. While it has something
//! to do, later events that need its row, or one of its sessions, line up on it: so the order of
//! each session is kept.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use sessile_session::{Address, SessionError};
use tokio::sync::{Notify, Semaphore};

use crate::append::commit;
use crate::batch::{needed, session};
use crate::queue::{ACTION, Waiting, next_batch};

/// How long a lane waits for its row with a connection in its hand, before others may have the
/// connection.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long it then goes without.
const PAUSE: Duration = Duration::from_millis(50);

/// How many events may be on all lanes together; more are refused.
const LONGEST: usize = 4096;

/// Clones are the same lanes.
#[derive(Clone)]
pub(crate) struct Lanes {
    pool: Pool,
    /// Lanes wait with half of the connections at the most.
    connections: Arc<Semaphore>,
    /// A std mutex: it is never held across an `.await`.
    lanes: Arc<Mutex<Table>>,
    /// Notified when a lane is done.
    emptied: Arc<Notify>,
}

#[derive(Default)]
struct Table {
    /// Which lane a row's events line up on.
    of: HashMap<Address, u64>,
    queues: HashMap<u64, VecDeque<Waiting>>,
    last: u64,
}

impl Lanes {
    pub(crate) fn new(pool: Pool) -> Self {
        let connections = Arc::new(Semaphore::new((pool.status().max_size / 2).max(1)));
        Self { pool, connections, lanes: Arc::default(), emptied: Arc::default() }
    }

    /// Lines an event up if a lane has a row of it; returns it otherwise.
    pub(crate) fn route(&self, one: Waiting) -> Option<Waiting> {
        let mut table = self.table();
        if table.queues.is_empty() {
            return Some(one);
        }
        match needed(&one.commit).find_map(|row| table.of.get(&row).copied()) {
            Some(lane) => table.push(lane, one),
            None => return Some(one),
        }
        None
    }

    /// Puts those that need one of these rows on lanes; returns the others, in their order.
    pub(crate) fn set_aside(&self, waiting: Vec<Waiting>, held: &HashSet<Address>) -> Vec<Waiting> {
        let free = |one: Waiting| {
            // Its session may have come on a lane with the event before it.
            let one = self.route(one)?;
            let Some(row) = needed(&one.commit).find(|row| held.contains(row)) else { return Some(one) };
            self.open(row, one);
            None
        };
        waiting.into_iter().filter_map(free).collect()
    }

    /// Puts all on lanes: those that share a scope on one.
    pub(crate) fn set_all_aside(&self, waiting: Vec<Waiting>) {
        for one in waiting {
            if let Some(one) = self.route(one) {
                let largest = needed(&one.commit).last().unwrap_or_else(|| session(&one.commit));
                self.open(largest, one);
            }
        }
    }

    /// Opens a lane for the events that need a row.
    fn open(&self, row: Address, first: Waiting) {
        let mut table = self.table();
        table.last += 1;
        let lane = table.last;
        table.queues.insert(lane, VecDeque::new());
        table.of.insert(row, lane);
        table.push(lane, first);
        tokio::spawn(self.clone().run(lane));
    }

    /// Waits until all lanes are done.
    pub(crate) async fn finish(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.table().queues.is_empty() {
                return;
            }
            emptied.await;
        }
    }

    async fn run(self, lane: u64) {
        let mut left = None;
        while let Some(mut waiting) = self.next(lane, &mut left) {
            loop {
                let permit = self.connections.acquire().await;
                waiting = commit(&self.pool, waiting, PATIENCE).await;
                drop(permit);
                if waiting.is_empty() {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// The next events of a lane; the lane is closed if there are none.
    fn next(&self, lane: u64, left: &mut Option<Waiting>) -> Option<Vec<Waiting>> {
        let mut table = self.table();
        let mut next = left.take();
        let queue = table.queues.get_mut(&lane)?;
        let waiting = next_batch(|| next.take().or_else(|| queue.pop_front()), left);
        if waiting.is_empty() {
            table.queues.remove(&lane);
            table.of.retain(|_, of| *of != lane);
            self.emptied.notify_waiters();
            return None;
        }
        Some(waiting)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn push(&mut self, lane: u64, one: Waiting) {
        if self.queues.values().map(VecDeque::len).sum::<usize>() >= LONGEST {
            let reason = format!(
                "{LONGEST} events wait for rows that other transactions hold; end those, and try again"
            );
            let source = "too many events wait".into();
            let refused = SessionError::Unavailable { action: ACTION, reason, source };
            drop(one.reply.send(Err(refused)));
            return;
        }
        self.of.insert(session(&one.commit), lane);
        if let Some(queue) = self.queues.get_mut(&lane) {
            queue.push_back(one);
        }
    }
}
