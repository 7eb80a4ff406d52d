//! What agents remember across sessions.
//!
//! A [`MemoryService`] takes in sessions and finds what was said in them. Nothing is added by itself.

mod error;
mod service;

pub use error::MemoryError;
pub use service::{MemoryEntry, MemoryService};
