use std::time::Duration;

use sessile_session::SessionError;
use sessile_state::StateError;

use crate::transport::TransportError;

/// Why a live session could not begin, or could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The configuration is wrong; nothing was connected.
    #[error("the configuration of the live session is not valid: {}", .problems.join("; "))]
    Invalid {
        /// Every problem, one sentence each.
        problems: Vec<String>,
    },

    /// The server cannot be reached.
    #[error(transparent)]
    Transport(#[from] TransportError),

    /// The server rejected the setup. A retry with the same setup would be rejected too.
    #[error("the server rejected the session{}: {reason}", .code.map(|code| format!(" ({code})")).unwrap_or_default())]
    Refused {
        /// The code with which the connection was closed.
        code: Option<u16>,
        /// The reason that the server gave.
        reason: String,
    },

    /// The server did not answer in time.
    #[error("the server did not {what} within {after:?}")]
    Timeout {
        /// What the server should have done.
        what: &'static str,
        /// The timeout.
        after: Duration,
    },

    /// The stored session could not be read or created.
    #[error("cannot attach to the stored session: {0}")]
    Session(#[from] SessionError),

    /// State could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),

    /// The session is over.
    #[error("the live session is over")]
    Closed,

    /// The request is not possible in this session.
    #[error("{0}")]
    NotPossible(String),
}
