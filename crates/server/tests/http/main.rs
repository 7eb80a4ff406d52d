//! The HTTP interface, through the real router: statuses and bodies.

mod apps;
mod artifacts;
mod bad_input;
mod client;
mod info;
mod runs;
mod sessions;
