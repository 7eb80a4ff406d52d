use std::sync::Arc;

use super::SessionService;
use super::check::prepared;
use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::session::Session;
use crate::store::{Appended, Commit, EventWindow, Expect, SessionEvent, Version};

/// What happens when the session was changed since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The append is refused.
    #[default]
    Refuse,
    /// The changes are applied, key by key, to what is stored now.
    Merge,
}

impl SessionService {
    /// Appends an event to a session in hand, and brings that up to date. Returns the event as it
    /// was stored; a partial event is returned as it is, and neither stored nor applied.
    ///
    /// # Errors
    ///
    /// - [`SessionError::Conflict`] if the session was changed since it was read;
    /// - [`SessionError::NotFound`] if there is no such session;
    /// - [`SessionError::EventConflict`] if the session has another event with this id;
    /// - [`SessionError::InvalidId`], [`SessionError::InvalidState`] or [`SessionError::InvalidEvent`] if
    ///   something cannot be stored.
    pub async fn append(&self, session: &mut Session, event: Event) -> Result<Arc<Event>, SessionError> {
        self.append_with(session, event, OnConflict::Refuse).await
    }

    /// [`append`](Self::append), with a choice of what happens when the session was changed.
    ///
    /// What is stored is never reported as failed: if the events of others cannot be read after the append, the
    /// session in hand stays as it was, and the next append brings it up to date.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append); no [`SessionError::Conflict`] with [`OnConflict::Merge`].
    pub async fn append_with(
        &self,
        session: &mut Session,
        event: Event,
        on_conflict: OnConflict,
    ) -> Result<Arc<Event>, SessionError> {
        let session_version = match on_conflict {
            OnConflict::Refuse => Some(session.version()),
            OnConflict::Merge => None,
        };
        let expect = Expect { session: session_version, ..Expect::default() };
        match self.commit(session.key(), event, expect).await? {
            Outcome::Partial(event) => Ok(event),
            Outcome::Committed { event, appended } => {
                if appended.version == session.version() + 1 {
                    let event = SessionEvent { version: appended.version, event: event.clone() };
                    session.advance(event, appended.update_time);
                } else if appended.version > session.version() {
                    self.refresh(session).await;
                }
                Ok(event)
            }
        }
    }

    /// Appends an event to whatever the session is now; returns the new version, or `None` for a
    /// partial event, which is neither stored nor applied.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append), but never [`SessionError::Conflict`].
    pub async fn append_to(&self, key: &SessionKey, event: Event) -> Result<Option<Version>, SessionError> {
        self.append_expecting(key, event, Expect::default()).await
    }

    /// Appends an event if the versions are those that are expected; returns the new version, or `None` for a partial event,
    /// which is neither stored nor applied. An event that is stored already is stored once, whatever is expected.
    ///
    /// With the versions of the scopes that the event changes, taken from [`Session::versions`], nothing that others
    /// wrote since is written over.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append); [`SessionError::Conflict`] if a version is another.
    pub async fn append_expecting(
        &self,
        key: &SessionKey,
        event: Event,
        expect: Expect,
    ) -> Result<Option<Version>, SessionError> {
        match self.commit(key, event, expect).await? {
            Outcome::Partial(_) => Ok(None),
            Outcome::Committed { appended, .. } => Ok(Some(appended.version)),
        }
    }

    /// The one way to the store for every event of an existing session.
    pub(super) async fn commit(
        &self,
        key: &SessionKey,
        event: Event,
        expect: Expect,
    ) -> Result<Outcome, SessionError> {
        if event.is_partial() {
            return Ok(Outcome::Partial(Arc::new(event)));
        }
        let mut event = self.completed(event);
        let scoped = prepared(&mut event)?;
        let event = Arc::new(event);
        let commit = Commit { key: key.clone(), event: event.clone(), delta: scoped, expect };
        let appended = self.store.append(commit).await?;
        self.watchers.tell(key);
        Ok(Outcome::Committed { event, appended })
    }

    /// The event with an id and a time, if it had none.
    pub(super) fn completed(&self, mut event: Event) -> Event {
        if event.id.is_empty() {
            event.id = self.ids.new_id();
        }
        if event.timestamp == 0.0 {
            event.timestamp = self.clock.now();
        }
        event
    }

    /// Reads what others appended, and adds it to the events in hand. If that fails they stay as they are, which is
    /// an earlier version and no wrong one.
    async fn refresh(&self, session: &mut Session) {
        let window = EventWindow::after_version(session.version());
        if let Ok(Some(now)) = self.get(session.key(), window).await {
            session.catch_up(now);
        }
    }
}

pub(super) enum Outcome {
    Partial(Arc<Event>),
    Committed { event: Arc<Event>, appended: Appended },
}
