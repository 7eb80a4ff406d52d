//! The HTTP interface, through the real router: statuses and bodies.

#![expect(clippy::unwrap_used, reason = "a failed unwrap in a test is a failed test")]

mod apps;
mod artifacts;
mod auth;
mod bad_input;
mod client;
mod conditions;
mod consistency;
mod dev;
mod documents;
mod extensions;
mod failures;
mod guards;
mod info;
mod live;
mod operations;
mod runs;
mod schema;
mod scope_history;
mod sessions;
mod sockets;
mod state_ops;
mod state_reads;
mod stores;
