//! The results of a commit, computed from what is stored before anything is written. Stores that
//! compute in this process share this code; PostgreSQL computes the same inside the database.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use sessile_state::{Change, Delta, Scope, SharedValue, same_value};

use crate::commit::Commit;
use crate::error::SessionError;
use crate::event::{Event, json_of};
use crate::guard::{OnOverwrite, ScopeGuards};
use crate::key::ScopeKey;
use crate::scope_change::{OverwriteNotes, Undo};
use crate::scope_write::ScopeWrite;

/// Finds the value that is stored under a name, without its prefix.
pub type ValueOf<'a> = &'a dyn Fn(&str) -> Option<SharedValue>;

/// The results of a commit.
#[derive(Debug)]
pub struct Evaluated {
    /// What becomes of the session's state.
    pub session: EvaluatedScope,
    /// What becomes of the user's state.
    pub user: EvaluatedScope,
    /// What becomes of the application's state.
    pub app: EvaluatedScope,
    /// The overwritten values, which the event reports.
    overwritten: Vec<Overwritten>,
}

impl Evaluated {
    /// Whether the event has to report that it overwrote something.
    pub fn overwrites(&self) -> bool {
        !self.overwritten.is_empty()
    }

    /// The results of the event's changes, with the keys that the event has.
    pub fn results(&self, event: &Event) -> Delta {
        let result = |key: &Arc<str>, change: &Change| {
            let (scope, name) = Scope::of(key);
            let part = match scope {
                Scope::App => &self.app,
                Scope::User => &self.user,
                Scope::Session | Scope::Temp => &self.session,
            };
            Ok::<_, Infallible>(part.results.get(name).unwrap_or(change).clone())
        };
        let Ok(results) = event.actions.state_delta.try_map(result);
        results
    }

    /// The event as it is to be stored: results in the place of operations, which stay readable
    /// beside what was overwritten. An event that is not shared is changed in place.
    pub fn committed(&self, mut event: Arc<Event>) -> Arc<Event> {
        if self.overwrites() || event.actions.state_delta.has_operations() {
            let results = self.results(&event);
            let reports = self.overwritten.iter().map(|one| (one.key.clone(), one.report()));
            let overwrote = self.overwrites().then(|| json_of(&reports.collect::<BTreeMap<_, _>>()));
            Arc::make_mut(&mut event).commit(results, overwrote);
        }
        event
    }
}

/// The results of a change of one scope.
#[derive(Debug, Default)]
pub struct EvaluatedScope {
    /// The change with its operations computed: keys that are set, and keys that are removed.
    pub results: Delta,
    /// What undoes it, for the history of shared state. It is empty for a session's own state,
    /// which has no such history.
    pub undo: Undo,
    /// What a write without a session overwrote, for its history; an event reports this itself.
    pub overwrote: OverwriteNotes,
}

/// A key that no longer holds what its writer had read.
#[derive(Debug)]
struct Overwritten {
    key: String,
    read: Option<SharedValue>,
    found: Option<SharedValue>,
    on_overwrite: OnOverwrite,
}

/// Computes the results of a commit.
///
/// # Errors
///
/// [`SessionError::Overwritten`] if a guard refuses it; [`SessionError::Operation`] if an operation
/// cannot be applied to what is stored.
pub fn evaluate(
    commit: &Commit,
    session: ValueOf<'_>,
    user: ValueOf<'_>,
    app: ValueOf<'_>,
) -> Result<Evaluated, SessionError> {
    let (delta, guards) = (&commit.delta, &commit.guards);
    let mut overwritten = Vec::new();
    compare(&mut overwritten, Scope::Session, &guards.session, session);
    compare(&mut overwritten, Scope::User, &guards.user, user);
    compare(&mut overwritten, Scope::App, &guards.app, app);
    refuse(&overwritten)?;
    Ok(Evaluated {
        session: scope(Scope::Session, &delta.session, session, &|| commit.key.to_string())?,
        user: scope(Scope::User, &delta.user, user, &|| ScopeKey::user_of(&commit.key).to_string())?,
        app: scope(Scope::App, &delta.app, app, &|| ScopeKey::app_of(&commit.key).to_string())?,
        overwritten,
    })
}

