//! One session: its state and its events.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use foldhash::quality::RandomState;
use sessile_state::Delta;

use super::place::{Name, Place};
use super::shared::{Shared, Values};
use crate::commit::{Answer, Appended, Scopes};
use crate::event::Event;
use crate::key::SessionKey;
use crate::state_map::StateMap;
use crate::store::next_update_time;
use crate::stored_session::{NewSession, SessionEvent, StoredSession};
use crate::version::{Incarnation, Version};
use crate::window::EventWindow;

pub(super) struct Row {
    pub(super) name: Arc<Name>,
    pub(super) incarnation: Incarnation,
    pub(super) update_time: f64,
    /// The time by which it is sorted in lists, which may be out of date.
    listed_time: f64,
    pub(super) initial: Arc<StateMap>,
    pub(super) values: Values,
    /// The events up to the last time that all of them were read, shared with readers.
    pub(super) read: Arc<Vec<SessionEvent>>,
    /// The events since then.
    pub(super) new: Vec<SessionEvent>,
    /// Ids are chosen by callers; the hasher's random seed prevents hash flooding.
    pub(super) by_id: HashMap<ById, Version, RandomState>,
}

/// An event that is found by its id.
pub(super) struct ById(pub(super) Arc<Event>);

impl Row {
    pub(super) fn new(new: &NewSession) -> Self {
        let (key, initial) = (&new.key, Arc::new(new.session.clone()));
        Self {
            name: Arc::new(Name { user: key.user().to_owned(), id: key.id().to_owned() }),
            incarnation: new.incarnation,
            update_time: new.time,
            listed_time: new.time,
            initial: initial.clone(),
            values: Values { state: initial, bytes: None },
            read: Arc::default(),
            new: Vec::new(),
            by_id: HashMap::default(),
        }
    }

    /// The answer to a commit whose event is stored as this version; `sent` is the one that was
    /// known already.
    pub(super) fn appended(
        &mut self,
        answer: Answer,
        event: Arc<Event>,
        version: Version,
        sent: Option<Arc<Event>>,
        app: &Shared,
        user: &Shared,
    ) -> Appended {
        let place = |version: Version| usize::try_from(version).unwrap_or(usize::MAX);
        let between = match answer.since {
            None => Vec::new(),
            Some(since) => {
                let known = if since.incarnation == self.incarnation { since.version } else { 0 };
                let end = place(version) - 1;
                self.between(place(known).min(end), end).collect()
            }
        };
        let state = answer.state.then(|| Scopes {
            session: self.values.state.clone(),
            user: user.values.state.clone(),
            user_version: user.version,
            app: app.values.state.clone(),
            app_version: app.version,
        });
        Appended {
            is_known: sent.is_some(),
            sent,
            version,
            update_time: self.update_time,
            incarnation: self.incarnation,
            event,
            between,
            state,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.read.len() + self.new.len()
    }

    pub(super) fn version(&self) -> Version {
        self.len() as Version
    }

    /// Its position in lists, which may be out of date.
    pub(super) fn listed_place(&self) -> Place {
        Place { update_time: self.listed_time, name: self.name.clone() }
    }

    /// Whether its position in lists is out of date. The time of a session grows with every change.
    pub(super) fn is_moved(&self) -> bool {
        self.listed_time < self.update_time
    }

    /// Updates its position, and returns the new one for the caller to insert into the lists.
    pub(super) fn move_in_lists(&mut self) -> Place {
        self.listed_time = self.update_time;
        self.listed_place()
    }

    pub(super) fn push(&mut self, event: Arc<Event>, delta: &Delta) {
        self.by_id.insert(ById(event.clone()), self.version() + 1);
        self.push_new(event, delta, None);
    }

    /// Adds an event whose id is noted already.
    pub(super) fn push_new(&mut self, event: Arc<Event>, results: &Delta, limit: Option<usize>) {
        self.update_time = next_update_time(self.update_time, event.time());
        self.values.apply(results, limit);
        let version = self.version() + 1;
        self.new.push(SessionEvent { version, event });
    }

    pub(super) fn read(
        &self,
        app: &Shared,
        user: &Shared,
        key: SessionKey,
        events: Arc<Vec<SessionEvent>>,
    ) -> StoredSession {
        StoredSession {
            key,
            incarnation: self.incarnation,
            version: self.version(),
            app_version: app.version,
            user_version: user.version,
            update_time: self.update_time,
            session: self.values.state.clone(),
            app: app.values.state.clone(),
            user: user.values.state.clone(),
            initial: Some(self.initial.clone()),
            events,
        }
    }

    /// Version `n` is at index `n - 1`, so versions are found without a search.
    pub(super) fn window(&mut self, window: EventWindow) -> Arc<Vec<SessionEvent>> {
        let length = self.len();
        let place = |version: Version| usize::try_from(version).unwrap_or(usize::MAX).min(length);
        let start = window.after_version.map_or(0, place);
        let end = window.until_version.map_or(length, place).max(start);
        let last = window.last.unwrap_or(usize::MAX);
        if window.after_time.is_none() {
            let start = start.max(end.saturating_sub(last));
            return if end - start == length {
                self.all()
            } else {
                Arc::new(self.between(start, end).collect())
            };
        }
        let mut passing: Vec<_> =
            self.between(start, end).rev().filter(|event| window.admits(event)).take(last).collect();
        passing.reverse();
        Arc::new(passing)
    }

    /// All events, shared. New events are added to the shared list; if a reader still holds that,
    /// the list of pointers is copied once.
    pub(super) fn all(&mut self) -> Arc<Vec<SessionEvent>> {
        if !self.new.is_empty() {
            Arc::make_mut(&mut self.read).append(&mut self.new);
        }
        self.read.clone()
    }

    pub(super) fn between(&self, start: usize, end: usize) -> impl DoubleEndedIterator<Item = SessionEvent> {
        let old = self.read.len();
        let read = &self.read[start.min(old)..end.min(old)];
        let new = &self.new[start.max(old) - old..end.max(old) - old];
        read.iter().chain(new).cloned()
    }
}

impl Hash for ById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl Borrow<str> for ById {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl PartialEq for ById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for ById {}
