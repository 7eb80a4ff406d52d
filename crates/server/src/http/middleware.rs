//! The middleware: what happens to every request before its handler, and to every response after
//! it.

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

use super::cors;
use super::error::ApiError;
use super::route_policy::RoutePolicy;
use super::state::HttpState;
use crate::describe::metrics::UNMATCHED;
use crate::describe::route_doc::TimeLimit;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Puts a [`Middleware`] before every route.
#[derive(Clone)]
pub(crate) struct MiddlewareLayer(pub(crate) HttpState);

/// The middleware of a route. It is a service of its own, and not one of axum's middleware
/// functions, because those copy the route and box it once more for every request.
#[derive(Clone)]
pub(crate) struct Middleware<S> {
    route: S,
    http: HttpState,
}

impl<S> Layer<S> for MiddlewareLayer {
    type Service = Middleware<S>;

    fn layer(&self, route: S) -> Middleware<S> {
        Middleware { route, http: self.0.clone() }
    }
}

impl<S> Service<Request> for Middleware<S>
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
        let (started, http) = (Instant::now(), self.http.clone());
        if let Some(response) = cors::preflight(&http, &request) {
            return Box::pin(async { Ok(response) });
        }
        let (id, method) = (request_id(request.headers(), &http), request.method().clone());
        let matched = request.extensions().get::<MatchedPath>().cloned();
        let path = matched.as_ref().map(MatchedPath::as_str);
        let (route, policy) = (path.unwrap_or(UNMATCHED), http.policies.of(path));
        // `Display` instead of `Debug`: these texts need no escapes, and escaping them takes most
        // of a span's time.
        let span = tracing::info_span!("request", id = %id.to_str().unwrap_or(""), %method, %route);
        let answer = span.in_scope(|| {
            let request = admitted(&http, policy, request)?;
            Ok::<_, ApiError>(self.route.call(request))
        });
        Box::pin(async move {
            let route = matched.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
            let mut response = match answer {
                Ok(answer) => {
                    let answer = within_time(&http, &method, policy, started, answer);
                    answer.instrument(span.clone()).await?
                }
                Err(error) => span.in_scope(|| error.into_response()),
            };
            let (status, took) = (response.status(), started.elapsed());
            tracing::debug!(parent: &span, status = status.as_u16(), took = microseconds(took), "answered");
            http.metrics.count(&method, route, status, took);
            response.headers_mut().insert(REQUEST_ID.clone(), id);
            cors::mark(&http, response.headers_mut());
            Ok(response)
        })
    }
}

fn microseconds(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

/// The request with its caller, unless its origin is refused or it needs a token and has none.
fn admitted(http: &HttpState, policy: RoutePolicy, mut request: Request) -> Result<Request, ApiError> {
    http.origins.check(request.headers())?;
    match http.auth.principal(request.headers(), http.clock.now()) {
        Ok(principal) => drop(request.extensions_mut().insert(principal)),
        Err(_) if policy.is_open => {}
        Err(error) => return Err(error),
    }
    Ok(request)
}

/// Ends a request that takes longer than its route allows. Runs end themselves.
async fn within_time(
    http: &HttpState,
    method: &Method,
    policy: RoutePolicy,
    started: Instant,
    answer: impl Future<Output = Result<Response, Infallible>>,
) -> Result<Response, Infallible> {
    if policy.time_limit == TimeLimit::Run {
        return answer.await;
    }
    let limit = http.limits.request_time;
    let late = match tokio::time::timeout_at(started + limit, answer).await {
        Ok(response) => return response,
        Err(_) if method.is_safe() => format!("The request took longer than {limit:?}"),
        // A commit that has begun may still succeed.
        Err(_) => format!(
            "The request took longer than {limit:?}; what it asks for is done or not done: read before you ask again"
        ),
    };
    Ok(ApiError::Unavailable(late).into_response())
}

/// The request id that the client sent, if it is a valid one; otherwise a new one.
fn request_id(headers: &HeaderMap, http: &HttpState) -> HeaderValue {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    let is_id =
        |value: &&HeaderValue| (1..=128).contains(&value.len()) && value.as_bytes().iter().all(is_plain);
    match headers.get(&REQUEST_ID).filter(is_id) {
        Some(id) => id.clone(),
        None => HeaderValue::try_from(http.ids.new_id()).unwrap_or(HeaderValue::from_static("unknown")),
    }
}
