use axum::extract::Request;
use axum::http::header::{ETAG, HeaderName, LINK, LOCATION, VARY};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use crate::server::Shared;
use crate::sessions::append::UPDATE_TIME;

/// The headers with which pages of the allowed origins may read answers; `None` without such
/// origins. What is left to do then, [`instead`] and [`mark`] do for less than a layer costs.
pub(crate) fn layer(shared: &Shared) -> Option<CorsLayer> {
    if !shared.guard.has_origins() {
        return None;
    }
    let guard = shared.clone();
    let is_listed = move |origin: &axum::http::HeaderValue, _: &axum::http::request::Parts| {
        origin.to_str().is_ok_and(|origin| guard.guard.is_listed(origin))
    };
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_listed))
        .allow_credentials(true)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([ETAG, LINK, LOCATION, UPDATE_TIME, HeaderName::from_static("x-request-id")]);
    Some(layer)
}

/// The answer to a page that asks whether it may send a request, if no origin is allowed: it has no
/// header that allows something.
pub(crate) fn instead(shared: &Shared, request: &Request) -> Option<Response> {
    if shared.guard.has_origins() || request.method() != Method::OPTIONS {
        return None;
    }
    let mut response = Response::default();
    mark(shared, response.headers_mut());
    Some(response)
}

/// Tells caches that an answer depends on the origin, if no origin is allowed; otherwise the layer
/// does.
pub(crate) fn mark(shared: &Shared, headers: &mut HeaderMap) {
    if !shared.guard.has_origins() {
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
}
