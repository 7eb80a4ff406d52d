//! Errors of requests and their HTTP statuses, which are chosen here and nowhere else.

use std::collections::BTreeMap;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use sessile_agent::RunError;
use sessile_artifact::{ArtifactError, RewindError};
use sessile_memory::MemoryError;
use sessile_session::{BoxError, SessionError};
use sessile_state::{OperationError, Scope, SharedValue};

use super::etag::NEVER;
use super::json::Problem;
use super::redact::redacted;

/// Why a request failed. The text is sent; causes are logged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    /// The request is malformed, or not possible here (400).
    #[error("{0}")]
    BadRequest(String),
    /// The request is not authenticated (401).
    #[error("{0}")]
    Unauthenticated(String),
    /// The caller does not have the right (403).
    #[error("{0}")]
    Forbidden(String),
    /// Not found (404).
    #[error("{0}")]
    NotFound(String),
    /// The path exists, but not for this method (405).
    #[error("Method Not Allowed")]
    MethodNotAllowed,
    /// The client was too slow (408).
    #[error("{0}")]
    TooSlow(String),
    /// It conflicts with what is stored or in progress (409).
    #[error("{0}")]
    Conflict(String),
    /// The stored version is not the expected one (412).
    #[error("{0}")]
    Changed(String),
    /// Keys no longer hold the values that the caller had read; the current values are sent (409).
    #[error("{detail}")]
    Overwritten {
        /// The message.
        detail: String,
        /// The keys as the request named them; `None` if they are absent.
        current: BTreeMap<String, Option<SharedValue>>,
    },
    /// It exceeds a limit (413).
    #[error("{0}")]
    TooLarge(String),
    /// The request is well-formed and cannot be processed (422).
    #[error("{0}")]
    Unusable(String),
    /// The request does not match its model (422).
    #[error("{} problems in the request", .0.len())]
    Invalid(Vec<Problem>),
    /// Too many runs or watches at once (429).
    #[error("{0}")]
    TooMany(String),
    /// The server or its store is unavailable (503).
    #[error("{0}")]
    Unavailable(String),
    /// An application exists and could not be loaded (500).
    #[error("Failed to load agent")]
    NotLoaded {
        /// The application.
        app: String,
        /// Why, for the log.
        reason: String,
    },
    /// An agent failed; its message is sent, as in streams (500).
    #[error("{0}")]
    RunFailed(String),
    /// The server failed; `action` is sent, `source` is only logged (500).
    #[error("cannot {action}")]
    Failed {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        source: BoxError,
    },
    /// The store did not confirm a change: it may have been made or not (503).
    #[error("tried to {action}, which is done or not done; {advice}")]
    InDoubt {
        /// What was being done.
        action: &'static str,
        /// What to do.
        advice: &'static str,
        /// Why it is not known.
        source: BoxError,
    },
    /// The store or a service failed, and a retry may succeed (503).
    #[error("cannot {action}")]
    Backend {
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        source: BoxError,
    },
}

impl ApiError {
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::NotFound(detail.into())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooSlow(_) => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict(_) | Self::Overwritten { .. } => StatusCode::CONFLICT,
            Self::Changed(_) => StatusCode::PRECONDITION_FAILED,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unusable(_) | Self::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable(_) | Self::Backend { .. } | Self::InDoubt { .. } => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::NotLoaded { .. } | Self::RunFailed(_) | Self::Failed { .. } => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    fn detail(&self) -> Value {
        match self {
            Self::Invalid(problems) => json!(problems),
            Self::Failed { action, .. } | Self::Backend { action, .. } => {
                json!(format!("Cannot {action}; the server's log has the cause under this request's id"))
            }
            other => json!(other.to_string()),
        }
    }

    /// The body of the response. Current values are state, so the secrets of credentials are
    /// removed from them too.
    fn body(&self) -> Vec<u8> {
        let (mut values, mut absent) = (None, None);
        if let Self::Overwritten { current, .. } = self {
            let held = current.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_ref()?)));
            values = Some(held.collect());
            absent = Some(
                current.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key.as_str()).collect(),
            );
        }
        let refusal = Refusal { detail: self.detail(), current: values, absent };
        match serde_json::to_vec(&refusal) {
            Ok(body) => redacted(body),
            Err(error) => {
                tracing::error!(%error, "a refusal cannot be written as JSON");
                json!({ "detail": self.to_string() }).to_string().into_bytes()
            }
        }
    }

    /// A header with which the client can react.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Self::Unauthenticated(_) => Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            Self::TooMany(_) | Self::Unavailable(_) => {
                Some((header::RETRY_AFTER, HeaderValue::from_static("1")))
            }
            _ => None,
        }
    }
}

