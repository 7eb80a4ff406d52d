//! Writing to the store, and taking in what others wrote, without overwriting it.
//!
//! The first commit wins. If a key was changed both here and in the store since this session last looked, the
//! application is told with both values, and the session goes on with the stored one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sessile_session::{Append, EventWindow, Expect, Session, SessionError, Version, apply};
use sessile_state::{Delta, Scope, SharedValue};

use super::{StoreLink, is_stored};
use crate::event::LiveEvent;
use crate::shared::Shared;

/// How often an append or an update of the state is retried while other writers interfere.
const ATTEMPTS: u64 = 1000;

impl StoreLink {
    /// Stores the events that wait, oldest first.
    pub(super) async fn store_waiting(
        &mut self,
        shared: &Shared,
        problems: &mut Vec<String>,
    ) -> Result<(), SessionError> {
        let mut conflicts = 0;
        while let Some(event) = self.waiting.first_mut() {
            let delta = event.actions.state_delta.clone();
            let expect = expected(&delta, self.versions);
            match self.service.append_to(&self.key, Append::new(event.clone()).expecting(expect)).await {
                Ok(version) => {
                    self.waiting.remove(0);
                    apply(&mut self.stored, &delta);
                    self.advance(expect, version);
                }
                Err(SessionError::Conflict { .. }) if conflicts < ATTEMPTS => {
                    conflicts += 1;
                    self.take_in(shared, problems).await?;
                    tokio::time::sleep(Duration::from_millis(conflicts.min(20))).await;
                }
                // One key that cannot be stored must not keep the rest of the turn from being stored.
                Err(error @ (SessionError::InvalidState { .. } | SessionError::TooLarge { .. })) => {
                    let Some((key, value)) = refused(&error, &delta) else { return Err(error) };
                    let reason = match error {
                        SessionError::InvalidState { reason, .. } => reason,
                        other => other.to_string(),
                    };
                    problems.push(format!("the state key {key:?} is not stored: {reason}"));
                    event.actions.state_delta.retain(|other| other != key);
                    event.id = shared.ids.new_id();
                    self.refused.insert(key, value);
                }
                // The same holds for a message that cannot be stored.
                Err(SessionError::InvalidEvent { reason, .. }) if event.content.is_some() => {
                    problems.push(format!("what was said in this part of the turn is not stored: {reason}"));
                    event.content = None;
                    event.id = shared.ids.new_id();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Notes the versions after an append of this session. If other writers committed in between, the known versions
    /// stay as they are, so that the next append is refused and brings the session up to date.
    fn advance(&mut self, expected: Expect, version: Option<Version>) {
        if let (Some(before), Some(now)) = (self.versions.session, version)
            && now == before + 1
        {
            self.versions.session = Some(now);
        }
        self.versions.user = expected.user.map(|version| version + 1).or(self.versions.user);
        self.versions.app = expected.app.map(|version| version + 1).or(self.versions.app);
    }

    /// Brings into state what others changed. Where this session changed the same key, the stored value stays, and the
    /// application is told.
    pub(super) async fn take_in(
        &mut self,
        shared: &Shared,
        problems: &mut Vec<String>,
    ) -> Result<(), SessionError> {
        let Some(session) = self.service.get(&self.key, EventWindow::NONE).await? else {
            return Err(SessionError::NotFound { key: self.key.clone() });
        };
        if self.versions.incarnation != Some(session.incarnation()) {
            return Err(SessionError::Replaced { key: self.key.clone() });
        }
        let mut open = self.changed_by_others(&session);
        for _ in 0..ATTEMPTS {
            if open.is_empty() {
                self.versions = session.versions();
                return Ok(());
            }
            let now: BTreeMap<String, SharedValue> = shared
                .state
                .snapshot()
                .iter()
                .filter(|(key, _)| open.get(key).is_some())
                .map(|(key, value)| (key.to_owned(), value))
                .collect();
            let made = shared.state.try_apply_unchanged(&open, &now).map_err(|error| {
                SessionError::Backend { action: "bring the state up to date", source: Box::new(error) }
            })?;
            for (key, _) in made.iter() {
                self.settle(key, now.get(key), session.state().get_raw(key), shared, problems);
            }
            open.retain(|key| made.get(key).is_none());
        }
        let names: Vec<_> = open.iter().map(|(key, _)| key).collect();
        Err(SessionError::Backend {
            action: "bring the state up to date",
            source: format!("other tasks change {} all the time", names.join(", ")).into(),
        })
    }

    /// What is stored now and was not when this session last looked.
    fn changed_by_others(&self, session: &Session) -> Delta {
        let mut delta = Delta::new();
        for (key, value) in session.state().iter().filter(|(key, _)| is_stored(key)) {
            if self.stored.get(key) != Some(value) {
                delta.set(key, value.clone());
            }
        }
        for key in self.stored.keys().filter(|key| !session.state().contains(key)) {
            delta.remove(key);
        }
        delta
    }

    /// A key of the session's state has become what others made of it, `theirs`; `own` is what it held before.
    fn settle(
        &mut self,
        key: &str,
        own: Option<&SharedValue>,
        theirs: Option<&SharedValue>,
        shared: &Shared,
        problems: &mut Vec<String>,
    ) {
        let changed_here = own != self.stored.get(key)
            || self.waiting.iter().any(|event| event.actions.state_delta.get(key).is_some());
        if changed_here && own != theirs {
            for event in &mut self.waiting {
                event.actions.state_delta.retain(|other| other != key);
            }
            shared.bus.emit(LiveEvent::Conflict {
                key: key.into(),
                own: own.cloned(),
                stored: theirs.cloned(),
            });
            problems.push(format!(
                "the state key {key:?} was also changed elsewhere since the last turn of session {}: the stored value \
                 stays, and that of this conversation is not stored; change what several sessions change with \
                 `SessionService::transact`",
                self.key
            ));
        }
        match theirs {
            Some(value) => drop(self.stored.insert(key.to_owned(), value.clone())),
            None => drop(self.stored.remove(key)),
        }
    }
}

/// The key to leave out because of an error, with its value: the one that cannot be stored, or the largest one of a
/// scope that would exceed its limit.
fn refused(error: &SessionError, delta: &Delta) -> Option<(String, SharedValue)> {
    let values = || delta.values().map(|(key, value)| (key.to_owned(), value.clone()));
    match error {
        SessionError::InvalidState { key, .. } => values().find(|(name, _)| name == key),
        SessionError::TooLarge { scope, .. } => {
            values().filter(|(key, _)| Scope::of(key).0 == *scope).max_by_key(|(_, value)| value.json_size())
        }
        _ => None,
    }
}

/// What must not have changed: the session itself, and the versions of the scopes that a delta changes.
fn expected(delta: &Delta, known: Expect) -> Expect {
    let touched: BTreeSet<Scope> = delta.iter().map(|(key, _)| Scope::of(key).0).collect();
    let of = |scope, version: Option<Version>| version.filter(|_| touched.contains(&scope));
    Expect {
        incarnation: known.incarnation,
        session: of(Scope::Session, known.session),
        user: of(Scope::User, known.user),
        app: of(Scope::App, known.app),
    }
}
