//! Lanes: queues for events that need a row which another transaction has locked.
//!
//! A lane commits its events in batches, as the committer does, but waits until the lock is free.
//! While a lane is open, later events that need its row, or belong to one of its sessions, are
//! queued behind it, which keeps the order of each session.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use sessile_session::{Address, SessionError};
use tokio::sync::{Notify, Semaphore};

use crate::append::commit;
use crate::batch::{needed, session};
use crate::queue::{ACTION, Waiting, next_batch};

/// How long a lane waits for a locked row before it returns its connection to the pool.
const LOCK_TIMEOUT: Duration = Duration::from_millis(250);

/// How long it then waits before it takes a connection again.
const PAUSE: Duration = Duration::from_millis(50);

/// The capacity of all lanes together. When they are full, events are refused as `Unavailable`.
const CAPACITY: usize = 4096;

/// All open lanes; clones share them.
#[derive(Clone)]
pub(crate) struct Lanes {
    pool: Pool,
    /// Limits lanes to half of the pool's connections, so that the others stay free.
    connections: Arc<Semaphore>,
    /// A std mutex: it is never held across an `.await`.
    lanes: Arc<Mutex<Table>>,
    /// Notified when a lane closes.
    emptied: Arc<Notify>,
}

#[derive(Default)]
struct Table {
    /// The lane on which events that need a row are queued.
    of: HashMap<Address, u64>,
    queues: HashMap<u64, VecDeque<Waiting>>,
    last: u64,
}

impl Lanes {
    pub(crate) fn new(pool: Pool) -> Self {
        let connections = Arc::new(Semaphore::new((pool.status().max_size / 2).max(1)));
        Self { pool, connections, lanes: Arc::default(), emptied: Arc::default() }
    }

    /// Queues an event if one of the rows that it needs has a lane; returns it otherwise.
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

    /// Moves the events that need one of these rows to lanes; returns the others, in their order.
    pub(crate) fn set_aside(&self, waiting: Vec<Waiting>, held: &HashSet<Address>) -> Vec<Waiting> {
        let free = |one: Waiting| {
            // An earlier event of the batch may have opened a lane for its session.
            let one = self.route(one)?;
            let Some(row) = needed(&one.commit).find(|row| held.contains(row)) else { return Some(one) };
            self.open(row, one);
            None
        };
        waiting.into_iter().filter_map(free).collect()
    }

    /// Moves all events to lanes: those that share their largest scope to the same one.
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

    /// Waits until all lanes are closed.
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
                waiting = commit(&self.pool, waiting, LOCK_TIMEOUT).await;
                drop(permit);
                if waiting.is_empty() {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// The next batch of a lane; closes the lane if it is empty.
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
        if self.queues.values().map(VecDeque::len).sum::<usize>() >= CAPACITY {
            let reason = format!(
                "{CAPACITY} events wait for rows that other transactions hold; end those, and try again"
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
