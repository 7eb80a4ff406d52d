//! Keeps the state of AI agents.
//!
//! This crate is the front door: everything an application needs, by name, from the crates that
//! implement it.

pub use sessile_session as session;
pub use sessile_state as state;

pub use sessile_session::{
    Content, CreateSession, Event, EventActions, EventWindow, MemoryStore, Part, Session, SessionError,
    SessionKey, SessionService,
};
pub use sessile_state::{Delta, Scope, State, StateError, StateKey, StateSchema, Template, TemplateError};

/// The code of README.md runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
