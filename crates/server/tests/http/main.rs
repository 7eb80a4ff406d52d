//! The HTTP interface, through the real router: statuses and bodies.

mod apps;
mod artifacts;
mod auth;
mod bad_input;
mod client;
mod dev;
mod documents;
mod extensions;
mod guards;
mod info;
mod operations;
mod runs;
mod sessions;
mod sockets;
mod stores;
