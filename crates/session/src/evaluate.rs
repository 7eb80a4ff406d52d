//! What a commit comes to, computed from what is stored before anything is written. Stores that keep state in this
//! process share it; PostgreSQL computes the same inside the database.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessile_state::{Change, Delta, Scope, SharedValue, same_value};

use crate::commit::{Commit, OnOverwrite, ScopeGuards};
use crate::error::SessionError;
use crate::event::{Event, OPERATIONS, OVERWROTE, json_of};
use crate::scope_change::Undo;
use crate::scope_write::{ScopeKey, ScopeWrite};

/// Finds the value that is stored under a name, without its prefix.
pub type ValueOf<'a> = &'a dyn Fn(&str) -> Option<SharedValue>;

/// What a commit comes to.
#[derive(Debug)]
pub struct Evaluated {
    /// The event as it is to be stored.
    pub event: Arc<Event>,
    /// What becomes of the session's state.
    pub session: EvaluatedScope,
    /// What becomes of the user's state.
    pub user: EvaluatedScope,
    /// What becomes of the application's state.
    pub app: EvaluatedScope,
}

/// What a change of one scope comes to.
#[derive(Debug, Default)]
pub struct EvaluatedScope {
    /// The change with its operations computed: keys that are set, and keys that are removed.
    pub results: Delta,
    /// What undoes it, for the history of shared state; of a session's own state nothing is noted.
    pub undo: Undo,
}

/// A key that no longer holds what its writer had read.
struct Overwritten {
    key: String,
    read: Option<SharedValue>,
    found: Option<SharedValue>,
    on_overwrite: OnOverwrite,
}

/// Computes what a commit comes to.
///
/// # Errors
///
/// [`SessionError::Overwritten`] if a guard refuses it; [`SessionError::Operation`] if an operation cannot be applied to
/// what is stored.
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
    let evaluated = Evaluated {
        session: scope(Scope::Session, &delta.session, session, &|| commit.key.to_string())?,
        user: scope(Scope::User, &delta.user, user, &|| ScopeKey::user_of(&commit.key).to_string())?,
        app: scope(Scope::App, &delta.app, app, &|| ScopeKey::app_of(&commit.key).to_string())?,
        event: commit.event.clone(),
    };
    if overwritten.is_empty() && !commit.event.actions.state_delta.has_operations() {
        return Ok(evaluated);
    }
    let mut results = Delta::new();
    for (scope, part) in
        [(Scope::Session, &evaluated.session), (Scope::User, &evaluated.user), (Scope::App, &evaluated.app)]
    {
        for (name, change) in part.results.iter() {
            match change {
                Change::Set(value) => results.set(scope.key(name), value.clone()),
                Change::Remove => results.remove(scope.key(name)),
                Change::Operate(_) => unreachable!("results hold no operations"),
            }
        }
    }
    let overwrote = overwritten.iter().map(|one| (one.key.clone(), one.told()));
    let event = committed(&commit.event, results, overwrote.collect());
    Ok(Evaluated { event: Arc::new(event), ..evaluated })
}

/// Computes what a write of shared state comes to.
///
/// # Errors
///
/// As [`evaluate`].
pub fn evaluate_scope(write: &ScopeWrite, value_of: ValueOf<'_>) -> Result<EvaluatedScope, SessionError> {
    let mut overwritten = Vec::new();
    compare(&mut overwritten, write.scope.scope(), &write.guards, value_of);
    refuse(&overwritten)?;
    scope(write.scope.scope(), &write.delta, value_of, &|| write.scope.to_string())
}

/// The event that is stored for an intent: results in the place of operations, which stay readable in its metadata
/// beside what was overwritten.
pub fn committed(intent: &Event, results: Delta, overwrote: BTreeMap<String, SharedValue>) -> Event {
    let mut event = intent.clone();
    let operations: BTreeMap<_, _> = intent.actions.state_delta.operations().collect();
    let mut note = |name: &str, value: SharedValue| {
        event.extras.custom_metadata.get_or_insert_default().insert(name.to_owned(), value);
    };
    if !operations.is_empty() {
        note(OPERATIONS, json_of(&operations));
    }
    if !overwrote.is_empty() {
        note(OVERWROTE, json_of(&overwrote));
    }
    event.actions.state_delta = results;
    event
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
    let mut evaluated = EvaluatedScope { results: delta.clone(), undo: Undo::default() };
    if scope == Scope::Session && !delta.has_operations() {
        return Ok(evaluated);
    }
    for (name, change) in delta.entries() {
        let before = value_of(name);
        if !matches!(change, Change::Operate(_)) {
            if scope != Scope::Session {
                evaluated.undo.note(name, change, before, None);
            }
            continue;
        }
        let after = change.apply(before.as_ref()).map_err(|source| SessionError::Operation {
            key: scope.key(name),
            owner: owner(),
            found: before.clone().map(Box::new),
            source,
        })?;
        if scope != Scope::Session {
            evaluated.undo.note(name, change, before, after.as_ref());
        }
        if let Some(after) = after {
            evaluated.results.set(name, after);
        }
    }
    Ok(evaluated)
}

/// Values longer than this are told by their length and digest: the event must not grow with what it overwrites.
pub const LONGEST_TOLD: usize = 1024;

/// Values with more brackets than this are told by their length and digest too. A value may be nested 200 levels deep,
/// and what is told stands inside of two more.
pub const MOST_BRACKETS_TOLD: usize = 190;

impl Overwritten {
    /// What the event tells: the value that was read and the one that was found; absence is left out.
    fn told(&self) -> SharedValue {
        let values = [("read", &self.read), ("found", &self.found)];
        let told = values.into_iter().filter_map(|(name, value)| Some((name, told_value(value.as_ref()?))));
        json_of(&told.collect::<BTreeMap<_, _>>())
    }
}

fn told_value(value: &SharedValue) -> SharedValue {
    let text = value.to_string();
    let brackets = || text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if text.len() <= LONGEST_TOLD && brackets() <= MOST_BRACKETS_TOLD {
        return value.clone();
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    serde_json::json!({ "bytes": text.len(), "sha256": hex }).into()
}
