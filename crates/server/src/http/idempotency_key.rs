//! The header `Idempotency-Key`: with it, a client that does not know whether its change was made
//! can retry safely.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use sessile_session::{Event, Ids, MAX_ID, SessionError};

use super::error::{ApiError, advising};
use super::json::Problem;

/// The key of a change. A retry with the same key changes nothing and gets the first response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

const NAME: &str = "Idempotency-Key";
static HEADER: HeaderName = HeaderName::from_static("idempotency-key");

impl IdempotencyKey {
    /// An event of the user for a change without a run. Its ids come from the key, so that a retry
    /// is the same event.
    pub(crate) fn event(&self, ids: &dyn Ids) -> Event {
        match &self.0 {
            Some(key) => {
                let mut event = Event::new("user").with_invocation(format!("p-{key}"));
                event.id.clone_from(key);
                event
            }
            None => Event::new("user").with_invocation(format!("p-{}", ids.new_id())),
        }
    }

    /// The error of a change that failed or may have failed, with advice for its client.
    pub(crate) fn failure(&self, error: SessionError) -> ApiError {
        match (error, &self.0) {
            (SessionError::EventConflict { .. } | SessionError::RequestConflict { .. }, Some(key)) => {
                ApiError::Conflict(format!(
                    "The {NAME} {key:?} was used for another change; give each change a key of its own"
                ))
            }
            (error, Some(_)) => advising("send the same request with the same Idempotency-Key again")(error),
            (error, None) => advising(
                "read the state and decide; a PATCH with an Idempotency-Key can be repeated safely",
            )(error),
        }
    }

    fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let values: Vec<_> = headers.get_all(&HEADER).iter().collect();
        let Some(first) = values.first() else { return Ok(Self(None)) };
        let text = String::from_utf8_lossy(first.as_bytes());
        let is_key = |text: &str| {
            (1..=MAX_ID).contains(&text.len())
                && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
                && text.trim() == text
        };
        if values.len() > 1 || !is_key(&text) {
            let msg =
                format!("The header must be given once and have 1 to {MAX_ID} printable ASCII characters");
            return Err(vec![Problem::parameter("value_error", "header", NAME, &msg, &text)].into());
        }
        Ok(Self(Some(text.into_owned())))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::of(&parts.headers)
    }
}
