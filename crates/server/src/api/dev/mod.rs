//! The endpoints that Google's web UI needs besides the API.

pub(crate) mod eval;
pub(crate) mod graph;
pub(crate) mod settings;
pub(crate) mod trace;
pub(crate) mod ui;
