//! Reading and writing the state that sessions share, without a session.

use std::sync::Arc;

use sessile_state::{Change, Delta, Scope, StateSchema, same_json};

use super::SessionService;
use super::check::checked;
use crate::error::SessionError;
use crate::guard::Guards;
use crate::key::{ScopeKey, check_app, check_event, check_user};
use crate::scope_write::{ScopeState, ScopeWrite, ScopeWritten};
use crate::state_map::StateMap;
use crate::version::Version;

/// A change of the state that sessions share.
#[derive(Debug, Clone)]
pub struct StateWrite {
    /// Whose state it is.
    pub scope: ScopeKey,
    /// What changes; keys are without their prefix.
    pub delta: Delta,
    /// The version that must be stored for it to be committed.
    pub expect: Option<Version>,
    /// The values that the changes were computed from; keys are without their prefix. Reports of
    /// guards are in the result and in the history of the scope.
    pub guards: Guards,
    /// Makes the write idempotent: a second one with this id changes nothing, and returns the
    /// result of the first. One is generated if it is left out.
    pub request: Option<String>,
    /// The author, for the history of the scope.
    pub principal: Option<String>,
}

impl StateWrite {
    /// A change without conditions.
    #[track_caller]
    pub fn new(scope: ScopeKey, delta: impl Into<Delta>) -> Self {
        let (expect, request, principal) = (None, None, None);
        Self { scope, delta: delta.into(), expect, guards: Guards::default(), request, principal }
    }
}

impl SessionService {
    /// The state that all users and sessions of an application share, without its prefix.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidId`] if it cannot be an application; the store's own errors.
    pub async fn app_state(&self, app: &str) -> Result<StateMap, SessionError> {
        let state = self.scope_state(&ScopeKey::App(app.to_owned())).await?;
        Ok(Arc::unwrap_or_clone(state.state))
    }

    /// The state that all sessions of a user share, without its prefix.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidId`] if it cannot be an application or user; the store's own errors.
    pub async fn user_state(&self, app: &str, user: &str) -> Result<StateMap, SessionError> {
        let state = self.scope_state(&ScopeKey::User(app.to_owned(), user.to_owned())).await?;
        Ok(Arc::unwrap_or_clone(state.state))
    }

    /// The state that sessions share, with its version.
    ///
    /// # Errors
    ///
    /// [`SessionError::InvalidId`] if it cannot be an application or user; the store's own errors.
    pub async fn scope_state(&self, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
        check_scope(scope)?;
        let ScopeState { version, state } = self.store.scope_state(scope).await?;
        Ok(ScopeState { version, state: folded(state, scope.scope()) })
    }

    /// Changes the state of an application; keys are without their prefix.
    ///
    /// # Errors
    ///
    /// As [`write_state`](Self::write_state).
    #[track_caller]
    pub fn write_app_state(
        &self,
        app: &str,
        delta: impl Into<Delta>,
    ) -> impl Future<Output = Result<ScopeWritten, SessionError>> + Send {
        self.write_state(StateWrite::new(ScopeKey::App(app.to_owned()), delta))
    }

    /// Changes the state of a user; keys are without their prefix.
    ///
    /// # Errors
    ///
    /// As [`write_state`](Self::write_state).
    #[track_caller]
    pub fn write_user_state(
        &self,
        app: &str,
        user: &str,
        delta: impl Into<Delta>,
    ) -> impl Future<Output = Result<ScopeWritten, SessionError>> + Send {
        self.write_state(StateWrite::new(ScopeKey::User(app.to_owned(), user.to_owned()), delta))
    }

    /// Changes the state that sessions share. Returns its version and the whole state as of the
    /// commit.
    ///
    /// # Errors
    ///
    /// - [`SessionError::InvalidState`] if a key or value cannot be stored;
    /// - [`SessionError::ScopeConflict`] if another version is stored than expected;
    /// - [`SessionError::Overwritten`] if a guard refuses the write;
    /// - [`SessionError::Operation`] if an operation cannot be applied to what is stored;
    /// - [`SessionError::RequestConflict`] if another write has this request id;
    /// - [`SessionError::TooLarge`] if the state would exceed its limit.
    ///
    /// Nothing is changed then.
    pub async fn write_state(&self, mut write: StateWrite) -> Result<ScopeWritten, SessionError> {
        check_scope(&write.scope)?;
        let scope = write.scope.scope();
        self.reduced_in(write.scope.app(), scope, &mut write.delta, &mut write.guards)?;
        let request = match write.request {
            Some(request) => request,
            None => self.ids.new_id(),
        };
        check_event(&request)?;
        let delta = checked_in(scope, &write.delta, self.checking(write.scope.app()))?;
        let guards = write.guards.iter().map(|(name, guard)| (name.to_owned(), guard.clone())).collect();
        let sent = ScopeWrite {
            scope: write.scope,
            delta,
            expect: write.expect,
            guards,
            max_scope_bytes: self.max_scope_bytes,
            request,
            principal: write.principal,
            time: self.clock.now(),
        };
        let written = self.store.write_scope(sent.clone()).await?;
        if let Some(known) = &written.known
            && !is_same(&sent.delta, known)
        {
            return Err(SessionError::RequestConflict { scope: sent.scope, request: sent.request });
        }
        if written.known.is_none() {
            self.watchers.scopes.notify(|| &sent.scope);
            self.trim_in_passing();
        }
        Ok(ScopeWritten { state: folded(written.state, scope), ..written })
    }
}

pub(super) fn check_scope(scope: &ScopeKey) -> Result<(), SessionError> {
    match scope {
        ScopeKey::App(app) => Ok(check_app(app)?),
        ScopeKey::User(app, user) => {
            check_app(app)?;
            Ok(check_user(user)?)
        }
    }
}

/// The changes of one scope, if they can be read back under their names and the schema allows them.
fn checked_in(scope: Scope, delta: &Delta, schema: Option<&StateSchema>) -> Result<Delta, SessionError> {
    let mut prefixed = Delta::new();
    for (name, change) in delta.iter() {
        let key = scope.key(name);
        match change {
            Change::Set(value) => prefixed.set(key, value.clone()),
            Change::Remove => prefixed.remove(key),
            Change::Operate(operations) => prefixed.operate(key, operations.clone()),
        }
    }
    let checked = checked(&prefixed, schema)?;
    Ok(if scope == Scope::App { checked.app } else { checked.user })
}

/// Whether two writes have the same intent. Numbers are compared by value, because not every
/// database keeps their spelling.
fn is_same(one: &Delta, other: &Delta) -> bool {
    match (serde_json::to_string(one), serde_json::to_string(other)) {
        (Ok(one), Ok(other)) => same_json(&one, &other),
        _ => false,
    }
}

/// A row written by hand may name a key with its prefix, which is the same key; the one without it
/// wins when both are there, as in a session.
fn folded(state: Arc<StateMap>, scope: Scope) -> Arc<StateMap> {
    if state.keys().all(|name| Scope::of(name).0 != scope) {
        return state;
    }
    let (prefixed, mut plain): (StateMap, StateMap) =
        Arc::unwrap_or_clone(state).into_iter().partition(|(name, _)| Scope::of(name).0 == scope);
    for (name, value) in prefixed {
        plain.entry(Scope::of(&name).1.to_owned()).or_insert(value);
    }
    Arc::new(plain)
}
