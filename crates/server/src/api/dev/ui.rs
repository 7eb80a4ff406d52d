//! The files of Google's web UI, from a folder.

use std::path::Path;

use axum::response::Redirect;
use axum::routing::{MethodRouter, get_service};
use tower_http::services::ServeDir;

/// Leads to the web UI.
pub(crate) async fn redirect() -> Redirect {
    Redirect::temporary("/dev-ui/")
}

/// The files of a folder. tower-http keeps requests inside it.
pub(crate) fn files(folder: &Path) -> MethodRouter {
    get_service(ServeDir::new(folder).append_index_html_on_directories(true))
}
