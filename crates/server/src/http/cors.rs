use axum::extract::Request;
use axum::http::header::{ETAG, HeaderName, LINK, LOCATION, VARY};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use super::response::{OVERWROTE, UNREADABLE, UPDATE_TIME};
use super::state::HttpState;

/// The CORS layer, for pages of the allowed origins; `None` if no origin is allowed. Then
/// [`preflight`] and [`mark`] do the rest, which costs less than a layer.
pub(crate) fn layer(http: &HttpState) -> Option<CorsLayer> {
    if !http.origins.has_origins() {
        return None;
    }
    let http = http.clone();
    let is_listed = move |origin: &HeaderValue, _: &axum::http::request::Parts| {
        origin.to_str().is_ok_and(|origin| http.origins.is_listed(origin))
    };
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_listed))
        .allow_credentials(true)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            ETAG,
            LINK,
            LOCATION,
            UPDATE_TIME,
            OVERWROTE,
            UNREADABLE,
            HeaderName::from_static("x-request-id"),
        ]);
    Some(layer)
}

/// The response to a preflight request if no origin is allowed: it has no header that allows
/// anything.
pub(crate) fn preflight(http: &HttpState, request: &Request) -> Option<Response> {
    if http.origins.has_origins() || request.method() != Method::OPTIONS {
        return None;
    }
    let mut response = Response::default();
    mark(http, response.headers_mut());
    Some(response)
}

/// Marks a response as dependent on the origin, for caches, if no origin is allowed; otherwise the
/// layer does.
pub(crate) fn mark(http: &HttpState, headers: &mut HeaderMap) {
    if !http.origins.has_origins() {
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
}
