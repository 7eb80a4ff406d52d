use std::sync::Arc;

use sessile_state::{Change, Scope, StateSchema};

use super::SessionService;
use super::check::{Notes, prepared};
use super::overwrites::{Overwrites, report};
use super::sameness::{LeftOut, is_same};
use crate::commit::{Answer, Appended, Commit, Expect, Since};
use crate::error::SessionError;
use crate::event::Event;
use crate::guard::{Guards, OnOverwrite};
use crate::key::{ScopeKey, SessionKey};
use crate::session::Session;
use crate::stored_session::{SessionEvent, StoredSession};
use crate::version::Version;
use crate::window::EventWindow;

/// What happens when the session has changed since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The append is refused.
    #[default]
    Refuse,
    /// The changes are applied, key by key, to what is stored now.
    Merge,
}

/// An event to be appended, and the conditions for it.
#[derive(Debug, Clone, Default)]
pub struct Append {
    /// The event.
    pub event: Event,
    /// What must be stored for it to be committed.
    pub expect: Expect,
    /// The values that its changes were computed from.
    pub guards: Guards,
    /// What its writers overwrote of each other's changes, for a caller that merged the changes of
    /// several writers into one event. The stored event reports it together with what the guards
    /// found.
    pub overwrote: Overwrites,
}

impl Append {
    /// An event without conditions.
    pub fn new(event: Event) -> Self {
        Self { event, ..Self::default() }
    }

    /// On the condition that this is what is stored.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect = expect;
        self
    }

    /// With what its writers overwrote of each other's changes. It cannot be combined with guards
    /// that report: their report would replace this one.
    #[must_use]
    pub fn overwriting(mut self, overwrote: Overwrites) -> Self {
        self.overwrote = overwrote;
        self
    }

    /// With the values that its changes were computed from.
    #[must_use]
    pub fn guarded(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }
}

impl From<Event> for Append {
    fn from(event: Event) -> Self {
        Self::new(event)
    }
}

impl SessionService {
    /// Appends an event to a session that the caller holds, and updates that session. Returns the
    /// event as it was stored; a partial event is returned unchanged, and neither stored nor
    /// applied.
    ///
    /// `user:` and `app:` keys that the event sets or removes are guarded with the values of the
    /// caller's session: if another session has changed them since, the event reports it, see
    /// [`Event::overwrote`], or the append is refused, depending on
    /// [`with_on_overwrite`](Self::with_on_overwrite).
    ///
    /// # Errors
    ///
    /// - [`SessionError::Conflict`] if the session was changed since it was read,
    ///   [`SessionError::Replaced`] if it was deleted and created again;
    /// - [`SessionError::NotFound`] if there is no such session;
    /// - [`SessionError::EventConflict`] if the session has another event with this id;
    /// - [`SessionError::Operation`] if an operation cannot be applied to what is stored;
    /// - [`SessionError::InvalidId`], [`SessionError::InvalidState`] or
    ///   [`SessionError::InvalidEvent`] if something cannot be stored; [`SessionError::TooLarge`]
    ///   if a scope would exceed its limit.
    pub async fn append(&self, session: &mut Session, event: Event) -> Result<Arc<Event>, SessionError> {
        self.append_with(session, event, OnConflict::Refuse).await
    }

