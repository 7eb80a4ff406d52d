use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::ApiError;

/// Room for the bodies of all requests together, so that many large ones cannot fill the memory.
pub(crate) struct Room {
    limit: usize,
    taken: AtomicUsize,
}

/// What one body takes of it; given back when dropped.
pub(crate) struct Held {
    room: Arc<Room>,
    bytes: usize,
}

impl Room {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicUsize::new(0) })
    }

    /// Nothing yet.
    pub(crate) fn hold(self: &Arc<Self>) -> Held {
        Held { room: self.clone(), bytes: 0 }
    }
}

impl Held {
    /// Takes room for more bytes, if there is so much left.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), ApiError> {
        let fits = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= self.room.limit);
        match self.room.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.bytes += bytes;
                Ok(())
            }
            Err(_) => Err(ApiError::Unavailable(format!(
                "The bodies of all requests together would be longer than {} bytes; try again when others are done",
                self.room.limit
            ))),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
