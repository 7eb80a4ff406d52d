//! The files of Google's web UI, from a folder.

use std::path::Path;

use axum::Router;
use axum::response::Redirect;
use axum::routing::{get, get_service};
use tower_http::services::ServeDir;

use crate::server::Shared;

/// `/dev-ui/` and the ways to it. tower-http keeps requests inside the folder.
pub(crate) fn add(router: Router<Shared>, folder: &Path) -> Router<Shared> {
    let to_ui = || async { Redirect::temporary("/dev-ui/") };
    let files = ServeDir::new(folder).append_index_html_on_directories(true);
    router.route("/", get(to_ui)).route("/dev-ui", get(to_ui)).nest_service("/dev-ui/", get_service(files))
}
