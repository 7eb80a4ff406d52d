//! What happens to every request before its handler, and to every answer after it.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;
use tracing::Instrument;

use crate::error::ApiError;
use crate::server::Shared;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub(crate) async fn front(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (id, method) = (request_id(request.headers(), &shared), request.method().clone());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or("unknown", MatchedPath::as_str);
    let span = tracing::info_span!("request", id = id.to_str().unwrap_or(""), %method, route);
    let mut response = async {
        match admitted(&shared, route, request) {
            Ok(request) => within_time(&shared, &method, route, next.run(request)).await,
            Err(error) => error.into_response(),
        }
    }
    .instrument(span.clone())
    .await;
    let took = started.elapsed();
    span.in_scope(|| {
        let (status, took) =
            (response.status().as_u16(), u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        tracing::debug!(status, took, "answered");
    });
    shared.metrics.count(&method, route, response.status(), took);
    response.headers_mut().insert(REQUEST_ID.clone(), id);
    response
}

/// The request with its sender, if it may come in.
fn admitted(shared: &Shared, route: &str, mut request: Request) -> Result<Request, ApiError> {
    shared.guard.check(request.headers())?;
    match shared.auth.principal(request.headers(), shared.clock.now()) {
        Ok(principal) => drop(request.extensions_mut().insert(principal)),
        Err(_) if shared.is_open(route) => {}
        Err(error) => return Err(error),
    }
    Ok(request)
}

/// Runs have a time limit of their own.
async fn within_time(
    shared: &Shared,
    method: &Method,
    route: &str,
    answer: impl Future<Output = Response>,
) -> Response {
    if route == "/run" || route == "/run_sse" {
        return answer.await;
    }
    let limit = shared.limits.request_time;
    match tokio::time::timeout(limit, answer).await {
        Ok(response) => response,
        Err(_) if method.is_safe() => {
            ApiError::Unavailable(format!("The request took longer than {limit:?}")).into_response()
        }
        // What was begun may still be written.
        Err(_) => ApiError::Unavailable(format!(
            "The request took longer than {limit:?}; what it asks for is done or not done: read before you ask again"
        ))
        .into_response(),
    }
}

/// The id that the client gave the request, if it is one; otherwise a new one.
fn request_id(headers: &HeaderMap, shared: &Shared) -> HeaderValue {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    let is_id =
        |value: &&HeaderValue| (1..=128).contains(&value.len()) && value.as_bytes().iter().all(is_plain);
    match headers.get(&REQUEST_ID).filter(is_id) {
        Some(id) => id.clone(),
        None => HeaderValue::try_from(shared.ids.new_id()).unwrap_or(HeaderValue::from_static("unknown")),
    }
}
