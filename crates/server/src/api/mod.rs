//! The resources of the API, a file or folder each: the handlers of its routes, the `Doc` of each
//! route and the models of its bodies.

pub(crate) mod apps;
pub(crate) mod artifacts;
pub(crate) mod dev;
pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod info;
pub(crate) mod live;
pub(crate) mod memory;
pub(crate) mod metrics;
mod run_log;
pub(crate) mod run_registry;
pub(crate) mod runs;
pub(crate) mod scopes;
pub(crate) mod sessions;
pub(crate) mod shared;
mod state_change;
pub(crate) mod traces;
mod watch_frames;
