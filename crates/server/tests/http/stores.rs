//! Stores that do not work.

use std::sync::atomic::{AtomicUsize, Ordering};

use sessile_conformance::{Between, Call};
use sessile_session::SessionError;

/// Cannot be reached; its errors hold a cause that must not reach a client.
pub(crate) fn broken() -> Between {
    Between::new(|_| async {
        let source = "connection refused: postgresql://me:password@db".into();
        Err(SessionError::Backend { action: "reach the store", source })
    })
}

/// Never answers.
pub(crate) fn stuck() -> Between {
    Between::new(|_| std::future::pending())
}

/// Stores this many events and then fails in this way.
pub(crate) fn failing_after(events: usize, fault: fn() -> SessionError) -> Between {
    let left = AtomicUsize::new(events);
    Between::new(move |call| {
        let one_less = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let fails = matches!(call, Call::Append(_)) && one_less().is_err();
        async move { if fails { Err(fault()) } else { Ok(()) } }
    })
}
