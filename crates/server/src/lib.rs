//! The REST API of ADK over any store, and what operators need beside it.
//!
//! A [`Server`] says what is served; [`router`] makes it an axum router. The paths, bodies and
//! statuses are those of `adk api_server`, so that its clients work unchanged; `docs/http-api.md`
//! lists them, and what is added.
//!
//! To add an endpoint, write its handler and its [`Doc`](doc) in the file of its resource, and add a line
//! to the table in `routes.rs`. Errors become statuses in `error.rs`.

mod answer;
mod apps;
mod auth;
mod body;
mod doc;
mod error;
mod front;
mod health;
mod info;
mod json;
mod limits;
mod place;
mod query;
mod redact;
mod routes;
mod server;
mod sessions;
mod size;

use axum::Router;
use axum::middleware::from_fn_with_state;

pub use apps::Apps;
pub use auth::{Principal, Rights};
pub use limits::Limits;
pub use server::Server;

/// The server as a router.
pub fn router(server: Server) -> Router {
    let shared = server.share();
    let table = routes::table();
    table
        .router
        .fallback(routes::no_route)
        .method_not_allowed_fallback(routes::no_method)
        .layer(from_fn_with_state(shared.clone(), front::front))
        .with_state(shared)
}
