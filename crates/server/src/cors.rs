use axum::http::header::{ETAG, HeaderName, LINK, LOCATION};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, CorsLayer};

use crate::server::Shared;
use crate::sessions::append::UPDATE_TIME;

/// The headers with which pages of the allowed origins may read answers; none without such origins.
pub(crate) fn layer(shared: &Shared) -> CorsLayer {
    if !shared.guard.has_origins() {
        return CorsLayer::new();
    }
    let guard = shared.clone();
    let is_listed = move |origin: &axum::http::HeaderValue, _: &axum::http::request::Parts| {
        origin.to_str().is_ok_and(|origin| guard.guard.is_listed(origin))
    };
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(is_listed))
        .allow_credentials(true)
        .allow_methods(AllowMethods::mirror_request())
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([ETAG, LINK, LOCATION, UPDATE_TIME, HeaderName::from_static("x-request-id")])
}