/// Computes the results of a write of shared state.
///
/// # Errors
///
/// As [`evaluate`].
pub fn evaluate_scope(write: &ScopeWrite, value_of: ValueOf<'_>) -> Result<EvaluatedScope, SessionError> {
    let mut overwritten = Vec::new();
    compare(&mut overwritten, write.scope.scope(), &write.guards, value_of);
    refuse(&overwritten)?;
    let evaluated = scope(write.scope.scope(), &write.delta, value_of, &|| write.scope.to_string())?;
    let overwrote = overwritten.iter().map(|one| (one.key.clone(), one.report())).collect();
    Ok(EvaluatedScope { overwrote, ..evaluated })
}

/// The event that is stored for an intent: results in the place of operations, which stay readable
/// beside what was overwritten. An event that is not shared is changed in place.
pub fn committed(
    mut intent: Arc<Event>,
    results: Delta,
    overwrote: BTreeMap<String, SharedValue>,
) -> Arc<Event> {
    let overwrote = (!overwrote.is_empty()).then(|| json_of(&overwrote));
    Arc::make_mut(&mut intent).commit(results, overwrote);
    intent
}

fn compare(overwritten: &mut Vec<Overwritten>, scope: Scope, guards: &ScopeGuards, value_of: ValueOf<'_>) {
    for (name, guard) in guards {
        let found = value_of(name);
        let is_same = match (&guard.read, &found) {
            (Some(read), Some(found)) => same_value(read, found),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            let (read, on_overwrite) = (guard.read.clone(), guard.on_overwrite);
            overwritten.push(Overwritten { key: scope.key(name), read, found, on_overwrite });
        }
    }
}

fn refuse(overwritten: &[Overwritten]) -> Result<(), SessionError> {
    if overwritten.is_empty() {
        return Ok(());
    }
    let refused: BTreeMap<_, _> = overwritten
        .iter()
        .filter(|one| one.on_overwrite == OnOverwrite::Refuse)
        .map(|one| (one.key.clone(), one.found.clone()))
        .collect();
    match refused.is_empty() {
        true => Ok(()),
        false => Err(SessionError::Overwritten { current: refused }),
    }
}

fn scope(
    scope: Scope,
    delta: &Delta,
    value_of: ValueOf<'_>,
    owner: &dyn Fn() -> String,
) -> Result<EvaluatedScope, SessionError> {
    let is_shared = scope != Scope::Session;
    let mut undo = Undo::default();
    if !delta.has_operations() {
        if is_shared {
            delta.entries().for_each(|(name, change)| undo.note(name, change, value_of(name), None));
        }
        return Ok(EvaluatedScope { results: delta.clone(), undo, ..EvaluatedScope::default() });
    }
    let results = delta.try_map(|name, change| -> Result<Change, SessionError> {
        let before = value_of(name);
        let after = change.apply(before.as_ref()).map_err(|source| SessionError::Operation {
            key: scope.key(name),
            owner: owner(),
            found: before.clone().map(Box::new),
            source,
        })?;
        if is_shared {
            undo.note(name, change, before, after.as_ref());
        }
        Ok(after.map_or(Change::Remove, Change::Set))
    })?;
    Ok(EvaluatedScope { results, undo, ..EvaluatedScope::default() })
}

/// Values longer than this are reported by their length and digest, so that the event does not grow
/// with what it overwrites.
pub const LONGEST_TOLD: usize = 1024;

/// Values with more brackets than this are reported by their length and digest too. A value may be
/// nested 200 levels deep, and the report adds two more.
pub const MOST_BRACKETS_TOLD: usize = 190;

impl Overwritten {
    /// The report in the event: the value that was read and the one that was found; absence is left
    /// out.
    fn report(&self) -> SharedValue {
        overwrite_report(self.read.as_ref(), self.found.as_ref())
    }
}

/// The JSON that reports a value that was overwritten.
pub(crate) fn overwrite_report(read: Option<&SharedValue>, found: Option<&SharedValue>) -> SharedValue {
    let values = [("read", read), ("found", found)];
    let reports = values.into_iter().filter_map(|(name, value)| Some((name, reported_value(value?))));
    json_of(&reports.collect::<BTreeMap<_, _>>())
}

fn reported_value(value: &SharedValue) -> SharedValue {
    let text = value.to_string();
    let brackets = || text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if text.len() <= LONGEST_TOLD && brackets() <= MOST_BRACKETS_TOLD {
        return value.clone();
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    serde_json::json!({ "bytes": text.len(), "sha256": hex }).into()
}
