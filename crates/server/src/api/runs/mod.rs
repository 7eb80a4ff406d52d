//! Running agents: whole answers, streams, and runs that go on without their client.

mod detached;
pub(crate) mod follow;
mod frames;
pub(crate) mod run;
mod run_request;
mod running;
pub(crate) mod stream;

pub(crate) use run_request::RunOrder;
pub(crate) use running::Running;
