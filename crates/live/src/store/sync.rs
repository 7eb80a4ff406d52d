//! Writing to the store, and reading the changes of other writers.
//!
//! The store computes operations itself. A key that was set after it was read is guarded by the
//! value that was read. If the stored value is another one by then, the event reports the
//! overwrite; with [`OnOverwrite::Refuse`](sessile_session::OnOverwrite) the key is left out,
//! [`LiveEvent::Conflict`] reports both values, and the session continues with the stored one.

use std::collections::BTreeMap;

use sessile_session::{Append, Appended, EventWindow, Expect, SessionError, apply};
use sessile_state::{Change, Delta, Scope, SharedValue};

use super::{StoreLink, is_stored};
use crate::event::LiveEvent;
use crate::shared::Shared;

impl StoreLink {
    /// Stores the waiting events, oldest first.
    pub(super) async fn store_waiting(
        &mut self,
        shared: &Shared,
        problems: &mut Vec<String>,
    ) -> Result<(), SessionError> {
        while let Some(first) = self.waiting.first() {
            if first.event.content.is_none()
                && first.event.actions.state_delta.is_empty()
                && self.waiting.len() > 1
            {
                self.waiting.remove(0); // everything in it was rejected
                continue;
            }
            let expect = Expect { incarnation: Some(self.incarnation), ..Expect::default() };
            let append = Append::new(first.event.clone()).expecting(expect).guarded(first.guards.clone());
            match self.service.append_answering(&self.key, append).await {
                Ok(appended) => self.stored_one(shared, &appended),
                Err(SessionError::Overwritten { current }) => {
                    for (key, found) in current {
                        problems.push(format!(
                            "the state key {key:?} was also changed elsewhere since session {} read it: the stored \
                             value stays, and that of this conversation is not stored; change what several sessions \
                             change with `add`, `append` or `union`, or in `SessionService::transact`",
                            self.key
                        ));
                        self.conflict(shared, &key, found);
                    }
                }
                Err(SessionError::Operation { key, owner, found, source }) => {
                    problems.push(format!("the state key {key:?} of {owner} is not changed: {source}"));
                    self.conflict(shared, &key, found.map(|found| *found));
                }
                // One key that cannot be stored must not keep the rest of the turn from being
                // stored.
                Err(error @ (SessionError::InvalidState { .. } | SessionError::TooLarge { .. })) => {
                    let Some(key) = refused(&error, &first.event.actions.state_delta) else {
                        return Err(error);
                    };
                    let reason = match error {
                        SessionError::InvalidState { reason, .. } => reason,
                        other => other.to_string(),
                    };
                    problems.push(format!("the state key {key:?} is not stored: {reason}"));
                    if let Some(Change::Operate(_)) = self.leave_out(shared, &key) {
                        self.moved.insert(key);
                    }
                }
                // Nor must one message.
                Err(SessionError::InvalidEvent { reason, .. }) if first.event.content.is_some() => {
                    problems.push(format!("the messages of this part of the turn are not stored: {reason}"));
                    if let Some(first) = self.waiting.first_mut() {
                        first.event.content = None;
                        first.event.id = shared.ids.new_id();
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes the first waiting event, which is stored with this result.
    fn stored_one(&mut self, shared: &Shared, appended: &Appended) {
        self.waiting.remove(0);
        let results = &appended.event.actions.state_delta;
        apply(&mut self.stored, results);
        self.moved.extend(results.iter().map(|(key, _)| key.to_owned()));
        let overwrote = appended.event.overwrote().map(SharedValue::to_fields).unwrap_or_default();
        for (key, values) in overwrote {
            let mut values: BTreeMap<String, SharedValue> = values.to_fields().into_iter().collect();
            let (read, found) = (values.remove("read"), values.remove("found"));
            shared.bus.emit(LiveEvent::Overwrote { key: key.into(), read, found });
        }
    }

    /// A change conflicts with the stored value: the change is left out, an event reports both
    /// values, and the session continues with the stored one.
    fn conflict(&mut self, shared: &Shared, key: &str, found: Option<SharedValue>) {
        let own = match self.leave_out(shared, key) {
            Some(Change::Set(value)) => Some(value),
            Some(Change::Operate(_)) => shared.state.without_read_tracking().get_raw(key),
            Some(Change::Remove) | None => None,
        };
        match &found {
            Some(value) => drop(self.stored.insert(key.to_owned(), value.clone())),
            None => drop(self.stored.remove(key)),
        }
        self.moved.insert(key.to_owned());
        shared.bus.emit(LiveEvent::Conflict { key: key.into(), own, stored: found });
    }

    /// Removes a key from the first waiting event and returns its change. The event gets a new id,
    /// because its content is different.
    fn leave_out(&mut self, shared: &Shared, key: &str) -> Option<Change> {
        let first = self.waiting.first_mut()?;
        let change = first.event.actions.state_delta.get(key).cloned();
        first.event.actions.state_delta.retain(|other| other != key);
        first.guards.retain(|other| other != key);
        first.event.id = shared.ids.new_id();
        change
    }

    /// Reads the changes of other writers.
    pub(super) async fn read_changes(&mut self) -> Result<(), SessionError> {
        let Some(session) = self.service.get(&self.key, EventWindow::NONE).await? else {
            return Err(SessionError::NotFound { key: self.key.clone() });
        };
        if self.incarnation != session.incarnation() {
            return Err(SessionError::Replaced { key: self.key.clone() });
        }
        for (key, value) in session.state().iter().filter(|(key, _)| is_stored(key)) {
            if self.stored.get(key) != Some(value) {
                self.stored.insert(key.to_owned(), value.clone());
                self.moved.insert(key.to_owned());
            }
        }
        let gone = self.stored.keys().filter(|key| !session.state().contains(key));
        for key in gone.cloned().collect::<Vec<_>>() {
            self.stored.remove(&key);
            self.moved.insert(key);
        }
        Ok(())
    }

    /// Copies the stored values that changed to the session's state, with the changes that are not
    /// stored yet on top.
    pub(super) fn show_moved(&mut self) {
        let mut values = BTreeMap::new();
        for key in std::mem::take(&mut self.moved) {
            let mut shown = self.stored.get(&key).cloned();
            for waiting in &self.waiting {
                let change = waiting.event.actions.state_delta.get(&key);
                // A change that cannot be applied is reported when it is committed.
                if let Some(Ok(after)) = change.map(|change| change.apply(shown.as_ref())) {
                    shown = after;
                }
            }
            values.insert(key, shown);
        }
        self.changes.recorder.absorb(values);
    }
}

/// The key to leave out because of an error: the one that cannot be stored or, if a scope would
/// exceed its limit, the one with the largest change.
fn refused(error: &SessionError, delta: &Delta) -> Option<String> {
    match error {
        SessionError::InvalidState { key, .. } => delta.get(key).map(|_| key.clone()),
        SessionError::TooLarge { scope, .. } => {
            let size = |change: &Change| match change {
                Change::Set(value) => value.json_size(),
                Change::Remove => 0,
                Change::Operate(operations) => {
                    operations.iter().flat_map(|one| one.items()).map(|item| 1 + item.json_size()).sum()
                }
            };
            let changes = delta.iter().filter(|(key, _)| Scope::of(key).0 == *scope);
            let largest =
                changes.max_by_key(|(_, change)| size(change)).filter(|(_, change)| size(change) > 0);
            largest.map(|(key, _)| key.to_owned())
        }
        _ => None,
    }
}
