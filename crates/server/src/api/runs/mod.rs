//! Running agents: whole answers, streams, and detached runs, which continue without their client.

mod detached;
pub(crate) mod follow;
mod frames;
pub(crate) mod run;
mod run_request;
mod running;
pub(crate) mod stream;

pub(crate) use run_request::AuthorizedRun;
pub(crate) use running::Running;
