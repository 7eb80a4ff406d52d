use std::sync::Arc;

use sessile_state::{Delta, SharedValue};

use super::SessionService;
use super::check::{checked, prepared};
use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::session::Session;
use crate::store::{NewSession, StateMap, apply};

/// A session to be.
#[derive(Debug, Clone, Default)]
pub struct CreateSession {
    /// The application.
    pub app: String,
    /// The user.
    pub user: String,
    /// The session's id; one is made if it is blank or left out.
    pub id: Option<String>,
    /// Initial state, keys with their prefixes; `temp:` keys are dropped.
    pub state: StateMap,
    /// Events that the session starts with, in order.
    pub events: Vec<Event>,
}

impl CreateSession {
    /// An empty session with an id that is made for it.
    pub fn new(app: impl Into<String>, user: impl Into<String>) -> Self {
        Self { app: app.into(), user: user.into(), ..Self::default() }
    }

    /// With this id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// With this initial state.
    #[must_use]
    pub fn with_state<K: Into<String>, V: Into<SharedValue>>(
        mut self,
        state: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.state = state.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
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
    /// Creates a session, its events and what they change, all or nothing.
    ///
    /// # Errors
    ///
    /// - [`SessionError::AlreadyExists`] if the id is taken; that session stays untouched;
    /// - [`SessionError::InvalidId`], [`SessionError::InvalidState`], [`SessionError::InvalidEvent`] or
    ///   [`SessionError::EventConflict`] if something cannot be stored.
    pub async fn create(&self, new: CreateSession) -> Result<Session, SessionError> {
        let key = SessionKey::new(new.app, new.user, &self.id_or_new(new.id.as_deref()))?;
        let initial: Delta = new.state.into_iter().collect();
        self.create_at(key, &initial, new.events).await
    }

    /// The id of a session to be: one is made if it is blank or left out.
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
        let initial = checked(initial)?;
        let (mut app, mut user) = (initial.app, initial.user);
        let mut session = StateMap::new();
        apply(&mut session, &initial.session);
        let mut prepared_events = Vec::with_capacity(events.len());
        let mut ids = std::collections::HashSet::new();
        for event in events {
            if event.is_partial() {
                continue;
            }
            let mut event = self.completed(event);
            let delta = prepared(&mut event)?;
            if !ids.insert(event.id.clone()) {
                return Err(SessionError::EventConflict { key, id: event.id });
            }
            app.merge(&delta.app);
            user.merge(&delta.user);
            prepared_events.push((Arc::new(event), delta.session));
        }
        let new = NewSession { key, time: self.clock.now(), session, app, user, events: prepared_events };
        Ok(self.store.create(new).await?.into())
    }
}
