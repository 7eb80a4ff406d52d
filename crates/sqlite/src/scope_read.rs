//! Reading the state that sessions share.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params_from_iter};
use sessile_session::{ScopeKey, ScopeState, SessionError, Version};

use crate::failure::failed_to;
use crate::history;
use crate::rows::{Owner, StoredState};

pub(crate) fn scope_state(connection: &mut Connection, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
    let transaction = connection.transaction().map_err(failed_to("begin to read shared state"))?;
    let found = scope_state_in(&transaction, scope);
    transaction.finish().map_err(failed_to("end reading shared state"))?;
    found
}

/// [`scope_state`], in a transaction that is open.
pub(crate) fn scope_state_in(connection: &Connection, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
    let (text, version) = shared_text(connection, scope)?;
    let state = match text {
        Some(stored) => stored.values()?,
        None => Arc::default(),
    };
    Ok(ScopeState { version, state })
}

const APP_STATE: &str = "SELECT state, sessile_version FROM app_states WHERE app_name = ?1";
const USER_STATE: &str =
    "SELECT state, sessile_version FROM user_states WHERE app_name = ?1 AND user_id = ?2";

/// State that sessions share, as a text, and its version. Without a row there is no text, and the
/// version is that of the history.
pub(crate) fn shared_text(
    connection: &Connection,
    scope: &ScopeKey,
) -> Result<(Option<StoredState>, Version), SessionError> {
    let (query, values) = match scope {
        ScopeKey::App(app) => (APP_STATE, vec![app]),
        ScopeKey::User(app, user) => (USER_STATE, vec![app, user]),
    };
    let owner = Owner::Shared(scope.clone());
    let mut statement = connection.prepare_cached(query).map_err(failed_to("read shared state"))?;
    let found: Option<(String, i64)> = statement
        .query_row(params_from_iter(values), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(owner.unreadable("state"))?;
    match found {
        Some((text, version)) => Ok((Some(StoredState { owner, text }), version.unsigned_abs())),
        None => Ok((None, history::newest_version(connection, scope)?)),
    }
}
