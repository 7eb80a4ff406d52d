//! What agents, callbacks and tools see of a run, and how they change state.
//!
//! | context | given to | state |
//! |---|---|---|
//! | [`ReadonlyContext`] | providers of instructions | reads |
//! | [`CallbackContext`] | callbacks | a view whose changes land in the callback's event |
//! | [`ToolContext`] | tools | a view whose changes land in the event of the tool's response |
//! | [`InvocationContext`] | agents | reads; writes by emitting events |

mod callback;
mod invocation;
mod pending;
mod readonly;
mod services;
mod tool;

pub use callback::CallbackContext;
pub use invocation::InvocationContext;
pub use readonly::ReadonlyContext;
pub use tool::ToolContext;

pub(crate) use invocation::add_changes;
pub(crate) use readonly::Frame;
