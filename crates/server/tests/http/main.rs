//! The HTTP interface, through the real router: statuses and bodies.

mod bad_input;
mod client;
mod sessions;
