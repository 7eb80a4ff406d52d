//! Writing to the store, and taking in what others wrote.
//!
//! Operations are computed by the store, and a key that was set after it was read carries the value
//! that was read. If the store holds another one by then, the event reports it, or, with
//! [`OnOverwrite::Refuse`](sessile_session::OnOverwrite), the key is left out, the application is
//! told with both values, and the session goes on with the stored one.

use std::collections::BTreeMap;

use sessile_session::{Append, Appended, EventWindow, Expect, SessionError, apply};
use sessile_state::{Change, Delta, Scope, SharedValue};

use super::{StoreLink, is_stored};
use crate::event::LiveEvent;
use crate::shared::Shared;

impl StoreLink {
    /// Stores the events that wait, oldest first.
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
                self.waiting.remove(0); // all that it carried was refused
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
                // The same holds for a message that cannot be stored.
                Err(SessionError::InvalidEvent { reason, .. }) if first.event.content.is_some() => {
                    problems.push(format!("what was said in this part of the turn is not stored: {reason}"));
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

    /// The first of the waiting events is stored, and this is what it came to.
    fn stored_one(&mut self, shared: &Shared, appended: &Appended) {
        self.waiting.remove(0);
        let results = &appended.event.actions.state_delta;
        apply(&mut self.stored, results);
        self.moved.extend(results.iter().map(|(key, _)| key.to_owned()));
        let overwrote = appended.event.overwrote().map(SharedValue::to_fields).unwrap_or_default();
        for (key, told) in overwrote {
            let mut values: BTreeMap<String, SharedValue> = told.to_fields().into_iter().collect();
            let (read, found) = (values.remove("read"), values.remove("found"));
            shared.bus.emit(LiveEvent::Overwrote { key: key.into(), read, found });
        }
    }

    /// A key cannot be changed because of what is stored: its change is left out, the application
    /// is told with both values, and the stored one stays.
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

    /// Takes a key out of the first waiting event, which becomes another event by that; returns
    /// what it was to do.
    fn leave_out(&mut self, shared: &Shared, key: &str) -> Option<Change> {
        let first = self.waiting.first_mut()?;
        let change = first.event.actions.state_delta.get(key).cloned();
        first.event.actions.state_delta.retain(|other| other != key);
        first.guards.retain(|other| other != key);
        first.event.id = shared.ids.new_id();
        change
    }

    /// Notes what others changed in the store.
    pub(super) async fn take_in(&mut self) -> Result<(), SessionError> {
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

    /// Brings the stored values that have moved into the session's state, below the changes that
    /// are not stored yet.
    pub(super) fn show_moved(&mut self) {
        let mut values = BTreeMap::new();
        for key in std::mem::take(&mut self.moved) {
            let mut shown = self.stored.get(&key).cloned();
            for waiting in &self.waiting {
                let change = waiting.event.actions.state_delta.get(&key);
                // What cannot be applied is refused when it is committed, and told then.
                if let Some(Ok(after)) = change.map(|change| change.apply(shown.as_ref())) {
                    shown = after;
                }
            }
            values.insert(key, shown);
        }
        self.changes.recorder.absorb(values);
    }
}

/// The key to leave out because of an error: the one that cannot be stored, or the one of a scope
/// that would exceed its limit whose change is the largest.
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
