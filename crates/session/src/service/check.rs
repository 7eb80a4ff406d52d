//! What may be stored.

use std::borrow::Cow;

use sessile_state::{Delta, SchemaError, Scope, ScopedDelta, StateSchema};

use crate::error::SessionError;
use crate::event::Event;
use crate::key::check_event;

/// Splits a delta by scope, without its `temp:` keys. Checks that every key can be stored and read
/// back under its name, and that the schema allows it. Additions carry the bounds of the schema
/// from here on.
pub(super) fn checked(delta: &Delta, schema: Option<&StateSchema>) -> Result<ScopedDelta, SessionError> {
    for (key, _) in delta.iter() {
        let (scope, name) = Scope::of(key);
        if scope != Scope::Session && Scope::of(name).0 == scope {
            return Err(SessionError::InvalidState {
                key: key.to_owned(),
                reason: format!("it has the prefix `{}` twice; write it once", scope.prefix()),
            });
        }
    }
    check_operations(delta)?;
    match schema {
        None => Ok(delta.split()),
        Some(schema) => Ok(schema.admit(&without_temp(delta)).map_err(refused)?.split()),
    }
}

/// What a schema refuses, as an error that names the key, the declared type and what was given.
fn refused(error: SchemaError) -> SessionError {
    SessionError::InvalidState { key: error.key().to_owned(), reason: format!("it {}", error.reason()) }
}

/// The delta without its `temp:` keys, which are never stored.
fn without_temp(delta: &Delta) -> Cow<'_, Delta> {
    let is_temp = |key: &str| key.starts_with(Scope::Temp.prefix());
    if !delta.iter().any(|(key, _)| is_temp(key)) {
        return Cow::Borrowed(delta);
    }
    let mut kept = delta.clone();
    kept.retain(|key| !is_temp(key));
    Cow::Owned(kept)
}

/// How deep the items of an operation may be nested. A value has at most 200 levels, and the event
/// stores an operation inside of four more: the object of keys, the list of operations, the
/// operation, and its list of items.
const DEEPEST_ITEM: usize = 196;

/// Refuses operations that could not be read back from the event.
fn check_operations(delta: &Delta) -> Result<(), SessionError> {
    match delta.operations().find(|(_, operations)| operations.iter().any(|one| one.depth() > DEEPEST_ITEM)) {
        None => Ok(()),
        Some((key, _)) => Err(SessionError::InvalidState {
            key: key.to_owned(),
            reason: format!(
                "an item of the operation is nested deeper than {DEEPEST_ITEM} levels; store it as an artifact"
            ),
        }),
    }
}

/// How to treat metadata that only a commit may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notes {
    /// Refuse it: the event comes from a caller.
    Refused,
    /// Keep it: the event was committed before.
    Kept,
}

/// The years that every store and google-adk can write.
const FIRST_TIME: f64 = -62_135_596_800.0;
const LAST_TIME: f64 = 253_402_300_799.0;

/// Takes the `temp:` keys out of an event, checks what is left of it, and separates its changes by
/// scope.
pub(super) fn prepared(
    event: &mut Event,
    notes: Notes,
    schema: Option<&StateSchema>,
) -> Result<ScopedDelta, SessionError> {
    check_event(&event.id)?;
    if !event.is_finite() {
        return Err(invalid(event, "one of its times or probabilities is NaN or infinite"));
    }
    if !(FIRST_TIME..=LAST_TIME).contains(&event.time()) {
        return Err(invalid(event, "its timestamp is not in the years 1 to 9999; it is in Unix seconds"));
    }
    if event.invocation_id.len() > 256 && event.invocation_id.chars().count() > 256 {
        return Err(invalid(event, "its invocation id is longer than 256 characters"));
    }
    if notes == Notes::Refused
        && let Some(name) = event.reserved_metadata()
    {
        let reason = format!("its custom metadata has {name:?}, which only Sessile writes; leave it out");
        return Err(invalid(event, &reason));
    }
    if let Cow::Owned(kept) = without_temp(&event.actions.state_delta) {
        event.actions.state_delta = kept;
    }
    checked(&event.actions.state_delta, schema)
}

/// Refuses an event with operations where they cannot be computed.
pub(super) fn without_operations(event: &Event) -> Result<(), SessionError> {
    match event.actions.state_delta.operations().next() {
        None => Ok(()),
        Some((key, _)) => Err(invalid(
            event,
            &format!(
                "it operates on the key {key:?}, and the events that a session is created with must hold results; \
                 operate in the initial state, or append the event"
            ),
        )),
    }
}

fn invalid(event: &Event, reason: &str) -> SessionError {
    SessionError::InvalidEvent { id: event.id.clone(), reason: reason.to_owned() }
}
