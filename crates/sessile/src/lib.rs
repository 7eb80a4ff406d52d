//! Keeps the state of AI agents.
//!
//! This crate is the front door: everything an application needs, by name, from the crates that
//! implement it.

pub use sessile_state as state;

pub use sessile_state::{Delta, Scope, State, StateError, StateKey, StateSchema, Template, TemplateError};
