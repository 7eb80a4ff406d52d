//! What agents, callbacks and tools see of a run, and how they change state.
//!
//! | context | given to | state |
//! |---|---|---|
//! | [`ReadonlyContext`] | providers of instructions | reads |
//! | [`CallbackContext`] | callbacks | a view whose changes land in the callback's event |
//! | [`ToolContext`] | tools | a view whose changes land in the event of the tool's response |
//! | [`InvocationContext`] | agents | reads; writes by emitting events |
//!
//! A view remembers what was read through it. A key that is read and then set carries the value
//! that was read as a guard, so that a write of another session in between is reported or refused,
//! see [`OnOverwrite`](sessile_session::OnOverwrite).

mod callback;
mod frame;
mod invocation;
mod outer;
mod pending;
mod readonly;
mod run;
mod services;
mod tool;
mod transact;

pub use callback::CallbackContext;
pub use invocation::InvocationContext;
pub use readonly::ReadonlyContext;
pub use tool::ToolContext;

pub(crate) use frame::{Frame, Rules};
pub(crate) use invocation::add_changes;
pub(crate) use outer::Outer;
pub(crate) use pending::Taken;
pub(crate) use run::{Invocation, Services};
