//! What Google's web UI asks for beside the API.

pub(crate) mod eval;
pub(crate) mod graph;
pub(crate) mod settings;
pub(crate) mod trace;
pub(crate) mod ui;