/// The body of every error response.
#[derive(Serialize)]
struct Refusal<'a> {
    detail: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<BTreeMap<&'a str, &'a SharedValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<Vec<&'a str>>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if let Self::Failed { action, source } | Self::Backend { action, source } = &self {
            tracing::error!(error = %chain(source.as_ref()), "cannot {action}");
        }
        if let Self::InDoubt { source, .. } = &self {
            tracing::error!(error = %chain(source.as_ref()), "{self}");
        }
        if let Self::NotLoaded { app, reason } = &self {
            tracing::error!(app = %one_line(app), "cannot load agent: {}", one_line(reason));
        }
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let mut response = (self.status(), [json], self.body()).into_response();
        if let Some((name, value)) = self.header() {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<Vec<Problem>> for ApiError {
    fn from(problems: Vec<Problem>) -> Self {
        Self::Invalid(problems)
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        let told = error.to_string();
        match error {
            SessionError::NotFound { .. } => Self::not_found("Session not found"),
            SessionError::AlreadyExists { key } => {
                Self::Conflict(format!("Session already exists: {}", key.id()))
            }
            SessionError::Conflict { expected: NEVER, key, .. } => {
                Self::Changed(format!("If-Match has no ETag of the stored session {key}; read it again"))
            }
            SessionError::Conflict { key, expected, actual, .. } => Self::Changed(format!(
                "session {key} has changed: version {expected} was expected, {actual} is stored; read it again"
            )),
            SessionError::ScopeConflict { expected: NEVER, scope, .. } => {
                Self::Changed(format!("If-Match has no ETag of the state of {scope}; read it again"))
            }
            SessionError::ScopeConflict { .. } | SessionError::Replaced { .. } => Self::Changed(told),
            SessionError::Overwritten { current } => Self::Overwritten { detail: told, current },
            SessionError::Operation { key, owner, found, source } => {
                Self::Conflict(refused_operation(&key, &owner, found.as_deref(), &source))
            }
            SessionError::TooLarge { .. } => Self::TooLarge(told),
            SessionError::EventConflict { .. } | SessionError::RequestConflict { .. } => Self::Conflict(told),
            SessionError::NotInHistory { .. } | SessionError::NotInScopeHistory { .. } => {
                Self::NotFound(told)
            }
            SessionError::InvalidId(_)
            | SessionError::InvalidState { .. }
            | SessionError::InvalidEvent { .. }
            | SessionError::InvalidCursor => Self::Unusable(told),
            SessionError::Backend { action, source } => Self::Backend { action, source },
            SessionError::Unavailable { action, reason, source } => {
                tracing::error!(error = %chain(source.as_ref()), "cannot {action} now");
                Self::Unavailable(format!("Cannot {action} now: {reason}"))
            }
            SessionError::InDoubt { action, advice, source } => Self::InDoubt { action, advice, source },
            other => Self::Failed { action: "read what is stored", source: other.into() },
        }
    }
}

/// Converts an error of the store. If it is not known whether the change was made, the response
/// carries this advice.
pub(crate) fn advising(advice: &'static str) -> impl FnOnce(SessionError) -> ApiError {
    move |error| match error {
        SessionError::InDoubt { action, source, .. } => ApiError::InDoubt { action, advice, source },
        other => other.into(),
    }
}

/// The advice for a client that does not know whether an event of a run was stored.
pub(crate) const AFTER_A_RUN: &str = "read the session to see what was stored before you run it again";

/// Why an operation was refused. The stored value is included if it is a number; others may be long
/// or secret, so only their type is.
fn refused_operation(key: &str, owner: &str, found: Option<&SharedValue>, source: &OperationError) -> String {
    let owner = match Scope::of(key).0 {
        Scope::Session => format!("session {owner}"),
        _ => owner.to_owned(),
    };
    let stored = match (source, found) {
        (OperationError::WrongType { .. }, _) => String::new(), // its message names the type
        (_, None) => ", which is absent".to_owned(),
        (_, Some(value)) if value.is_number() => format!(", which holds {value}"),
        (_, Some(_)) => String::new(),
    };
    let advice = match source {
        OperationError::Bound { .. } => "; read the value and change it by less",
        _ => "",
    };
    format!("cannot change the state key {key:?} of {owner}{stored}: {source}{advice}; nothing was stored")
}

impl From<ArtifactError> for ApiError {
    fn from(error: ArtifactError) -> Self {
        match error {
            ArtifactError::Backend { action, source } => Self::Backend { action, source },
            ArtifactError::Corrupt { .. } => {
                Self::Failed { action: "read the artifact", source: error.into() }
            }
            refused => Self::BadRequest(refused.to_string()),
        }
    }
}

impl From<RewindError> for ApiError {
    fn from(error: RewindError) -> Self {
        match error {
            RewindError::Session(error) => {
                advising("read the session: its last event tells whether it was rewound")(error)
            }
            RewindError::Artifact(error) => error.into(),
            other => Self::Failed { action: "rewind the session", source: other.into() },
        }
    }
}

impl From<MemoryError> for ApiError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Backend { action, source } => Self::Backend { action, source },
            other => Self::Failed { action: "use the memory", source: other.into() },
        }
    }
}

impl From<RunError> for ApiError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Session(SessionError::NotFound { key }) => {
                Self::NotFound(format!("Session not found: {}", key.id()))
            }
            RunError::Session(error) => advising(AFTER_A_RUN)(error),
            RunError::Busy { .. } | RunError::Cancelled { .. } => Self::Conflict(error.to_string()),
            RunError::InvalidMessage { .. } => Self::Unusable(error.to_string()),
            failed => Self::RunFailed(format!("{}: {failed}", failed.error_type())),
        }
    }
}

/// An error and its causes on one line, so that text from outside cannot forge a line of the log.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    one_line(&text)
}

/// A text for the log, its control characters escaped.
pub(crate) fn one_line(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}
