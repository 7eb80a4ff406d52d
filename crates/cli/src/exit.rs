//! What the exit code says, and how an error is told.

use std::process::ExitCode;

use sessile_session::{InvalidId, SessionError};

use crate::stderr::{harmless_lines, say};

/// For `--help`.
pub(crate) const CODES: &str = "\
Exit codes: 0 done; 1 failed; 2 wrong usage or something that cannot be stored; 3 not found; \
4 in conflict with what is stored; 5 stored data is damaged or not migrated; 6 the store cannot be reached now; \
130 interrupted; 141 the reader of standard output went away.";

/// Why a command ended, where that is more than "failed".
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line asks for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// What was asked for is not there.
    #[error("{0}")]
    NotFound(String),
    /// Something else is there.
    #[error("{0}")]
    Conflict(String),
    /// What is stored is not as it should be.
    #[error("{0}")]
    Damaged(String),
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
    /// Nobody reads standard output any more.
    #[error("standard output was closed")]
    Closed,
}

/// Tells an error to the user, and what it is to programs.
pub(crate) fn code_of(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let failure = error.chain().find_map(|cause| cause.downcast_ref::<Failure>());
    if matches!(failure, Some(Failure::Closed)) {
        return ExitCode::from(141);
    }
    say(format_args!("error: {}", harmless_lines(&told(&error))));
    if error.chain().any(|cause| cause.is::<InvalidId>()) {
        return ExitCode::from(2);
    }
    let session = error.chain().find_map(|cause| cause.downcast_ref::<SessionError>());
    ExitCode::from(match (failure, session) {
        (Some(failure), _) => of_failure(failure),
        (None, Some(session)) => of_session(session),
        (None, None) => 1,
    })
}

fn of_failure(failure: &Failure) -> u8 {
    match failure {
        Failure::Usage(_) => 2,
        Failure::NotFound(_) => 3,
        Failure::Conflict(_) => 4,
        Failure::Damaged(_) => 5,
        Failure::Interrupted => 130,
        Failure::Closed => 141,
    }
}

fn of_session(error: &SessionError) -> u8 {
    match error {
        SessionError::InvalidId(_)
        | SessionError::InvalidState { .. }
        | SessionError::InvalidEvent { .. }
        | SessionError::TooLarge { .. }
        | SessionError::InvalidCursor => 2,
        SessionError::NotFound { .. }
        | SessionError::NotInHistory { .. }
        | SessionError::NotInScopeHistory { .. } => 3,
        SessionError::AlreadyExists { .. }
        | SessionError::Conflict { .. }
        | SessionError::Replaced { .. }
        | SessionError::ScopeConflict { .. }
        | SessionError::Overwritten { .. }
        | SessionError::Operation { .. }
        | SessionError::RequestConflict { .. }
        | SessionError::EventConflict { .. } => 4,
        SessionError::Corrupt { .. } => 5,
        SessionError::Unavailable { .. } => 6,
        _ => 1,
    }
}

/// The error and its causes, each said once. The errors of sessions tell their causes themselves.
fn told(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let said = cause.to_string();
        if text.is_empty() {
            text = said;
        } else if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        if cause.is::<SessionError>() {
            break;
        }
    }
    text
}
