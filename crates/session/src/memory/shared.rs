//! The state that sessions share, and its newest changes.

use std::collections::VecDeque;
use std::sync::Arc;

use sessile_state::{Change, Delta, Scope};

use crate::error::SessionError;
use crate::event::Event;
use crate::key::SessionKey;
use crate::scope_change::{Before, ChangedBy, OverwriteNotes, ScopeChange, Undo};
use crate::scope_write::ScopeState;
use crate::state_map::{StateMap, apply};
use crate::version::Version;
use crate::window::ChangeWindow;

/// State that sessions share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) version: Version,
    pub(super) values: Values,
    /// The newest changes, oldest first.
    pub(super) changes: VecDeque<Remembered>,
}

/// A change of shared state. It shares data with the event, because almost every event makes one.
pub(super) struct Remembered {
    pub(super) version: Version,
    pub(super) time: f64,
    pub(super) source: Source,
    pub(super) undo: UndoNote,
}

/// What undoes a change.
pub(super) enum UndoNote {
    /// The values before of keys that were set and removed.
    Plain(Before),
    /// That of operations, which few changes have.
    Computed(Box<Undo>),
}

impl UndoNote {
    fn to_undo(&self) -> Undo {
        match self {
            Self::Plain(before) => Undo { before: before.clone(), ..Undo::default() },
            Self::Computed(undo) => Undo::clone(undo),
        }
    }
}

impl From<Undo> for UndoNote {
    fn from(undo: Undo) -> Self {
        match undo.added.is_empty() && undo.fields.is_empty() && !undo.unknown {
            true => Self::Plain(undo.before),
            false => Self::Computed(Box::new(undo)),
        }
    }
}

/// Where a change of shared state came from.
pub(super) enum Source {
    /// An event of a session, which says what changed. It stays in memory as long as the change is
    /// remembered, also if its session is deleted.
    Event(SessionKey, Arc<Event>),
    Creation(SessionKey, Delta),
    Request(ChangedBy, Delta, OverwriteNotes),
}

impl Remembered {
    /// The change of a scope as it is read.
    pub(super) fn to_change(&self, scope: Scope) -> ScopeChange {
        let mut overwrote = OverwriteNotes::new();
        let (by, change) = match &self.source {
            Source::Event(key, event) => {
                let delta = event.intent().actions.state_delta.split();
                let change = if scope == Scope::App { delta.app } else { delta.user };
                (ChangedBy::event(key, event), change)
            }
            Source::Creation(key, change) => (ChangedBy::creation(key), change.clone()),
            Source::Request(by, change, reported) => {
                overwrote.clone_from(reported);
                (by.clone(), change.clone())
            }
        };
        let (version, time, undo) = (self.version, self.time, self.undo.to_undo());
        ScopeChange { version, time, by, change, undo, overwrote }
    }

    /// What a write with this request id was meant to change, and what it overwrote, if this is it.
    pub(super) fn of_request(&self, id: &str) -> Option<(&Delta, &OverwriteNotes)> {
        match &self.source {
            Source::Request(by, change, overwrote) if by.is_request(id) => Some((change, overwrote)),
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
    /// Their size as JSON, if it is known: it is computed when a limit first needs it.
    pub(super) bytes: Option<usize>,
}

impl Shared {
    pub(super) fn read(&self) -> ScopeState {
        ScopeState { version: self.version, state: self.values.state.clone() }
    }

    /// Applies a change that was computed before, and adds it to the history. Without `undo` it
    /// only sets and removes keys. Returns the change that the history drops in exchange, so that
    /// the caller can free it after releasing the lock.
    pub(super) fn write(
        &mut self,
        results: &Delta,
        undo: Option<Undo>,
        time: f64,
        limit: Option<usize>,
        source: impl FnOnce() -> Source,
    ) -> Option<Remembered> {
        if results.is_empty() {
            return None;
        }
        self.version += 1;
        let undo = match undo {
            Some(undo) => {
                self.values.apply(results, limit);
                undo.into()
            }
            None => UndoNote::Plain(self.values.replace(results, limit)),
        };
        let forgotten = if self.changes.len() == REMEMBERED { self.changes.pop_front() } else { None };
        self.changes.push_back(Remembered { version: self.version, time, source: source(), undo });
        forgotten
    }
}

impl Shared {
    /// The changes of a window.
    pub(super) fn changes(&self, scope: Scope, window: ChangeWindow) -> Vec<ScopeChange> {
        let oldest_first = self.changes.iter();
        let ordered: Box<dyn Iterator<Item = &Remembered>> = match window.oldest_first {
            true => Box::new(oldest_first),
            false => Box::new(oldest_first.rev()),
        };
        let passing = ordered.filter(|change| window.admits(change.version));
        passing.take(window.limit).map(|change| change.to_change(scope)).collect()
    }

    /// Removes changes from before a time, except the newest; returns how many.
    pub(super) fn trim(&mut self, before: f64, limit: usize) -> usize {
        let old = self.changes.iter().take_while(|change| change.time < before).count();
        let removed = old.min(self.changes.len().saturating_sub(1)).min(limit);
        self.changes.drain(..removed);
        removed
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

    /// Applies results, and returns the values that they replace.
    fn replace(&mut self, results: &Delta, limit: Option<usize>) -> Before {
        self.bytes = limit.map(|_| self.size_with(results));
        let state = Arc::make_mut(&mut self.state);
        let mut before = Before::new();
        for (key, change) in results.entries() {
            let replaced = match (change, state.get_mut(&**key)) {
                (Change::Set(value), Some(held)) => Some(std::mem::replace(held, value.clone())),
                (Change::Set(value), None) => state.insert(key.to_string(), value.clone()),
                (Change::Remove, Some(_)) => state.remove(&**key),
                (Change::Remove, None) => None,
                (Change::Operate(_), _) => unreachable!("operations are computed before they are applied"),
            };
            before.extend(replaced.map(|value| (key.clone(), value)));
        }
        before
    }

    /// Refuses results that make the values larger than the limit, unless the size does not grow.
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

    /// The size of the values after these results, computed from the changed keys only.
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
