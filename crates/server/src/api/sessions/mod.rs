//! Sessions: one file for each thing that is done with them.

pub(crate) mod append;
pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod history;
pub(crate) mod list;
pub(crate) mod read;
pub(crate) mod watch;
