//! A lock whose keys can be claimed by a `modify` in progress.
//!
//! A `modify` closure is user code, so no lock may be held while it runs; yet no other write may
//! come between its read and its write. It therefore *claims* its key: the lock is released,
//! readers continue to read the old value, and writers of that key wait until the claim is
//! released. A wait that could never end is an error:
//!
//! - the claim belongs to the calling thread: [`Why::Reentrant`];
//! - two threads wait for each other's claims: [`Why::Deadlock`], found by walking
//!   the list of all waits;
//! - the closure itself waits for something that waits for the key: [`Why::TimedOut`].

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::error::StateError;
use crate::sync::{Condvar, Mutex, MutexGuard, ThreadId, lock, this_thread};

/// How long a write waits for another thread's closure before it times out.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Gate<T, Id> {
    gated: Mutex<Gated<T, Id>>,
    /// Notified when a claim ends or a waiter leaves the queue.
    changed: Condvar,
}

struct Gated<T, Id> {
    data: T,
    /// Nearly always empty: one for each claimed key. The first one is stored inline, on this
    /// gate's own cache line.
    claims: SmallVec<[Claim<Id>; 1]>,
    /// Waiting threads in order of arrival. The order is fair, so no thread starves.
    queue: Vec<Waiter<Id>>,
}

struct Claim<Id> {
    /// Identifies the key within this gate.
    id: Id,
    holder: ThreadId,
}

struct Waiter<Id> {
    wants: Wants<Id>,
    thread: ThreadId,
}

/// What a write needs to be free.
#[derive(Clone, PartialEq)]
pub(crate) enum Wants<Id> {
    Key(Id),
    Everything,
}

impl<Id: PartialEq> Wants<Id> {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Key(a), Self::Key(b)) => a == b,
            _ => true,
        }
    }

    fn includes(&self, id: &Id) -> bool {
        match self {
            Self::Key(key) => key == id,
            Self::Everything => true,
        }
    }
}

/// Why a write cannot proceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    Reentrant,
    Deadlock,
    TimedOut,
}

impl Why {
    pub(crate) fn on(self, key: &str) -> StateError {
        let key = key.to_owned();
        match self {
            Self::Reentrant => StateError::Reentrant { key },
            Self::Deadlock => StateError::Busy { key, reason: "the two threads wait for each other" },
            Self::TimedOut => StateError::Busy { key, reason: "waited for 10 seconds" },
        }
    }
}

pub(crate) struct GateGuard<'a, T, Id>(MutexGuard<'a, Gated<T, Id>>);

impl<T, Id: Clone + PartialEq> Gate<T, Id> {
    pub(crate) fn new(data: T) -> Self {
        let gated = Gated { data, claims: SmallVec::new(), queue: Vec::new() };
        Self { gated: Mutex::new(gated), changed: Condvar::new() }
    }

    /// Locks for reading, or for a write whose keys were checked with [`GateGuard::claimed`].
    pub(crate) fn lock(&self) -> GateGuard<'_, T, Id> {
        GateGuard(lock(&self.gated))
    }

    /// Locks for a write of one key, after every claim on it is released.
    pub(crate) fn lock_for(&self, id: &Id) -> Result<GateGuard<'_, T, Id>, Why> {
        let guard = self.lock();
        if guard.0.claims.is_empty() && guard.0.queue.is_empty() {
            return Ok(guard);
        }
        self.wait(guard, Wants::Key(id.clone())).map_err(|(why, _)| why)
    }

    /// Locks after every claim here is released. The error names the claim that blocked it.
    pub(crate) fn lock_unclaimed(&self) -> Result<GateGuard<'_, T, Id>, (Why, Option<Id>)> {
        self.wait(self.lock(), Wants::Everything)
            .map_err(|(why, guard)| (why, guard.0.claims.first().map(|claim| claim.id.clone())))
    }

    /// Releases this thread's claim and wakes the waiting threads.
    pub(crate) fn release(&self, guard: &mut GateGuard<'_, T, Id>, id: &Id) {
        let holder = this_thread();
        let claims = &mut guard.0.claims;
        if let Some(place) = claims.iter().position(|claim| claim.holder == holder && claim.id == *id) {
            claims.swap_remove(place);
            self.wake(guard, holder);
        }
    }

    /// Wakes the waiting threads, after this thread released a claim or left the queue.
    fn wake(&self, guard: &GateGuard<'_, T, Id>, thread: ThreadId) {
        if !guard.0.queue.is_empty() {
            waits::released(self.address(), thread);
            self.changed.notify_all();
        }
    }

    /// Identifies this gate among all gates while it exists.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    #[cold]
    fn wait<'a>(
        &'a self,
        mut guard: GateGuard<'a, T, Id>,
        wants: Wants<Id>,
    ) -> Result<GateGuard<'a, T, Id>, (Why, GateGuard<'a, T, Id>)> {
        let me = this_thread();
        let mut queued = false;
        let mut waiting: Option<(ThreadId, Instant)> = None;
        let result = loop {
            let Some(blocker) = guard.0.blocker(&wants, me, queued) else { break Ok(()) };
            if let Err(why) = waits::begin(self.address(), blocker) {
                break Err(why);
            }
            if !queued {
                queued = true;
                guard.0.queue.push(Waiter { wants: wants.clone(), thread: me });
            }
            // The timeout applies to each holder: waiting for many short closures in turn is not a
            // timeout.
            let deadline = match waiting {
                Some((thread, deadline)) if thread == blocker => deadline,
                _ => Instant::now() + CLAIM_TIMEOUT,
            };
            waiting = Some((blocker, deadline));
            let left = deadline.saturating_duration_since(Instant::now());
            let (next, _) = self.changed.wait_timeout(guard.0, left).unwrap_or_else(PoisonError::into_inner);
            guard = GateGuard(next);
            waits::end();
            if Instant::now() >= deadline && guard.0.blocker(&wants, me, queued) == Some(blocker) {
                break Err(Why::TimedOut);
            }
        };
        if queued {
            guard.0.queue.retain(|waiter| waiter.thread != me);
            self.wake(&guard, me);
        }
        match result {
            Ok(()) => Ok(guard),
            Err(why) => Err((why, guard)),
        }
    }
}

