//! Changes of state in requests: keys that are set, removed and operated on, and the values that
//! the change was computed from.

use std::collections::BTreeMap;

use sessile_session::{Event, Guards, OnOverwrite};
use sessile_state::{Delta, Scope};

use crate::describe::model::is_called;
use crate::http::error::ApiError;
use crate::http::json::{Fields, MOST_PROBLEMS, NamedKey, Problem, too_long};
use crate::http::limits::Limits;

/// The change that a request makes, and the values that it was computed from.
#[derive(Debug, Default)]
pub(crate) struct StateChange {
    pub(crate) delta: Delta,
    pub(crate) guards: Guards,
}

/// How a request names keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// The prefix of a key is its scope.
    Prefixed,
    /// All are of this scope and have no prefix.
    Of(Scope),
}

/// The fields that guard a change.
pub(crate) const GUARDS: [&str; 3] = ["stateRead", "stateAbsent", "onOverwrite"];

impl StateChange {
    /// Reads the fields of a body.
    pub(crate) fn read(fields: &Fields<'_>, keys: Keys) -> Result<Self, ApiError> {
        check_changes(fields, "stateDelta")?;
        Ok(Self { delta: changes(fields, "stateDelta")?, guards: guards(fields, keys)? })
    }

    /// Reads the state that a session begins with, which is in `state`, and the operations beside
    /// it.
    pub(crate) fn initial(fields: &Fields<'_>) -> Result<Delta, ApiError> {
        check_changes(fields, "state")?;
        changes(fields, "state")
    }
}

/// The fields in the actions of an appended event that are not part of a stored event.
#[derive(Debug)]
pub(crate) struct BesideEvent {
    removed: Vec<String>,
    pub(crate) guards: Guards,
}

impl BesideEvent {
    /// Reads the fields of an event's actions. The keys that the event sets and its operations are
    /// only checked here; the event's deserializer reads them.
    pub(crate) fn read(actions: &Fields<'_>) -> Result<Self, ApiError> {
        check_changes(actions, "stateDelta")?;
        Ok(Self { removed: actions.texts("stateRemove"), guards: guards(actions, Keys::Prefixed)? })
    }

    /// Adds the removals to an event. Its deserializer kept these fields as unknown ones; they are
    /// dropped here.
    pub(crate) fn complete(&self, event: &mut Event) {
        self.removed.iter().for_each(|key| event.actions.state_delta.remove(key));
        let is_beside =
            |name: &str| ["stateRemove"].into_iter().chain(GUARDS).any(|field| is_called(field, name));
        if event.actions.unknown.keys().any(|name| is_beside(name)) {
            event.actions.unknown.retain(|name, _| !is_beside(name));
        }
    }
}

/// Refuses keys that are too long.
pub(crate) fn check_lengths(limits: &Limits, delta: &Delta) -> Result<(), ApiError> {
    match delta
        .iter()
        .any(|(key, _)| key.len() > limits.key_length && key.chars().count() > limits.key_length)
    {
        true => Err(ApiError::Unusable(too_long(limits))),
        false => Ok(()),
    }
}

/// The changes of a body; `set` is the field with the keys that are set.
fn changes(fields: &Fields<'_>, set: &str) -> Result<Delta, ApiError> {
    let mut delta: Delta = fields.state(set)?.unwrap_or_default().into_iter().collect();
    fields.texts("stateRemove").iter().for_each(|key| delta.remove(key));
    for (key, operations) in fields.operations("stateOps")? {
        delta.operate(key, operations);
    }
    Ok(delta)
}

/// Refuses keys that are too long, and keys that are changed in two ways.
fn check_changes(fields: &Fields<'_>, set: &'static str) -> Result<(), ApiError> {
    let changes = [(set, "set"), ("stateRemove", "removed"), ("stateOps", "operated on")];
    let named = changes.map(|(name, does)| (fields.keys(name), does));
    check_named(fields, named.iter().flat_map(|(keys, _)| keys))?;
    if named.iter().filter(|(keys, _)| !keys.is_empty()).count() < 2 {
        return Ok(());
    }
    let mut seen = BTreeMap::new();
    for (keys, does) in &named {
        for NamedKey { key, .. } in keys {
            if let Some(other) = seen.insert(*key, *does).filter(|other| other != does) {
                let text = format!("The key {key:?} is both {other} and {does}; choose one");
                return Err(ApiError::Unusable(text));
            }
        }
    }
    Ok(())
}

/// The values that a change was computed from. Over HTTP a difference is refused unless the request
/// says otherwise.
fn guards(fields: &Fields<'_>, keys: Keys) -> Result<Guards, ApiError> {
    let (read, absent) = (fields.keys("stateRead"), fields.keys("stateAbsent"));
    check_named(fields, read.iter().chain(&absent))?;
    let wrong: Vec<Problem> =
        read.iter().chain(&absent).filter_map(|key| misnamed(key, keys)).take(MOST_PROBLEMS).collect();
    if !wrong.is_empty() {
        return Err(wrong.into());
    }
    let on_overwrite = match fields.text("onOverwrite").as_deref() {
        Some("report") => OnOverwrite::Report,
        _ => OnOverwrite::Refuse,
    };
    let mut guards = Guards::new(on_overwrite);
    let values = fields.state("stateRead")?.unwrap_or_default();
    for NamedKey { key, .. } in &absent {
        if values.contains_key(*key) {
            let text = format!("The key {key:?} is both in stateRead and in stateAbsent; choose one");
            return Err(ApiError::Unusable(text));
        }
        guards.insert((*key).to_owned(), None);
    }
    values.into_iter().for_each(|(key, value)| guards.insert(key, Some(value)));
    Ok(guards)
}

fn check_named<'f>(
    fields: &Fields<'_>,
    keys: impl Iterator<Item = &'f NamedKey<'f>>,
) -> Result<(), Vec<Problem>> {
    let problems: Vec<Problem> =
        keys.filter_map(|key| key.too_long(fields.limits())).take(MOST_PROBLEMS).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The problem with a guarded key that could never be stored under its name, so that the guard
/// could never hold.
fn misnamed(named: &NamedKey<'_>, keys: Keys) -> Option<Problem> {
    let (scope, name) = match keys {
        Keys::Prefixed => Scope::of(named.key),
        Keys::Of(scope) => (scope, named.key),
    };
    let msg = match scope {
        Scope::Temp => "temp: keys are never stored, so there is nothing to compare with".to_owned(),
        Scope::Session => return None,
        Scope::App | Scope::User if Scope::of(name).0 != scope => return None,
        Scope::App | Scope::User if keys == Keys::Prefixed => {
            format!("The key has the prefix {} twice; write it once", scope.prefix())
        }
        Scope::App | Scope::User => format!("Keys are without their prefix {} here", scope.prefix()),
    };
    Some(named.problem("value_error", msg))
}
