use std::sync::Arc;

use sessile_state::{Delta, StateError};

use super::SessionService;
use super::check::{Notes, checked, prepared, without_operations};
use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::session::Session;
use crate::state_map::{StateMap, apply};
use crate::stored_session::NewSession;
use crate::version::Incarnation;
use crate::window::EventWindow;

/// A session to be created.
#[derive(Debug, Clone, Default)]
pub struct CreateSession {
    /// The application.
    pub app: String,
    /// The user.
    pub user: String,
    /// The session's id; one is generated if it is blank or left out.
    pub id: Option<String>,
    /// Initial state, keys with their prefixes; `temp:` keys are dropped. `user:` and `app:` keys
    /// may be operated on.
    pub state: Delta,
    /// Events that the session starts with, in order.
    pub events: Vec<Event>,
}

impl CreateSession {
    /// An empty session with a generated id.
    pub fn new(app: impl Into<String>, user: impl Into<String>) -> Self {
        Self { app: app.into(), user: user.into(), ..Self::default() }
    }

    /// With this id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// With this initial state: an object as `json!` makes it, an array of keys and values, or a
    /// [`Delta`].
    #[must_use]
    #[track_caller]
    pub fn with_state(mut self, state: impl Into<Delta>) -> Self {
        self.state = state.into();
        self
    }

    /// With these events.
    #[must_use]
    pub fn with_events(mut self, events: impl IntoIterator<Item = Event>) -> Self {
        self.events = events.into_iter().collect();
        self
    }
}

impl SessionService {
    /// Creates a session with its events and their changes, atomically.
    ///
    /// # Errors
    ///
    /// - [`SessionError::AlreadyExists`] if the id is taken; that session stays untouched;
    /// - [`SessionError::InvalidId`], [`SessionError::InvalidState`],
    ///   [`SessionError::InvalidEvent`] or [`SessionError::EventConflict`] if something cannot be
    ///   stored;
    /// - [`SessionError::Operation`] if an operation on shared state cannot be applied to what is
    ///   stored;
    /// - [`SessionError::TooLarge`] if a scope would exceed its limit.
    pub async fn create(&self, new: CreateSession) -> Result<Session, SessionError> {
        let key = SessionKey::new(new.app, new.user, &self.id_or_new(new.id.as_deref()))?;
        self.create_at(key, &new.state, new.events).await
    }

    /// The session with this id, which is created if there is none; what is there already stays as
    /// it is.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), but never [`SessionError::AlreadyExists`].
    pub async fn get_or_create(
        &self,
        new: CreateSession,
        window: EventWindow,
    ) -> Result<Session, SessionError> {
        let key = SessionKey::new(&new.app, &new.user, &self.id_or_new(new.id.as_deref()))?;
        loop {
            if let Some(session) = self.get(&key, window).await? {
                return Ok(session);
            }
            match self.create_at(key.clone(), &new.state, new.events.clone()).await {
                // Another caller created the session concurrently, so it can be read now.
                Err(SessionError::AlreadyExists { .. }) => {}
                created => return created,
            }
        }
    }

    /// The id of a new session: one is generated if it is blank or left out.
    pub(super) fn id_or_new(&self, id: Option<&str>) -> String {
        match id.map(str::trim) {
            None | Some("") => self.ids.new_id(),
            Some(id) => id.to_owned(),
        }
    }

    async fn create_at(
        &self,
        key: SessionKey,
        initial: &Delta,
        events: Vec<Event>,
    ) -> Result<Session, SessionError> {
        let schema = self.checking(key.app());
        let initial = checked(initial, schema)?;
        let (mut app, mut user) = (initial.app, initial.user);
        let mut session = StateMap::new();
        let resolved = initial.session.resolved(|_| None).map_err(invalid_state)?;
        apply(&mut session, &resolved);
        let mut prepared_events = Vec::with_capacity(events.len());
        let mut ids = std::collections::HashSet::new();
        for mut event in events {
            if event.is_partial() {
                continue;
            }
            self.complete(&mut event);
            let delta = prepared(&mut event, Notes::Refused, schema)?;
            without_operations(&event)?;
            if !ids.insert(event.id.clone()) {
                return Err(SessionError::EventConflict { key, id: event.id });
            }
            app.merge(&delta.app).map_err(invalid_state)?;
            user.merge(&delta.user).map_err(invalid_state)?;
            prepared_events.push((Arc::new(event), delta.session));
        }
        let new = NewSession {
            key,
            incarnation: Incarnation::random(),
            time: self.clock.now(),
            session,
            app,
            user,
            events: prepared_events,
            max_scope_bytes: self.max_scope_bytes,
        };
        let changes_shared = (!new.user.is_empty(), !new.app.is_empty());
        let created: Session = self.store.create(new).await?.into();
        self.shared_changed(created.key(), changes_shared);
        Ok(created)
    }
}

/// An operation in the initial state that cannot be applied to an absent key.
fn invalid_state(error: StateError) -> SessionError {
    match error {
        StateError::Operation { key, source } => {
            SessionError::InvalidState { key, reason: source.to_string() }
        }
        other => SessionError::InvalidState { key: String::new(), reason: other.to_string() },
    }
}
