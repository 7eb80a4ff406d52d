use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::ApiError;

/// How many bytes the bodies of all requests together may take, so that many large bodies cannot
/// exhaust the memory.
pub(crate) struct BodyBudget {
    limit: usize,
    reserved: AtomicUsize,
}

/// The bytes that one body has reserved; released when dropped.
pub(crate) struct Reserved {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

impl BodyBudget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, reserved: AtomicUsize::new(0) })
    }

    /// A reservation of no bytes yet.
    pub(crate) fn reserve(self: &Arc<Self>) -> Reserved {
        Reserved { budget: self.clone(), bytes: 0 }
    }
}

impl Reserved {
    /// Reserves more bytes, if the budget has them left.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), ApiError> {
        let fits = |reserved: usize| reserved.checked_add(bytes).filter(|sum| *sum <= self.budget.limit);
        match self.budget.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.bytes += bytes;
                Ok(())
            }
            Err(_) => Err(ApiError::Unavailable(format!(
                "The bodies of all requests together would exceed {} bytes; retry when other requests are done",
                self.budget.limit
            ))),
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
