use std::time::Duration;

use sessile_session::BoxError;

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The configuration is incomplete or invalid; nothing was sent.
    #[error("the model {model:?} cannot be used: {reason}")]
    Configuration {
        /// The model.
        model: String,
        /// What is wrong, and what to do.
        reason: String,
    },

    /// Too many requests; the retries are used up.
    #[error("the model {model:?} answers too many requests (429): {message}")]
    RateLimited {
        /// The model.
        model: String,
        /// The wait that the server asks for, if it does.
        retry_after: Option<Duration>,
        /// The server's message.
        message: String,
    },

    /// The server refuses this request; the same again is refused again.
    #[error("the model {model:?} refuses the request ({status}): {message}")]
    Refused {
        /// The model.
        model: String,
        /// The HTTP status.
        status: u16,
        /// The server's message.
        message: String,
    },

    /// The server cannot be reached or failed; trying later may help.
    #[error("the model {model:?} is unavailable: {message}")]
    Unavailable {
        /// The model.
        model: String,
        /// What happened.
        message: String,
        /// The cause, if there is one.
        source: Option<BoxError>,
    },

    /// No answer in time.
    #[error("the model {model:?} did not answer within {after:?}")]
    Timeout {
        /// The model.
        model: String,
        /// The timeout.
        after: Duration,
    },

    /// The answer is not what the interface promises.
    #[error("the model {model:?} answered something that cannot be read: {reason}")]
    Malformed {
        /// The model.
        model: String,
        /// What is wrong with it.
        reason: String,
    },

    /// Any other failure, with a code for programs.
    #[error("{message}")]
    Other {
        /// For programs, such as `RESOURCE_EXHAUSTED`.
        code: String,
        /// For people.
        message: String,
    },
}

impl ModelError {
    /// A name for programs, stored as an event's error code.
    pub fn code(&self) -> &str {
        match self {
            Self::Configuration { .. } => "MODEL_CONFIGURATION",
            Self::RateLimited { .. } => "RESOURCE_EXHAUSTED",
            Self::Refused { .. } => "MODEL_REFUSED",
            Self::Unavailable { .. } => "MODEL_UNAVAILABLE",
            Self::Timeout { .. } => "MODEL_TIMEOUT",
            Self::Malformed { .. } => "MODEL_MALFORMED_ANSWER",
            Self::Other { code, .. } => code,
        }
    }
}
