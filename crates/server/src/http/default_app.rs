//! Requests that name no application go to the default one.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use tower::ServiceExt;

/// Rewrites `/users/…` and `/app-info` to the paths of the application.
pub(crate) fn add(router: Router, app: &str) -> Router {
    // An `Arc`, because the closure is cloned for every request.
    let prefix: Arc<str> = format!("/apps/{}", crate::http::percent::encoded(app)).into();
    Router::new().fallback_service(router.map_request(move |mut request: Request| {
        if let Some(uri) = rewritten(request.uri(), &prefix) {
            *request.uri_mut() = uri;
        }
        request
    }))
}

fn rewritten(uri: &Uri, prefix: &str) -> Option<Uri> {
    let path = uri.path();
    if !path.starts_with("/users/") && path != "/app-info" {
        return None;
    }
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{prefix}{path}{query}")).ok()?);
    Uri::from_parts(parts).ok()
}
