//! Earlier states of a session, and how to return to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessile_state::Delta;

use super::SessionService;
use super::append::Append;
use crate::commit::{Answer, Expect, Since};
use crate::error::SessionError;
use crate::event::{Event, EventActions};
use crate::key::SessionKey;
use crate::session::Session;
use crate::state_map::{StateMap, apply};
use crate::stored_session::{SessionEvent, StoredSession};
use crate::version::{Incarnation, Version};
use crate::window::EventWindow;

/// A rewind that is prepared: [`SessionService::prepare_rewind`].
#[derive(Debug)]
pub struct Rewind {
    /// The versions of artifacts that the rewind saves, by name; its event lists them.
    pub artifact_delta: BTreeMap<String, i64>,
    stored: StoredSession,
    event: Event,
    version: Version,
}

impl Rewind {
    /// The version that the session goes back to.
    pub fn version(&self) -> Version {
        self.version
    }

    /// All events of the session, oldest first.
    pub fn events(&self) -> &[SessionEvent] {
        &self.stored.events
    }
}

impl SessionService {
    /// The session's own state at a version: its initial state (version 0) and what its events up
    /// to that version changed. For shared state see
    /// [`scope_state_at`](Self::scope_state_at).
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`], or [`SessionError::NotInHistory`] if the session has not reached
    /// that version.
    pub async fn state_at(&self, key: &SessionKey, version: Version) -> Result<StateMap, SessionError> {
        let stored = self.whole(key).await?;
        check_version(&stored, version)?;
        Ok(fold(&stored, version))
    }

    /// Undoes everything since an invocation began: appends one event after which the session's own
    /// state is what it was before that invocation. Nothing is deleted; application and user state
    /// stay. Returns the session.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`]; [`SessionError::NotInHistory`] if no event is of that
    /// invocation; [`SessionError::Conflict`] if the session is changed meanwhile.
    pub async fn rewind(&self, key: &SessionKey, before_invocation: &str) -> Result<Session, SessionError> {
        let rewind = self.prepare_rewind(key, before_invocation).await?;
        self.commit_rewind(rewind).await
    }

    /// Prepares a [`rewind`](Self::rewind) without writing anything, for a caller that also has to
    /// restore other things, such as artifacts.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`]; [`SessionError::NotInHistory`] if no event is of that
    /// invocation.
    pub async fn prepare_rewind(
        &self,
        key: &SessionKey,
        before_invocation: &str,
    ) -> Result<Rewind, SessionError> {
        let stored = self.whole(key).await?;
        let first = stored.events.iter().find(|event| event.invocation_id == before_invocation);
        let Some(first) = first.filter(|_| !before_invocation.is_empty()) else {
            return Err(not_in_history(key, format!("invocation {before_invocation:?}")));
        };
        let version = first.version - 1;
        let delta = difference(&stored.session, &fold(&stored, version));
        let mut event = Event::new("user")
            .with_actions(EventActions::from_delta(delta))
            .with_invocation(format!("e-{}", self.ids.new_id()));
        event.actions.rewind_before_invocation_id = Some(before_invocation.to_owned());
        Ok(Rewind { stored, event, version, artifact_delta: BTreeMap::new() })
    }

    /// Commits a prepared rewind. Returns the session.
    ///
    /// # Errors
    ///
    /// [`SessionError::Conflict`] if the session was changed since it was prepared.
    pub async fn commit_rewind(&self, rewind: Rewind) -> Result<Session, SessionError> {
        let Rewind { stored, mut event, artifact_delta, .. } = rewind;
        event.actions.artifact_delta = artifact_delta;
        let key = stored.key.clone();
        let (incarnation, version) = (stored.incarnation, stored.version);
        let append = Append::new(event).expecting(Expect::session(incarnation, version));
        let answer = Answer { since: Some(Since { incarnation, version }), state: false };
        let mut session = Session::from(stored);
        session.take_in(self.commit_checked(&key, append, answer, None).await?);
        Ok(session)
    }

    /// A new session that begins as this one was at a version: the same initial state and the same
    /// events up to it. Application and user state are shared between both.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotFound`]; [`SessionError::NotInHistory`] if the session has not reached
    /// that version; [`SessionError::AlreadyExists`] if the new id is taken.
    pub async fn fork(
        &self,
        key: &SessionKey,
        version: Version,
        new_id: Option<&str>,
    ) -> Result<Session, SessionError> {
        let stored = self.whole(key).await?;
        check_version(&stored, version)?;
        let new_key = SessionKey::new(key.app(), key.user(), &self.id_or_new(new_id))?;
        let events = stored.events.iter().filter(|event| event.version <= version);
        let new = crate::stored_session::NewSession {
            key: new_key,
            incarnation: Incarnation::random(),
            time: self.clock.now(),
            session: initial(&stored),
            app: Delta::new(),
            user: Delta::new(),
            events: events.map(|event| (event.event.clone(), own_changes(event))).collect(),
            max_scope_bytes: self.max_scope_bytes,
        };
        Ok(self.store.create(new).await?.into())
    }

    async fn whole(&self, key: &SessionKey) -> Result<StoredSession, SessionError> {
        let stored = self.store.get(key, EventWindow::ALL).await?;
        stored.ok_or_else(|| SessionError::NotFound { key: key.clone() })
    }
}

fn check_version(stored: &StoredSession, version: Version) -> Result<(), SessionError> {
    if version > stored.version {
        return Err(not_in_history(&stored.key, format!("version {version} yet, only {}", stored.version)));
    }
    Ok(())
}

fn not_in_history(key: &SessionKey, what: String) -> SessionError {
    SessionError::NotInHistory { key: key.clone(), what }
}

/// The session's own state after its events up to a version.
fn fold(stored: &StoredSession, version: Version) -> StateMap {
    let mut state = initial(stored);
    for event in stored.events.iter().take_while(|event| event.version <= version) {
        apply(&mut state, &own_changes(event));
    }
    state
}

/// What an event changes of its session's own state.
fn own_changes(event: &Event) -> Delta {
    event.actions.state_delta.split().session
}

/// The session's state at version 0. If it was not kept, it is what no event ever changed.
fn initial(stored: &StoredSession) -> StateMap {
    if let Some(initial) = &stored.initial {
        return Arc::unwrap_or_clone(initial.clone());
    }
    let mut state = (*stored.session).clone();
    for event in stored.events.iter() {
        own_changes(event).iter().for_each(|(key, _)| drop(state.remove(key)));
    }
    state
}

/// What makes `from` into `to`.
fn difference(from: &StateMap, to: &StateMap) -> Delta {
    let mut delta = Delta::new();
    for (key, value) in to.iter().filter(|(key, value)| from.get(*key) != Some(value)) {
        delta.set(key, value.clone());
    }
    from.keys().filter(|key| !to.contains_key(*key)).for_each(|key| delta.remove(key));
    delta
}
