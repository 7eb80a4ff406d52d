//! Exit codes, and how errors are printed.

use std::process::ExitCode;

use sessile_session::{InvalidId, SessionError};

use crate::stderr::{harmless_lines, say};

/// The exit codes, for `--help`.
pub(crate) const CODES: &str = "\
Exit codes: 0 done; 1 failed; 2 wrong usage or something that cannot be stored; 3 not found; \
4 in conflict with what is stored; 5 stored data is damaged or not migrated; 6 the store cannot be reached now; \
130 interrupted; 141 standard output was closed by its reader.";

/// Errors that have an exit code of their own; every other error exits with 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// Something that the command needs does not exist.
    #[error("{0}")]
    NotFound(String),
    /// Something else exists already, or was changed meanwhile.
    #[error("{0}")]
    Conflict(String),
    /// Stored data is damaged or not migrated.
    #[error("{0}")]
    Damaged(String),
    /// The user pressed Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// The reader of standard output closed it, as `head` does.
    #[error("standard output was closed")]
    Closed,
}

/// Prints an error for the user, and returns the exit code for programs.
pub(crate) fn code_of(result: anyhow::Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let failure = error.chain().find_map(|cause| cause.downcast_ref::<Failure>());
    if matches!(failure, Some(Failure::Closed)) {
        return ExitCode::from(141);
    }
    say(format_args!("error: {}", harmless_lines(&message(&error))));
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

/// The message of an error with those of its causes, without repetitions. The chain ends at a
/// [`SessionError`], whose message includes its causes.
fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause_text = cause.to_string();
        if text.is_empty() {
            text = cause_text;
        } else if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        if cause.is::<SessionError>() {
            break;
        }
    }
    text
}
