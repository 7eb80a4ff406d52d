//! Sessions as they travel to a store and back.

use std::ops::Deref;
use std::sync::Arc;

use sessile_state::Delta;

use crate::event::Event;
use crate::key::SessionKey;
use crate::state_map::StateMap;
use crate::version::{Incarnation, Version};

/// A session to be created.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its address.
    pub key: SessionKey,
    /// Distinguishes it from earlier sessions with the same address. A store that retries after a
    /// lost connection recognizes by it whether its first attempt created the session.
    pub incarnation: Incarnation,
    /// When it is made, in Unix seconds.
    pub time: f64,
    /// Its initial state (version 0).
    pub session: StateMap,
    /// Changes of application state; they may be operations.
    pub app: Delta,
    /// Changes of user state; they may be operations.
    pub user: Delta,
    /// Events that it starts with, in order, and what each changes of the session's state. They
    /// hold no operations.
    pub events: Vec<(Arc<Event>, Delta)>,
    /// How large the state of a scope may become, in bytes of JSON.
    pub max_scope_bytes: Option<usize>,
}

/// A session as it is stored.
#[derive(Debug, Clone)]
pub struct StoredSession {
    /// Its address.
    pub key: SessionKey,
    /// Distinguishes it from earlier sessions with the same address.
    pub incarnation: Incarnation,
    /// How many events were ever appended.
    pub version: Version,
    /// How often the application's state was written.
    pub app_version: Version,
    /// How often the user's state was written.
    pub user_version: Version,
    /// When it was last changed, in Unix seconds.
    pub update_time: f64,
    /// Its own state.
    pub session: Arc<StateMap>,
    /// The application's state.
    pub app: Arc<StateMap>,
    /// The user's state.
    pub user: Arc<StateMap>,
    /// The session's own state at version 0, if it was kept.
    pub initial: Option<Arc<StateMap>>,
    /// The events of the window, in the order of their versions; stores may share them among
    /// readers.
    pub events: Arc<Vec<SessionEvent>>,
}

/// An event in its session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEvent {
    /// The session's version since this event.
    pub version: Version,
    /// The event, shared by all readers.
    pub event: Arc<Event>,
}

impl Deref for SessionEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}
