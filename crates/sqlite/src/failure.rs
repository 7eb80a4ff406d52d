//! What a failure of SQLite means to the caller, and what to do about it.

use rusqlite::ErrorCode;
use sessile_session::{BoxError, SessionError};

/// Converts an error of SQLite to a [`SessionError`] that names what failed. A lock, a full disk or
/// a read-only file is `Unavailable`, with advice; everything else is `Backend`.
///
/// This is not `sessile_session::doing`, which does not know the errors of SQLite.
pub(crate) fn failed_to<E: Into<BoxError>>(action: &'static str) -> impl FnOnce(E) -> SessionError {
    move |error| {
        let source = error.into();
        let code = source.downcast_ref().and_then(rusqlite::Error::sqlite_error_code);
        match code.and_then(advice) {
            Some(reason) => SessionError::Unavailable { action, reason: reason.to_owned(), source },
            None => SessionError::Backend { action, source },
        }
    }
}

/// The error of every call after the store was closed. Nothing is stored.
pub(crate) fn closed() -> SessionError {
    let reason = "it is closed; open the file again".to_owned();
    SessionError::Unavailable { action: "use the store", reason, source: "the store is closed".into() }
}

/// Why an operation is unavailable, and what to do about it. Nothing of it is stored.
fn advice(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::DiskFull => Some("the disk is full; free some space, and try again"),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Some(
            "another program holds the lock of the file (database is locked); try again, let it finish, or raise busy_timeout",
        ),
        ErrorCode::ReadOnly => {
            Some("the file or its folder has become read-only; make both writable, and try again")
        }
        _ => None,
    }
}

/// Whether another connection holds the lock.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}
