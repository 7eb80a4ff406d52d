//! What happens to every request before its handler, and to every answer after it.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;
use tower::{Layer, Service};
use tracing::Instrument;

use crate::cors;
use crate::error::ApiError;
use crate::server::Shared;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Puts a [`Front`] before every route.
#[derive(Clone)]
pub(crate) struct FrontLayer(pub(crate) Shared);

/// What stands before a route. It is a service of its own, and not one of axum's middleware
/// functions, because those copy the route and box it once more for every request.
#[derive(Clone)]
pub(crate) struct Front<S> {
    route: S,
    shared: Shared,
}

impl<S> Layer<S> for FrontLayer {
    type Service = Front<S>;

    fn layer(&self, route: S) -> Front<S> {
        Front { route, shared: self.0.clone() }
    }
}

impl<S> Service<Request> for Front<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.route.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let (started, shared) = (Instant::now(), self.shared.clone());
        if let Some(response) = cors::instead(&shared, &request) {
            return Box::pin(async { Ok(response) });
        }
        let (id, method) = (request_id(request.headers(), &shared), request.method().clone());
        let matched = request.extensions().get::<MatchedPath>().cloned();
        let route = matched.as_ref().map_or("unknown", MatchedPath::as_str);
        // Texts that need no escapes are given as they are: quoting them takes most of a span's
        // time.
        let span = tracing::info_span!("request", id = %id.to_str().unwrap_or(""), %method, %route);
        let answer = span.in_scope(|| {
            let request = admitted(&shared, route, request)?;
            Ok::<_, ApiError>(self.route.call(request))
        });
        Box::pin(async move {
            let route = matched.as_ref().map_or("unknown", MatchedPath::as_str);
            let mut response = match answer {
                Ok(answer) => {
                    within_time(&shared, &method, route, started, answer).instrument(span.clone()).await?
                }
                Err(error) => span.in_scope(|| error.into_response()),
            };
            let (status, took) = (response.status(), started.elapsed());
            tracing::debug!(parent: &span, status = status.as_u16(), took = microseconds(took), "answered");
            shared.metrics.count(&method, route, status, took);
            response.headers_mut().insert(REQUEST_ID.clone(), id);
            cors::mark(&shared, response.headers_mut());
            Ok(response)
        })
    }
}

fn microseconds(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
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
    started: Instant,
    answer: impl Future<Output = Result<Response, Infallible>>,
) -> Result<Response, Infallible> {
    if route == "/run" || route == "/run_sse" {
        return answer.await;
    }
    let limit = shared.limits.request_time;
    let late = match tokio::time::timeout_at(started + limit, answer).await {
        Ok(response) => return response,
        Err(_) if method.is_safe() => format!("The request took longer than {limit:?}"),
        // What was begun may still be written.
        Err(_) => format!(
            "The request took longer than {limit:?}; what it asks for is done or not done: read before you ask again"
        ),
    };
    Ok(ApiError::Unavailable(late).into_response())
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