    /// [`append`](Self::append), with a choice of what happens when the session was changed.
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
        let guards = read_in_hand(session, &event, self.on_overwrite);
        self.append_guarded(session, event, on_conflict, guards).await
    }

    /// [`append_with`](Self::append_with), with guards of the caller's choice.
    ///
    /// # Errors
    ///
    /// As [`append_with`](Self::append_with); [`SessionError::Overwritten`] if a guard refuses the
    /// event.
    pub async fn append_guarded(
        &self,
        session: &mut Session,
        event: Event,
        on_conflict: OnConflict,
        guards: Guards,
    ) -> Result<Arc<Event>, SessionError> {
        let expect = match on_conflict {
            OnConflict::Refuse => Expect::session(session.incarnation(), session.version()),
            OnConflict::Merge => Expect::default(),
        };
        let append = Append::new(event).expecting(expect).guarded(guards);
        let append = self.reduced(session.key().app(), append)?;
        self.append_as(session, append).await
    }

    /// Appends an event to a session that the caller holds, under conditions of the caller's
    /// choice, and updates the session. The session's incarnation is always expected.
    ///
    /// # Errors
    ///
    /// As [`append_guarded`](Self::append_guarded).
    pub async fn append_as(
        &self,
        session: &mut Session,
        mut append: Append,
    ) -> Result<Arc<Event>, SessionError> {
        if append.event.is_partial() {
            return Ok(Arc::new(append.event));
        }
        let (incarnation, version) = (session.incarnation(), session.version());
        append.expect.incarnation = Some(incarnation);
        let answer = Answer { since: Some(Since { incarnation, version }), state: false };
        let key = session.key().clone();
        let appended = self.commit(&key, append, answer).await?;
        let event = appended.event.clone();
        session.take_in(appended);
        Ok(event)
    }

    /// Appends an event to the current version of the session; returns the new version, or `None`
    /// for a partial event, which is neither stored nor applied.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append), but never [`SessionError::Conflict`] without an expectation.
    pub async fn append_to(
        &self,
        key: &SessionKey,
        append: impl Into<Append>,
    ) -> Result<Option<Version>, SessionError> {
        let append = append.into();
        match append.event.is_partial() {
            true => Ok(None),
            false => {
                let append = self.reduced(key.app(), append)?;
                Ok(Some(self.commit(key, append, Answer::default()).await?.version))
            }
        }
    }

    /// Appends an event to the current version of the session, and returns all that is known of the
    /// commit. It needs no further read.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append); [`SessionError::InvalidEvent`] for a partial event.
    pub async fn append_answering(&self, key: &SessionKey, append: Append) -> Result<Appended, SessionError> {
        self.commit(key, self.reduced(key.app(), append)?, Answer::default()).await
    }

    /// Appends an event to the current version of the session, and returns the session as of that
    /// commit, with a window of its events up to it. For an event that was appended before, the
    /// version and the changed values are those of the first time; everything else is current.
    ///
    /// # Errors
    ///
    /// As [`append`](Self::append). No error can occur after the event was committed: what the
    /// response needs is read before the commit, or in its transaction.
    pub async fn change(
        &self,
        key: &SessionKey,
        append: Append,
        window: EventWindow,
    ) -> Result<Session, SessionError> {
        let missing = || SessionError::NotFound { key: key.clone() };
        let before = self.store.get(key, window).await?.ok_or_else(missing)?;
        let since = Since { incarnation: before.incarnation, version: before.version };
        let answer = Answer { since: Some(since), state: true };
        let appended = self.commit(key, self.reduced(key.app(), append)?, answer).await?;
        if appended.is_known && appended.version <= before.version {
            // Nothing was committed now, so this read may fail.
            let until = EventWindow { until_version: Some(appended.version), ..window };
            let stored = self.store.get(key, until).await?.ok_or_else(missing)?;
            return Ok(as_of(stored.events.to_vec(), before, appended));
        }
        let known: &[SessionEvent] = match appended.incarnation == before.incarnation {
            true => &before.events,
            false => &[],
        };
        let own = SessionEvent { version: appended.version, event: appended.event.clone() };
        let new = appended.between.iter().chain([&own]).filter(|event| window.admits(event));
        let mut events: Vec<SessionEvent> = known.iter().chain(new).cloned().collect();
        let extra = window.last.map_or(0, |last| events.len().saturating_sub(last));
        events.drain(..extra);
        Ok(as_of(events, before, appended))
    }

    /// The path to the store for every event of an existing session that comes from a caller.
    pub(super) async fn commit(
        &self,
        key: &SessionKey,
        append: Append,
        answer: Answer,
    ) -> Result<Appended, SessionError> {
        self.commit_checked(key, append, answer, self.checking(key.app())).await
    }

    /// The single path to the store for every event of an existing session. Without a schema
    /// nothing is checked: a rewind may restore state that the schema would refuse.
    pub(super) async fn commit_checked(
        &self,
        key: &SessionKey,
        append: Append,
        answer: Answer,
        schema: Option<&StateSchema>,
    ) -> Result<Appended, SessionError> {
        let Append { mut event, expect, guards, overwrote } = append;
        if event.is_partial() {
            let reason = "it is partial, and partial events are never stored".to_owned();
            return Err(SessionError::InvalidEvent { id: event.id, reason });
        }
        let left_out = LeftOut::of(&event);
        self.complete(&mut event);
        let delta = prepared(&mut event, Notes::Refused, schema)?;
        report(&mut event, &overwrote);
        let changes_shared = (!delta.user.is_empty(), !delta.app.is_empty());
        let commit = Commit {
            key: key.clone(),
            event: Arc::new(event),
            delta,
            expect,
            guards: guards.split(),
            max_scope_bytes: self.max_scope_bytes,
            answer,
        };
        let appended = self.store.append(commit).await?;
        if !appended.is_known {
            self.watchers.sessions.notify(|| key);
            self.shared_changed(key, changes_shared);
            self.overwrites.warn(key, &appended.event);
        } else if !appended.sent.as_ref().is_some_and(|sent| is_same(sent, left_out, &appended.event)) {
            return Err(SessionError::EventConflict { key: key.clone(), id: appended.event.id.clone() });
        }
        Ok(appended)
    }

    /// Notifies watchers of the state of a session's user and application that it changed.
    pub(super) fn shared_changed(&self, key: &SessionKey, (user, app): (bool, bool)) {
        if user {
            self.watchers.scopes.notify(|| ScopeKey::user_of(key));
        }
        if app {
            self.watchers.scopes.notify(|| ScopeKey::app_of(key));
        }
        if user || app {
            self.trim_in_passing();
        }
    }

    /// Gives the event an id and a time, if it has none.
    pub(super) fn complete(&self, event: &mut Event) {
        if event.id.is_empty() {
            event.id = self.ids.new_id();
        }
        if event.timestamp.is_none() {
            event.timestamp = Some(self.clock.now());
        }
    }
}

/// Guards of the shared keys that an event sets or removes, with the values in the caller's
/// session.
fn read_in_hand(session: &Session, event: &Event, on_overwrite: OnOverwrite) -> Guards {
    let mut guards = Guards::new(on_overwrite);
    for (key, change) in event.actions.state_delta.iter() {
        let is_shared = matches!(Scope::of(key).0, Scope::User | Scope::App);
        if is_shared && !matches!(change, Change::Operate(_)) {
            guards.insert(key.to_owned(), session.state().get_raw(key).cloned());
        }
    }
    guards
}

/// The session as of a commit.
fn as_of(events: Vec<SessionEvent>, before: StoredSession, appended: Appended) -> Session {
    let Appended { version, update_time, incarnation, event, state, is_known, .. } = appended;
    let state = state.unwrap_or_else(|| (&before).into());
    let stored = StoredSession {
        key: before.key,
        incarnation,
        version,
        update_time,
        app_version: state.app_version,
        user_version: state.user_version,
        session: state.session,
        app: state.app,
        user: state.user,
        initial: None,
        events: Arc::new(events),
    };
    let mut session = Session::from(stored);
    if is_known {
        session.apply(&event.actions.state_delta);
    }
    session
}
