//! Removing the oldest changes of shared state.

use rusqlite::{Connection, OptionalExtension, params_from_iter};
use sessile_session::{ScopeKey, SessionError};

use crate::batch::Batch;
use crate::failure::failed_to;

/// Scopes with changes that are old enough to be removed.
pub(crate) struct OldScopes {
    pub(crate) scopes: Vec<ScopeKey>,
    /// The next search begins after this scope; `None` if it was the last one.
    pub(crate) next: Option<ScopeKey>,
}

/// The oldest row of the next scope. The primary keys have this order, so each lookup costs the
/// same.
const NEXT_APP: &str = "
    SELECT app_name, coalesce(written_at, CAST((SELECT value FROM sessile_meta WHERE key = 'history_since') AS INTEGER), 0)
      FROM sessile_app_changes WHERE app_name > ?1 ORDER BY app_name, version LIMIT 1
";
const NEXT_USER: &str = "
    SELECT app_name, user_id,
           coalesce(written_at, CAST((SELECT value FROM sessile_meta WHERE key = 'history_since') AS INTEGER), 0)
      FROM sessile_user_changes WHERE (app_name, user_id) > (?1, ?2) ORDER BY app_name, user_id, version LIMIT 1
";

/// Searches the next `limit` scopes: all applications, then all users. Rows from before migration 3
/// have no time, and count as written when it was applied: a scope is found only if its oldest row
/// is old enough, and then all its rows without a time are.
pub(crate) fn old_scopes(
    connection: &Connection,
    before: f64,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<OldScopes, SessionError> {
    let looking = || failed_to("look for old changes of shared state");
    let mut found = OldScopes { scopes: Vec::new(), next: after.cloned() };
    let mut next_app = connection.prepare_cached(NEXT_APP).map_err(looking())?;
    let mut next_user = connection.prepare_cached(NEXT_USER).map_err(looking())?;
    for _ in 0..limit {
        let app = match &found.next {
            None => Some(""),
            Some(ScopeKey::App(app)) => Some(app.as_str()),
            Some(ScopeKey::User(..)) => None,
        };
        let mut row = match app {
            Some(app) => next_app
                .query_row([app], |row| Ok((ScopeKey::App(row.get(0)?), row.get::<_, f64>(1)?)))
                .optional()
                .map_err(looking())?,
            None => None,
        };
        if row.is_none() {
            let (app, user) = match &found.next {
                Some(ScopeKey::User(app, user)) => (app.as_str(), user.as_str()),
                _ => ("", ""),
            };
            let user_row = |row: &rusqlite::Row<'_>| {
                Ok((ScopeKey::User(row.get(0)?, row.get(1)?), row.get::<_, f64>(2)?))
            };
            row = next_user.query_row([app, user], user_row).optional().map_err(looking())?;
        }
        let Some((scope, written_at)) = row else {
            found.next = None;
            return Ok(found);
        };
        if written_at < before {
            found.scopes.push(scope.clone());
        }
        found.next = Some(scope);
    }
    Ok(found)
}

const TRIM_APP: &str = "
    DELETE FROM sessile_app_changes WHERE app_name = ?1 AND version IN (
        SELECT version FROM sessile_app_changes WHERE app_name = ?1 AND coalesce(written_at, 0) < ?2
           AND version < (SELECT max(version) FROM sessile_app_changes WHERE app_name = ?1)
         ORDER BY version LIMIT ?3)
";
const TRIM_USER: &str = "
    DELETE FROM sessile_user_changes WHERE app_name = ?1 AND user_id = ?4 AND version IN (
        SELECT version FROM sessile_user_changes WHERE app_name = ?1 AND user_id = ?4 AND coalesce(written_at, 0) < ?2
           AND version < (SELECT max(version) FROM sessile_user_changes WHERE app_name = ?1 AND user_id = ?4)
         ORDER BY version LIMIT ?3)
";

impl Batch<'_> {
    /// Removes the oldest changes of these scopes, at most `limit` rows; the newest row of each
    /// stays.
    pub(crate) fn trim(
        &mut self,
        scopes: &[ScopeKey],
        before: f64,
        limit: usize,
    ) -> Result<usize, SessionError> {
        use rusqlite::types::Value;

        let mut removed = 0;
        for scope in scopes {
            let most = i64::try_from(limit - removed).unwrap_or(i64::MAX);
            let mut values = vec![Value::Null, Value::Real(before), Value::Integer(most)];
            let statement = match scope {
                ScopeKey::App(app) => {
                    values[0] = Value::Text(app.clone());
                    TRIM_APP
                }
                ScopeKey::User(app, user) => {
                    values[0] = Value::Text(app.clone());
                    values.push(Value::Text(user.clone()));
                    TRIM_USER
                }
            };
            let deleted = self
                .connection
                .prepare_cached(statement)
                .and_then(|mut statement| statement.execute(params_from_iter(values)));
            removed += deleted.map_err(failed_to("remove old changes of shared state"))?;
        }
        Ok(removed)
    }
}
