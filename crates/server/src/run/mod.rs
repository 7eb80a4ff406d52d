//! Running agents: whole answers, streams, and runs that go on without their client.

pub(crate) mod detached;
pub(crate) mod follow;
mod frames;
mod order;
mod running;
mod runs;
pub(crate) mod stream;
pub(crate) mod whole;

pub(crate) use order::Order;
pub(crate) use running::Running;
pub(crate) use runs::Runs;
