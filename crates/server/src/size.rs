//! How large state may become.

use sessile_session::{CreateSession, Session, StateMap};
use sessile_state::{Delta, Scope, SharedValue};

use crate::error::ApiError;
use crate::limits::Limits;
use crate::server::Shared;

/// Refuses a change after which a scope would be larger than its limit.
pub(crate) fn check_session_delta(limits: &Limits, session: &Session, delta: &Delta) -> Result<(), ApiError> {
    check_keys(limits, delta)?;
    for scope in [Scope::Session, Scope::User, Scope::App] {
        let sets = delta.values().filter(|(key, _)| Scope::of(key).0 == scope);
        let added: usize = sets.map(|(key, value)| size(key, value)).sum();
        if added == 0 {
            continue;
        }
        let stays = |(key, _): &(&str, &SharedValue)| Scope::of(key).0 == scope && delta.get(key).is_none();
        let kept: usize = session.state().iter().filter(stays).map(|(key, value)| size(key, value)).sum();
        check(limits, scope, kept + added)?;
    }
    Ok(())
}

/// Refuses a change of a scope's own state after which it would be larger than its limit.
pub(crate) fn check_scope_delta(
    limits: &Limits,
    scope: Scope,
    state: &StateMap,
    delta: &Delta,
) -> Result<(), ApiError> {
    let added: usize = delta.values().map(|(key, value)| size(key, value)).sum();
    let stays = |(key, _): &(&String, &SharedValue)| delta.get(key).is_none();
    let kept: usize = state.iter().filter(stays).map(|(key, value)| size(key, value)).sum();
    check(limits, scope, kept + added)
}

/// Refuses a change of a key whose name is longer than its limit.
fn check_keys(limits: &Limits, delta: &Delta) -> Result<(), ApiError> {
    let is_long = |key: &&str| key.chars().count() > limits.key_length;
    match delta.iter().map(|(key, _)| key).find(is_long) {
        Some(_) => {
            Err(ApiError::Unusable(format!("State keys have at most {} characters", limits.key_length)))
        }
        None => Ok(()),
    }
}

/// Refuses a session whose state is larger than a limit; shared state is compared with what it
/// would become.
pub(crate) async fn check_new_state(shared: &Shared, new: &CreateSession) -> Result<(), ApiError> {
    let delta: Delta = new.state.iter().map(|(key, value)| (key, value.clone())).collect();
    let scoped = delta.split();
    check_scope_delta(&shared.limits, Scope::Session, &StateMap::new(), &scoped.session)?;
    if !scoped.user.is_empty() {
        let state = shared.sessions.user_state(&new.app, &new.user).await?;
        check_scope_delta(&shared.limits, Scope::User, &state, &scoped.user)?;
    }
    if !scoped.app.is_empty() {
        let state = shared.sessions.app_state(&new.app).await?;
        check_scope_delta(&shared.limits, Scope::App, &state, &scoped.app)?;
    }
    Ok(())
}

fn check(limits: &Limits, scope: Scope, size: usize) -> Result<(), ApiError> {
    if size <= limits.state {
        return Ok(());
    }
    Err(ApiError::TooLarge(format!(
        "The {scope} state would be {size} bytes; at most {} are kept. Remove keys, or store large values as artifacts",
        limits.state
    )))
}

/// The size of a key and its value as JSON.
fn size(key: &str, value: &SharedValue) -> usize {
    key.len() + value.json_size()
}
