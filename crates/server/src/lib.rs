//! The REST API of ADK over any store, with the endpoints that operators need.
//!
//! A [`Server`] is the configuration; [`router`] makes it an axum router, and [`serve()`] serves
//! it. The paths, bodies and statuses are those of `adk api_server`, so that its clients work
//! unchanged; `docs/http-api.md` lists them, and the additions.
//!
//! The code has three layers. `describe/` is the lowest: docs of routes, models of bodies, the
//! OpenAPI document, metrics. `http/` is what every request passes, whatever it asks for. `api/`
//! has a file or folder for each resource. `routes.rs` is the table of all routes, and `server.rs`
//! puts everything together.
//!
//! To add a route, write its handler and its `Doc` in the file of its resource in `api/`, and add a
//! row to the table in `routes.rs`. Errors become statuses in `http/error.rs`.

mod api;
mod describe;
mod http;
mod routes;
mod server;

pub use api::apps::{App, Apps};
pub use describe::counting_store::Counts;
pub use describe::metrics::Gauge;
pub use http::auth::{Auth, AuthError, JwtCheck, JwtKeys, Principal, Rights, StaticTokens};
pub use http::limits::Limits;
pub use server::{Server, router, serve};
