//! Listing the addresses of everything that is stored.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use sessile_session::{Address, ScopeKey, SessionError, SessionKey};

use crate::failure::failed_to;

const APPS: &str = "
    SELECT app_name, ?2, ?3 FROM app_states WHERE app_name {after} ?1
     ORDER BY app_name LIMIT ?4
";
const USERS: &str = "
    SELECT app_name, user_id, ?3 FROM user_states WHERE (app_name, user_id) {after} (?1, ?2)
     ORDER BY app_name, user_id LIMIT ?4
";
const SESSIONS: &str = "
    SELECT app_name, user_id, id FROM sessions WHERE (app_name, user_id, id) {after} (?1, ?2, ?3)
     ORDER BY app_name, user_id, id LIMIT ?4
";

/// The addresses after another one: of applications, then of users, then of sessions.
pub(crate) fn addresses(
    connection: &Connection,
    after: Option<&Address>,
    limit: usize,
) -> Result<Vec<Address>, SessionError> {
    let (reached, place) = match after {
        None => (0, None),
        Some(Address::Scope(ScopeKey::App(app))) => (0, Some([app, "", ""])),
        Some(Address::Scope(ScopeKey::User(app, user))) => (1, Some([app, user, ""])),
        Some(Address::Session(key)) => (2, Some([key.app(), key.user(), key.id()])),
    };
    let mut found = Vec::new();
    for (kind, query) in [APPS, USERS, SESSIONS].into_iter().enumerate().skip(reached) {
        let place = place.filter(|_| kind == reached);
        // Without a place to start after, every text is `>=` the empty one.
        let query = query.replace("{after}", if place.is_some() { ">" } else { ">=" });
        let mut values: Vec<Value> = place.unwrap_or_default().map(|id| Value::Text(id.to_owned())).into();
        values.push(Value::Integer(i64::try_from(limit.saturating_sub(found.len())).unwrap_or(i64::MAX)));
        let mut statement = connection.prepare_cached(&query).map_err(failed_to("walk over the tables"))?;
        let rows = statement
            .query_map(params_from_iter(values), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(failed_to("walk over the tables"))?;
        for row in rows {
            let (app, user, id): (String, String, String) = row.map_err(failed_to("walk over the tables"))?;
            found.push(match kind {
                0 => Address::Scope(ScopeKey::App(app)),
                1 => Address::Scope(ScopeKey::User(app, user)),
                _ => Address::Session(SessionKey::from_stored(app, user, id)),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_file_is_unavailable() {
        let folder = tempfile::tempdir().expect("a temporary folder is made");
        let path = folder.path().join("sessile.db");
        // Without WAL mode, a transaction that writes locks readers out.
        let other = Connection::open(&path).expect("the file opens");
        other.execute_batch(include_str!("../migrations/0001_adk.sql")).expect("the tables are created");
        other.execute_batch("BEGIN EXCLUSIVE").expect("the file is locked");
        let reader = Connection::open(&path).expect("the file opens");
        reader.busy_timeout(std::time::Duration::ZERO).expect("the timeout is set");
        let locked = addresses(&reader, None, 1).expect_err("the file is locked");
        assert!(matches!(locked, SessionError::Unavailable { .. }), "{locked:?}");
        other.execute_batch("ROLLBACK").expect("the lock is released");
        assert_eq!(addresses(&reader, None, 1).expect("the file is read"), []);
    }
}
