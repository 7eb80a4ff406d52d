//! A lock whose keys can be claimed by a `modify` in progress.
//!
//! A `modify` closure is user code, so no lock may be held while it runs; yet no other write may
//! come between its read and its write. It therefore *claims* its key: the lock is free again,
//! readers go on reading the old value, and writers of that one key wait until the claim is
//! released. A wait that could never end is an error:
//!
//! - the claim belongs to the calling thread: [`Why::Reentrant`];
//! - two threads wait for each other's claims: [`Why::Deadlock`], found by walking
//!   the list of all waits;
//! - the closure itself waits for something that waits for the key: [`Why::TimedOut`].

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::error::StateError;
use crate::sync::{Condvar, Mutex, MutexGuard, ThreadId, lock, this_thread};

/// A state key, shared by the table, the index, claims and deltas.
pub(crate) type Key = Arc<str>;

/// How long a write waits for another thread's closure before it gives up.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Gate<T> {
    gated: Mutex<Gated<T>>,
    released: Condvar,
}

struct Gated<T> {
    data: T,
    /// Nearly always empty; never more than the threads inside a `modify` here.
    claims: Vec<Claim>,
}

struct Claim {
    key: Key,
    holder: ThreadId,
    /// Whether anybody ever waited for it, so that a release knows if it must tell.
    awaited: bool,
}

/// The key that a write has to wait for, and why it cannot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Blocked {
    key: Key,
    why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Reentrant,
    Deadlock,
    TimedOut,
}

impl From<Blocked> for StateError {
    fn from(blocked: Blocked) -> Self {
        let key = blocked.key.as_ref().to_owned();
        match blocked.why {
            Why::Reentrant => Self::Reentrant { key },
            Why::Deadlock => Self::Busy { key, reason: "the two threads wait for each other" },
            Why::TimedOut => Self::Busy { key, reason: "waited for 10 seconds" },
        }
    }
}

pub(crate) struct GateGuard<'a, T>(MutexGuard<'a, Gated<T>>);

impl<T> Gate<T> {
    pub(crate) fn new(data: T) -> Self {
        Self { gated: Mutex::new(Gated { data, claims: Vec::new() }), released: Condvar::new() }
    }

    /// Locks for reading, or for a write whose keys were checked with [`GateGuard::claimed`].
    pub(crate) fn lock(&self) -> GateGuard<'_, T> {
        GateGuard(lock(&self.gated))
    }

    /// Locks for a write of `key`, after every claim on it is released.
    pub(crate) fn lock_for(&self, key: &str) -> Result<GateGuard<'_, T>, Blocked> {
        let guard = self.lock();
        if guard.0.claims.is_empty() {
            return Ok(guard);
        }
        self.wait_while(guard, |claims| claims.iter().position(|claim| &*claim.key == key))
    }

    /// Locks when nobody holds any claim here.
    pub(crate) fn lock_unclaimed(&self) -> Result<GateGuard<'_, T>, Blocked> {
        self.wait_while(self.lock(), |claims| (!claims.is_empty()).then_some(0))
    }

    /// Claims `key`, which must not be claimed; pass what [`Self::lock_for`] returned.
    pub(crate) fn claim(guard: &mut GateGuard<'_, T>, key: Key) {
        guard.0.claims.push(Claim { key, holder: this_thread(), awaited: false });
    }

    /// Releases this thread's claim on `key` and wakes who waits for it.
    pub(crate) fn release(&self, guard: &mut GateGuard<'_, T>, key: &Key) {
        let holder = this_thread();
        let claims = &mut guard.0.claims;
        if let Some(place) = claims.iter().position(|claim| claim.holder == holder && claim.key == *key) {
            let claim = claims.swap_remove(place);
            if claim.awaited {
                waits::released(self.address(), holder, key);
                self.released.notify_all();
            }
        }
    }

    /// Tells this gate from all others while it exists.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn wait_while<'a>(
        &'a self,
        mut guard: GateGuard<'a, T>,
        blocking: impl Fn(&[Claim]) -> Option<usize>,
    ) -> Result<GateGuard<'a, T>, Blocked> {
        let mut deadline = None;
        while let Some(place) = blocking(&guard.0.claims) {
            let claim = &mut guard.0.claims[place];
            waits::begin(self.address(), claim.holder, &claim.key)?;
            claim.awaited = true;
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            let left = deadline.saturating_duration_since(Instant::now());
            let (next, _) = self.released.wait_timeout(guard.0, left).unwrap_or_else(PoisonError::into_inner);
            guard = GateGuard(next);
            waits::end();
            if let Some(place) = blocking(&guard.0.claims)
                && Instant::now() >= deadline
            {
                return Err(Blocked { key: guard.0.claims[place].key.clone(), why: Why::TimedOut });
            }
        }
        Ok(guard)
    }
}

impl<T> GateGuard<'_, T> {
    /// Whether a `modify` in progress holds `key`.
    pub(crate) fn claimed(&self, key: &str) -> bool {
        self.0.claims.iter().any(|claim| &*claim.key == key)
    }
}

impl<T> Deref for GateGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.data
    }
}

impl<T> DerefMut for GateGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.data
    }
}

/// Who waits for whom, over all states of the process. Touched only when somebody waits.
mod waits {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::{Blocked, Key, Why};
    use crate::sync::{ThreadId, this_thread};

    struct Wait {
        waiter: ThreadId,
        holder: ThreadId,
        /// The claim that is waited for: its gate and its key.
        gate: usize,
        key: Key,
    }

    /// Always the standard mutex: it is held for a moment, and never across another lock.
    static WAITS: Mutex<Vec<Wait>> = Mutex::new(Vec::new());

    fn waits() -> MutexGuard<'static, Vec<Wait>> {
        WAITS.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that this thread waits for `holder`, unless `holder` (also) waits for it.
    pub(super) fn begin(gate: usize, holder: ThreadId, key: &Key) -> Result<(), Blocked> {
        let waiter = this_thread();
        if holder == waiter {
            return Err(Blocked { key: key.clone(), why: Why::Reentrant });
        }
        let mut waits = waits();
        let mut next = Some(holder);
        while let Some(thread) = next {
            if thread == waiter {
                return Err(Blocked { key: key.clone(), why: Why::Deadlock });
            }
            next = waits.iter().find(|wait| wait.waiter == thread).map(|wait| wait.holder);
        }
        waits.push(Wait { waiter, holder, gate, key: key.clone() });
        Ok(())
    }

    /// Forgets what this thread waited for.
    pub(super) fn end() {
        let waiter = this_thread();
        waits().retain(|wait| wait.waiter != waiter);
    }

    /// Forgets all waits for a claim that is no more, before the waiters are awake to do it.
    pub(super) fn released(gate: usize, holder: ThreadId, key: &Key) {
        waits().retain(|wait| (wait.gate, wait.holder, &wait.key) != (gate, holder, key));
    }
}
