//! The state that sessions share, and its newest changes.

use std::collections::VecDeque;
use std::sync::Arc;

use sessile_state::{Change, Delta, Scope};

use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::scope_change::{ChangedBy, ScopeChange, Undo};
use crate::scope_write::ScopeState;
use crate::store::{StateMap, Version, apply};

/// State that sessions share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) version: Version,
    pub(super) values: Values,
    /// The newest changes, oldest first.
    pub(super) changes: VecDeque<Remembered>,
}

/// A change of shared state. It shares what is there already, because one is made with almost every event.
pub(super) struct Remembered {
    pub(super) version: Version,
    pub(super) time: f64,
    pub(super) source: Source,
    pub(super) undo: Undo,
}

/// Where a change of shared state came from.
pub(super) enum Source {
    /// An event of a session, which says what changed. It stays in memory as long as the change is remembered, also
    /// if its session is deleted.
    Event(SessionKey, Arc<Event>),
    Creation(SessionKey, Delta),
    Request(ChangedBy, Delta),
}

impl Remembered {
    /// The change of a scope as it is read.
    pub(super) fn told(&self, scope: Scope) -> ScopeChange {
        let (by, change) = match &self.source {
            Source::Event(key, event) => {
                let delta = event.intent().actions.state_delta.split();
                let change = if scope == Scope::App { delta.app } else { delta.user };
                (ChangedBy::event(key, &event.id), change)
            }
            Source::Creation(key, change) => (ChangedBy::creation(key), change.clone()),
            Source::Request(by, change) => (by.clone(), change.clone()),
        };
        ScopeChange { version: self.version, time: self.time, by, change, undo: self.undo.clone() }
    }

    /// What a write with this request id was meant to change, if this is it.
    pub(super) fn of_request(&self, id: &str) -> Option<&Delta> {
        match &self.source {
            Source::Request(by, change) if by.is_request(id) => Some(change),
            _ => None,
        }
    }
}

/// How many changes of shared state are remembered.
pub(super) const REMEMBERED: usize = 1000;

/// The values of a scope.
#[derive(Default)]
pub(super) struct Values {
    pub(super) state: Arc<StateMap>,
    /// How large they are as JSON, if it was needed since they last changed without it.
    pub(super) bytes: Option<usize>,
}

impl Shared {
    pub(super) fn read(&self) -> ScopeState {
        ScopeState { version: self.version, state: self.values.state.clone() }
    }

    /// Makes a change that was computed before, and remembers it. Without `undo` it only sets and removes keys.
    pub(super) fn write(
        &mut self,
        results: &Delta,
        undo: Option<Undo>,
        time: f64,
        limit: Option<usize>,
        source: impl FnOnce() -> Source,
    ) {
        if results.is_empty() {
            return;
        }
        self.version += 1;
        let undo = undo.unwrap_or_else(|| Undo::of_plain(results, &self.values.state));
        self.values.apply(results, limit);
        if self.changes.len() == REMEMBERED {
            self.changes.pop_front();
        }
        self.changes.push_back(Remembered { version: self.version, time, source: source(), undo });
    }
}

impl Values {
    pub(super) fn apply(&mut self, results: &Delta, limit: Option<usize>) {
        if results.is_empty() {
            return;
        }
        self.bytes = limit.map(|_| self.size_with(results));
        apply(Arc::make_mut(&mut self.state), results);
    }

    /// Refuses results after which the values would be larger than the limit, unless they do not grow.
    pub(super) fn check_size(
        &self,
        scope: Scope,
        results: &Delta,
        limit: Option<usize>,
    ) -> Result<(), SessionError> {
        let Some(limit) = limit else { return Ok(()) };
        let size = self.size_with(results);
        match size > limit && size > self.size() {
            true => Err(SessionError::TooLarge { scope, size, limit }),
            false => Ok(()),
        }
    }

    pub(super) fn size(&self) -> usize {
        let count = || self.state.iter().map(|(key, value)| key.len() + value.json_size()).sum();
        self.bytes.unwrap_or_else(count)
    }

    /// How large the values are after these results; only what changes is looked at.
    pub(super) fn size_with(&self, results: &Delta) -> usize {
        let mut size = self.size();
        for (key, change) in results.iter() {
            size -= self.state.get(key).map_or(0, |value| key.len() + value.json_size());
            if let Change::Set(value) = change {
                size += key.len() + value.json_size();
            }
        }
        size
    }
}
