//! What may be stored.

use sessile_state::{Delta, Scope, ScopedDelta};

use crate::error::SessionError;
use crate::event::Event;
use crate::key::check_event;

/// Separates a delta by scope, without its `temp:` keys, if every key can be stored and read back
/// under its name.
pub(super) fn checked(delta: &Delta) -> Result<ScopedDelta, SessionError> {
    delta.iter().try_for_each(|(key, _)| check_name(key))?;
    Ok(delta.split())
}

fn check_name(key: &str) -> Result<(), SessionError> {
    let (scope, name) = Scope::of(key);
    check_in_scope(key, scope, name)
}

fn check_in_scope(key: &str, scope: Scope, name: &str) -> Result<(), SessionError> {
    if scope != Scope::Session && Scope::of(name).0 == scope {
        return Err(SessionError::InvalidState {
            key: key.to_owned(),
            reason: format!("it has the prefix `{}` twice; write it once", scope.prefix()),
        });
    }
    Ok(())
}

/// The years that every store and google-adk can write.
const FIRST_TIME: f64 = -62_135_596_800.0;
const LAST_TIME: f64 = 253_402_300_799.0;

/// Takes the `temp:` keys out of an event, and checks what is left of it.
pub(super) fn prepared(event: &mut Event) -> Result<ScopedDelta, SessionError> {
    check_event(&event.id)?;
    if !event.is_finite() {
        return Err(invalid(event, "one of its times or probabilities is NaN or infinite"));
    }
    if !(FIRST_TIME..=LAST_TIME).contains(&event.timestamp) {
        return Err(invalid(event, "its timestamp is not in the years 1 to 9999; it is in Unix seconds"));
    }
    if event.invocation_id.len() > 256 && event.invocation_id.chars().count() > 256 {
        return Err(invalid(event, "its invocation id is longer than 256 characters"));
    }
    if let Some(scoped) = plain(event)? {
        return Ok(scoped);
    }
    let mut delta = event.delta();
    if event.actions.state_delta.keys().any(|key| Scope::of(key).0 == Scope::Temp) {
        delta.retain(|key| Scope::of(key).0 != Scope::Temp);
        event.set_delta(&delta);
    }
    checked(&delta)
}

/// What an event changes by scope, in one pass over its keys; `None` if it removes keys or has `temp:` keys.
fn plain(event: &Event) -> Result<Option<ScopedDelta>, SessionError> {
    if event.removes_keys() {
        return Ok(None);
    }
    let mut scoped = ScopedDelta::default();
    for (key, value) in &event.actions.state_delta {
        let (scope, name) = Scope::of(key);
        let delta = match scope {
            Scope::App => &mut scoped.app,
            Scope::User => &mut scoped.user,
            Scope::Session => &mut scoped.session,
            Scope::Temp => return Ok(None),
        };
        check_in_scope(key, scope, name)?;
        delta.set(name, value.clone());
    }
    Ok(Some(scoped))
}

fn invalid(event: &Event, reason: &str) -> SessionError {
    SessionError::InvalidEvent { id: event.id.clone(), reason: reason.to_owned() }
}
