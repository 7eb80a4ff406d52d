//! Models behind agents.
//!
//! [`Scripted`] needs no network: it answers from a script, in tests and in the sample applications.

mod scripted;

pub use scripted::{Call, Requests, Rule, Scripted, Turn, call, calls, fail, reply, respond};