impl<T, Id: PartialEq> Gated<T, Id> {
    /// The thread that this one must wait for: the holder of a claim, or a waiter ahead in the
    /// queue.
    fn blocker(&self, wants: &Wants<Id>, me: ThreadId, queued: bool) -> Option<ThreadId> {
        if let Some(claim) = self.claims.iter().find(|claim| wants.includes(&claim.id)) {
            return Some(claim.holder);
        }
        // Other threads may be waiting for a claim of this thread: waiting for them would deadlock.
        if self.claims.iter().any(|claim| claim.holder == me) {
            return None;
        }
        let ahead = self.queue.iter().take_while(|waiter| !(queued && waiter.thread == me));
        ahead.filter(|waiter| waiter.wants.meets(wants)).map(|waiter| waiter.thread).next()
    }
}

impl<T, Id: PartialEq> GateGuard<'_, T, Id> {
    /// Whether a `modify` in progress holds the key. A claim of this thread does not count if
    /// `mine` is set.
    pub(crate) fn claimed(&self, id: &Id, mine: bool) -> bool {
        let held = |claim: &&Claim<Id>| claim.id == *id;
        self.0.claims.iter().find(held).is_some_and(|claim| !mine || claim.holder != this_thread())
    }

    /// Claims a key that is not claimed, as [`Gate::lock_for`] makes sure.
    pub(crate) fn claim(&mut self, id: Id) {
        self.0.claims.push(Claim { id, holder: this_thread() });
    }
}

impl<T, Id> Deref for GateGuard<'_, T, Id> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.data
    }
}

impl<T, Id> DerefMut for GateGuard<'_, T, Id> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.data
    }
}

/// Which thread waits for which, over all states of the process: the wait-for graph for deadlock
/// detection. It is accessed only when a thread has to wait.
mod waits {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::Why;
    use crate::sync::{ThreadId, this_thread};

    struct Wait {
        waiter: ThreadId,
        holder: ThreadId,
        /// Where the claim is.
        gate: usize,
    }

    /// Always the standard mutex, also under shuttle: it is held briefly, and no other lock is
    /// acquired meanwhile.
    static WAITS: Mutex<Vec<Wait>> = Mutex::new(Vec::new());

    fn waits() -> MutexGuard<'static, Vec<Wait>> {
        WAITS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that this thread waits for `holder`, unless `holder` waits for it, directly or
    /// through others.
    pub(super) fn begin(gate: usize, holder: ThreadId) -> Result<(), Why> {
        let waiter = this_thread();
        if holder == waiter {
            return Err(Why::Reentrant);
        }
        let mut waits = waits();
        let mut next = Some(holder);
        while let Some(thread) = next {
            if thread == waiter {
                return Err(Why::Deadlock);
            }
            next = waits.iter().find(|wait| wait.waiter == thread).map(|wait| wait.holder);
        }
        waits.push(Wait { waiter, holder, gate });
        Ok(())
    }

    /// Removes the wait of this thread.
    pub(super) fn end() {
        let waiter = this_thread();
        waits().retain(|wait| wait.waiter != waiter);
    }

    /// Removes all waits for a thread that released something, before the waiters wake and do it
    /// themselves. All of them wake, and those that are still blocked wait again.
    pub(super) fn released(gate: usize, holder: ThreadId) {
        waits().retain(|wait| wait.gate != gate || wait.holder != holder);
    }
}
