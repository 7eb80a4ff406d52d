//! The REST API of ADK over any store, and what operators need beside it.
//!
//! A [`Server`] says what is served; [`router`] makes it an axum router. The paths, bodies and
//! statuses are those of `adk api_server`, so that its clients work unchanged; `docs/http-api.md`
//! lists them, and what is added.
//!
//! To add an endpoint, write its handler and its `Doc` in the file of its resource, and add a line
//! to the table in `routes.rs`. Errors become statuses in `error.rs`.

mod answer;
mod apps;
mod artifacts;
mod auth;
mod body;
mod cors;
mod counted;
mod default_app;
mod dev;
mod doc;
mod error;
mod etag;
mod front;
mod guard;
mod head_timer;
mod health;
mod idempotency_key;
mod if_match;
mod info;
mod json;
mod limits;
mod live;
mod memory;
mod metrics;
mod openapi;
mod place;
mod query;
mod quota;
mod redact;
mod room;
mod routes;
mod run;
mod scope_history;
mod scopes;
mod serve;
mod server;
mod sessions;
mod slow;
mod state_change;
mod trace;

use axum::Router;

pub use apps::{App, Apps};
pub use auth::{Auth, AuthError, JwtCheck, JwtKeys, Principal, Rights, StaticTokens};
pub use counted::Counts;
pub use limits::Limits;
pub use metrics::Gauge;
pub use serve::serve;
pub use server::Server;

use server::Shared;

/// The server as a router, for tests and for those who serve it in their own way. [`serve()`] does
/// more: it bounds connections and shuts down with grace.
pub fn router(server: Server) -> Router {
    assemble(&server.share())
}

fn assemble(shared: &Shared) -> Router {
    let mut router = routes::table().router;
    if let Some(folder) = &shared.adk_web {
        router = dev::ui::add(router, folder);
    }
    let router = router
        .fallback(routes::no_route)
        .method_not_allowed_fallback(routes::no_method)
        .layer(front::FrontLayer(shared.clone()));
    let router = match cors::layer(shared) {
        Some(layer) => router.layer(layer),
        None => router,
    };
    let router = router.with_state(shared.clone());
    match &shared.default_app {
        Some(app) => default_app::add(router, app),
        None => router,
    }
}
