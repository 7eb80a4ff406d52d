use std::collections::HashSet;
use std::sync::Arc;

use super::SessionService;
use super::check::{Notes, checked, prepared, without_operations};
use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::session::Session;
use crate::state_map::StateMap;
use crate::stored_session::NewSession;
use crate::version::Incarnation;

/// A session from another store or a backup.
#[derive(Debug, Clone)]
pub struct RestoreSession {
    /// Its address.
    pub key: SessionKey,
    /// When it was made, in Unix seconds.
    pub time: f64,
    /// Its own state at version 0.
    pub initial: StateMap,
    /// All its events, in the order of their versions.
    pub events: Vec<Event>,
}

impl SessionService {
    /// Restores a session with its whole history, atomically. The changes of application and user
    /// state in its events are not applied again, because that state may have changed since. Its
    /// own state is not checked against the application's schema.
    ///
    /// # Errors
    ///
    /// - [`SessionError::AlreadyExists`] if there is a session with this key; it stays untouched;
    /// - [`SessionError::InvalidState`], [`SessionError::InvalidEvent`],
    ///   [`SessionError::InvalidId`] or [`SessionError::EventConflict`] if something cannot be
    ///   stored.
    pub async fn restore(&self, old: RestoreSession) -> Result<Session, SessionError> {
        let RestoreSession { key, time, initial, events } = old;
        let shared = checked(&initial.clone().into_iter().collect(), None)?;
        if let Some((name, _)) = shared.app.iter().chain(shared.user.iter()).next() {
            let reason = "the session's own state cannot hold keys of other scopes".to_owned();
            return Err(SessionError::InvalidState { key: name.to_owned(), reason });
        }
        let mut ids = HashSet::new();
        let mut prepared_events = Vec::with_capacity(events.len());
        for mut event in events {
            if event.is_partial() {
                let reason = "it is partial, and partial events are never stored".to_owned();
                return Err(SessionError::InvalidEvent { id: event.id, reason });
            }
            let delta = prepared(&mut event, Notes::Kept, None)?.session;
            without_operations(&event)?;
            if !ids.insert(event.id.clone()) {
                return Err(SessionError::EventConflict { key, id: event.id });
            }
            prepared_events.push((Arc::new(event), delta));
        }
        let (app, user) = Default::default();
        let new = NewSession {
            key,
            incarnation: Incarnation::random(),
            time,
            session: initial,
            app,
            user,
            events: prepared_events,
            max_scope_bytes: self.max_scope_bytes,
        };
        Ok(self.store.create(new).await?.into())
    }
}
