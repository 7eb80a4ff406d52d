use std::time::Duration;

use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use sessile_agent::ModelError;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::body;
use super::endpoint::Endpoint;
use super::retry::Again;

/// Why an attempt failed, and whether a retry may succeed.
pub(super) struct Failure {
    pub(super) error: ModelError,
    pub(super) again: Again,
}

impl Failure {
    /// A failure that is not retried.
    pub(super) fn last(error: ModelError) -> Self {
        Self { error, again: Again::Never }
    }
}

/// Failed connections are retried; so are those that broke before a response came.
pub(super) fn from_reqwest(model: &str, error: reqwest::Error) -> Failure {
    let again = if error.is_builder() || error.is_redirect() { Again::Never } else { Again::After(None) };
    let message = if error.is_connect() { "the connection failed" } else { "the request failed" };
    let error = ModelError::Unavailable {
        model: model.to_owned(),
        message: message.to_owned(),
        source: Some(error.without_url().into()),
    };
    Failure { error, again }
}

/// How much of the body of an error is read, in bytes.
const MAX_ERROR: usize = 64 << 10;

/// The timeout of reading the body of an error.
const ERROR_TIMEOUT: Duration = Duration::from_secs(10);

/// A response whose status is not a success.
pub(super) async fn from_status(model: &str, endpoint: &Endpoint, response: Response) -> Failure {
    let status = response.status();
    let header = retry_after(response.headers(), endpoint.clock.now());
    // If the body cannot be read, the error has only the status.
    let body = body::read(response, MAX_ERROR, ERROR_TIMEOUT)
        .await
        .map_or_else(|_| Vec::new(), |body| body.to_vec());
    let said = Said::in_body(&body);
    let retry_after = header.or(said.retry_after);
    let message = endpoint.credentials.hide_in(said.message(status));
    let again = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Again::After(retry_after),
        status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
            Again::After(retry_after)
        }
        _ => Again::Never,
    };
    Failure { error: error(model, status, message, retry_after), again }
}

/// An error inside a stream whose status was a success.
pub(crate) fn error_in_body(model: &str, data: &str) -> Option<ModelError> {
    // Most pieces are not errors; they should not be parsed twice.
    if !data.contains("\"error\"") {
        return None;
    }
    let said = Said::in_body(data.as_bytes());
    let code = said.error.as_ref()?.code.as_ref().and_then(serde_json::Value::as_u64);
    let status = code.and_then(|code| StatusCode::from_u16(u16::try_from(code).unwrap_or(500)).ok());
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = said.message(status);
    Some(error(model, status, message, said.retry_after))
}

fn error(model: &str, status: StatusCode, message: String, retry_after: Option<Duration>) -> ModelError {
    let model = model.to_owned();
    match status {
        StatusCode::TOO_MANY_REQUESTS => ModelError::RateLimited { model, retry_after, message },
        status if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT => {
            ModelError::Unavailable {
                model,
                message: format!("{} ({})", message, status.as_u16()),
                source: None,
            }
        }
        status => ModelError::Refused { model, status: status.as_u16(), message },
    }
}

/// The error of a server, in the form that Google and OpenAI share.
#[derive(Default)]
struct Said {
    error: Option<SaidError>,
    retry_after: Option<Duration>,
    /// The body, if it has another form.
    text: String,
}

#[derive(Deserialize)]
struct Body {
    error: SaidError,
}

#[derive(Deserialize)]
struct SaidError {
    message: Option<String>,
    code: Option<serde_json::Value>,
    #[serde(default)]
    details: Vec<Detail>,
}

#[derive(Deserialize)]
struct Detail {
    #[serde(rename = "retryDelay")]
    retry_delay: Option<String>,
}

impl Said {
    /// Google wraps the error of a stream in a list.
    fn in_body(body: &[u8]) -> Self {
        let list = serde_json::from_slice::<[Body; 1]>(body).map(|[body]| body);
        match list.or_else(|_| serde_json::from_slice::<Body>(body)) {
            Ok(body) => {
                let delay = body.error.details.iter().find_map(|detail| detail.retry_delay.as_deref());
                Self { retry_after: delay.and_then(seconds), error: Some(body.error), text: String::new() }
            }
            Err(_) => Self { text: String::from_utf8_lossy(body).trim().to_owned(), ..Self::default() },
        }
    }

    fn message(&self, status: StatusCode) -> String {
        let message = self.error.as_ref().and_then(|error| error.message.as_deref()).unwrap_or(&self.text);
        match message.trim() {
            "" => status.canonical_reason().unwrap_or("no reason given").to_owned(),
            message => message.chars().take(1000).collect(),
        }
    }
}

/// The header in any of its forms: seconds, a date, or OpenAI's milliseconds.
fn retry_after(headers: &HeaderMap, now: f64) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let value = text(RETRY_AFTER.as_str())?.trim();
    if let Some(wait) = seconds(value) {
        return Some(wait);
    }
    let date = OffsetDateTime::parse(value, &Rfc2822).ok()?;
    Duration::try_from_secs_f64((date.unix_timestamp() as f64 - now).max(0.0)).ok()
}

/// `34`, `34s` or `34.07s`.
fn seconds(text: &str) -> Option<Duration> {
    let number: f64 = text.strip_suffix('s').unwrap_or(text).parse().ok()?;
    Duration::try_from_secs_f64(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let read = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers, 784_111_700.0)
        };
        assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(77)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:40:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for nonsense in ["-1", "soon", "1e99", ""] {
            assert_eq!(read("retry-after", nonsense), None, "{nonsense:?}");
        }
    }

    #[test]
    fn google_says_in_the_body_when_to_come_again() {
        let body = br#"[{"error": {"code": 429, "message": "slow", "details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}}]"#;
        let said = Said::in_body(body);
        assert_eq!(said.retry_after, Some(Duration::from_millis(34_500)));
        assert_eq!(said.message(StatusCode::TOO_MANY_REQUESTS), "slow");
        assert_eq!(Said::in_body(b" <html> ").message(StatusCode::BAD_GATEWAY), "<html>");
        assert_eq!(Said::in_body(b"").message(StatusCode::BAD_GATEWAY), "Bad Gateway");
    }
}
