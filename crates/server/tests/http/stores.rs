//! Stores that do not work.

use sessile_conformance::Between;
use sessile_session::SessionError;

/// Cannot be reached; its errors hold what nobody should see.
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
