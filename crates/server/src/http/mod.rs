//! What every request passes, whatever it asks for: connections and their timers, the middleware,
//! authentication, bodies, queries, paths and conditions; and how responses and errors are written.
//!
//! Nothing here knows a resource: `api/` imports this folder, never the other way round. What the
//! layer needs of the whole server is in [`HttpState`](state::HttpState).

pub(crate) mod auth;
pub(crate) mod body;
pub(crate) mod body_budget;
pub(crate) mod cors;
pub(crate) mod default_app;
pub(crate) mod error;
pub(crate) mod etag;
mod head_timer;
pub(crate) mod idempotency_key;
pub(crate) mod if_match;
pub(crate) mod json;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod middleware;
pub(crate) mod origin_check;
pub(crate) mod path_params;
pub(crate) mod percent;
pub(crate) mod query;
pub(crate) mod quota;
mod redact;
pub(crate) mod response;
pub(crate) mod route_policy;
pub(crate) mod serve;
pub(crate) mod state;
mod write_timeout;
