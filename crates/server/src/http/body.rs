//! Bodies of requests: limited in size and time, and parsed as JSON if that is their content type.

use std::pin::pin;
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{FromRef, FromRequest, Request};
use axum::http::{HeaderMap, header};
use futures_util::future::poll_immediate;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use sessile_session::StateMap;

use super::body_budget::Reserved;
use super::error::ApiError;
use super::json::{Document, Fields, Problem, Step};
use super::state::HttpState;
use crate::describe::model::Model;

/// A body that was read completely.
pub(crate) struct Body {
    text: String,
    is_json: bool,
    http: HttpState,
    /// Its share of the budget for bodies.
    _reserved: Reserved,
}

impl Body {
    /// The fields of a required body.
    pub(crate) fn fields(&self, model: &Model) -> Result<Fields<'_>, ApiError> {
        match self.document()? {
            Some(document) => Ok(document.fields(model)?),
            None => {
                Err(vec![Problem::new("missing", vec![Step::name("body")], "Field required", "null")].into())
            }
        }
    }

    /// The fields of a body that may be left out or null.
    pub(crate) fn optional_fields(&self, model: &Model) -> Result<Option<Fields<'_>>, ApiError> {
        match self.document()? {
            Some(document) if !document.is_null() => Ok(Some(document.fields(model)?)),
            _ => Ok(None),
        }
    }

    /// The whole body as a `T`; it was compared with its model before.
    pub(crate) fn whole<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_str(&self.text).map_err(|error| {
            let problem = format!("Value error, {error}");
            vec![Problem::new("value_error", vec![Step::name("body")], problem, &self.text)].into()
        })
    }

    /// The whole body as state; it may be left out or null.
    pub(crate) fn state(&self) -> Result<StateMap, ApiError> {
        match self.document()? {
            Some(document) if !document.is_null() => Ok(document.state()?),
            _ => Ok(StateMap::new()),
        }
    }

    fn document(&self) -> Result<Option<Document<'_>>, ApiError> {
        if self.text.is_empty() {
            return Ok(None);
        }
        if !self.is_json {
            let msg = "Input should be a valid dictionary or object to extract fields from";
            let input = serde_json::Value::from(self.text.as_str()).to_string();
            return Err(
                vec![Problem::new("model_attributes_type", vec![Step::name("body")], msg, &input)].into()
            );
        }
        Ok(Some(Document::parse(&self.text, &self.http.limits)?))
    }
}

impl<S: Send + Sync> FromRequest<S> for Body
where
    HttpState: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let http = HttpState::from_ref(state);
        let is_json = says_json(request.headers());
        let mut reserved = http.bodies.reserve();
        let bytes = in_time(http.limits.body_time, read(request, &mut reserved, http.limits.body)).await?;
        let text = String::from_utf8(bytes)
            .map_err(|_| ApiError::BadRequest("There was an error parsing the body".to_owned()))?;
        Ok(Self { text, is_json, http, _reserved: reserved })
    }
}

/// Waits for a body as long as a client may take to send it. Most bodies arrive with the head of
/// their request, and need no timer.
async fn in_time(
    limit: Duration,
    reading: impl Future<Output = Result<Vec<u8>, ApiError>>,
) -> Result<Vec<u8>, ApiError> {
    let mut reading = pin!(reading);
    match poll_immediate(reading.as_mut()).await {
        Some(bytes) => bytes,
        None => match tokio::time::timeout(limit, reading).await {
            Ok(bytes) => bytes,
            Err(_) => Err(ApiError::TooSlow(format!("The body was not received within {limit:?}"))),
        },
    }
}

/// The most memory that is allocated for a body before any of it has arrived.
const MOST_ANNOUNCED: usize = 16 * 1024;

/// Reads a whole body; each piece is reserved in the budget before it is kept.
async fn read(request: Request, reserved: &mut Reserved, limit: usize) -> Result<Vec<u8>, ApiError> {
    let mut body = request.into_body();
    // The announced length is only a claim of the client.
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(announced.min(MOST_ANNOUNCED));
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| ApiError::BadRequest("The body was not received completely".to_owned()))?;
        let Some(piece) = frame.data_ref() else { continue };
        if piece.len() > limit - bytes.len() {
            return Err(ApiError::TooLarge(format!("The body is longer than {limit} bytes")));
        }
        reserved.add(piece.len())?;
        bytes.extend_from_slice(piece);
    }
    Ok(bytes)
}

fn says_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let kind = kind.split(';').next().unwrap_or(kind).trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return true;
    }
    let kind = kind.to_ascii_lowercase();
    kind.starts_with("application/") && kind.ends_with("+json")
}
