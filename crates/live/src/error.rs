use std::time::Duration;

use sessile_session::SessionError;
use sessile_state::StateError;

use crate::transport::TransportError;

/// Why a live session could not begin, or could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The configuration is wrong; nothing was connected.
    #[error("the live session is not configured right: {}", .problems.join("; "))]
    Invalid {
        /// Every problem, one sentence each.
        problems: Vec<String>,
    },

    /// There is no way to the server.
    #[error(transparent)]
    Transport(#[from] TransportError),

    /// The server did not agree to the setup; the same again is refused again.
    #[error("the server refuses the session{}: {reason}", .code.map(|code| format!(" ({code})")).unwrap_or_default())]
    Refused {
        /// The code with which the connection was closed.
        code: Option<u16>,
        /// What the server says.
        reason: String,
    },

    /// The server did not answer.
    #[error("the server did not {what} within {after:?}")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
    },

    /// The stored session could not be read or made.
    #[error("cannot attach to the stored session: {0}")]
    Session(#[from] SessionError),

    /// State could not be read or written.
    #[error(transparent)]
    State(#[from] StateError),

    /// The session is over.
    #[error("the live session is over")]
    Closed,

    /// Something cannot be done in this session.
    #[error("{0}")]
    NotPossible(String),
}
