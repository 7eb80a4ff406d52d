//! Writing to the store, and taking in what others wrote: nobody's write is written over.
//!
//! Whoever commits first keeps his value. A session that changed a key which was changed in the store since it last looked
//! is told so, with both values, and goes on with the stored one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sessile_session::{EventWindow, Expect, Session, SessionError, Version};
use sessile_state::{Change, Delta, Scope, SharedValue};

use super::{StoreLink, apply, is_stored};
use crate::event::LiveEvent;
use crate::shared::Shared;

/// How often something is tried again that others keep from happening.
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
            let delta = event.delta();
            let expect = expected(&delta, self.versions);
            match self.service.append_expecting(&self.key, event.clone(), expect).await {
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
                // One key must not keep the rest from being stored.
                Err(SessionError::InvalidState { key, reason }) => {
                    problems.push(format!("the state key {key:?} is not stored: {reason}"));
                    let mut delta = delta;
                    let Some(Change::Set(value)) = delta.get(&key).cloned() else {
                        return Err(SessionError::InvalidState { key, reason });
                    };
                    delta.retain(|other| other != key);
                    event.set_delta(&delta);
                    event.id = shared.ids.new_id();
                    self.refused.insert(key, value);
                }
                // Nor what was said keep what comes after it.
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

    /// Notes the versions after an append of this session. If others wrote too, the old ones stay, and the next append
    /// finds out.
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
            for (key, change) in made.iter() {
                self.settle(key, now.get(key), change, shared, problems);
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

    /// A key of the session's state has become what others made of it; `own` is what it held before.
    fn settle(
        &mut self,
        key: &str,
        own: Option<&SharedValue>,
        change: &Change,
        shared: &Shared,
        problems: &mut Vec<String>,
    ) {
        let theirs = match change {
            Change::Set(value) => Some(value),
            Change::Remove => None,
        };
        let changed_here =
            own != self.stored.get(key) || self.waiting.iter().any(|event| event.delta().get(key).is_some());
        if changed_here && own != theirs {
            for event in &mut self.waiting {
                let mut delta = event.delta();
                delta.retain(|other| other != key);
                event.set_delta(&delta);
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

/// The versions that must not have changed: those of the scopes that a delta changes.
fn expected(delta: &Delta, known: Expect) -> Expect {
    let touched: BTreeSet<Scope> = delta.iter().map(|(key, _)| Scope::of(key).0).collect();
    let of = |scope, version: Option<Version>| version.filter(|_| touched.contains(&scope));
    Expect {
        session: of(Scope::Session, known.session),
        user: of(Scope::User, known.user),
        app: of(Scope::App, known.app),
    }
}
