//! The locks of this crate: the standard library's, or shuttle's when its scheduler explores
//! the interleavings (`--cfg shuttle`).

use std::sync::PoisonError;

#[cfg(shuttle)]
use shuttle::{sync, thread};
#[cfg(not(shuttle))]
use std::{sync, thread};

pub(crate) use sync::{Condvar, Mutex, MutexGuard};

#[cfg(not(shuttle))]
pub(crate) type ThreadId = thread::ThreadId;
/// Simulated threads are numbered anew in every test, and tests run side by side.
#[cfg(shuttle)]
pub(crate) type ThreadId = (std::thread::ThreadId, thread::ThreadId);

/// Locks, ignoring poisoning: no user code runs under these locks, so no panic can leave the
/// guarded data inconsistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread.
#[cfg(not(shuttle))]
pub(crate) fn this_thread() -> ThreadId {
    thread_local! {
        static ID: ThreadId = thread::current().id();
    }
    ID.with(|id| *id)
}

/// The calling thread, as shuttle simulates it.
#[cfg(shuttle)]
pub(crate) fn this_thread() -> ThreadId {
    (std::thread::current().id(), thread::current().id())
}
