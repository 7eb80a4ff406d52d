//! Reading a session, in one transaction and so from one snapshot.

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use sessile_session::{
    EventWindow, ScopeKey, SessionError, SessionEvent, SessionKey, StateMap, StoredSession, Version,
};

use crate::failure::failed_to;
use crate::layout::Layout;
use crate::rows::{EVENT_COLUMNS, Owner, StoredState, event, incarnation, state};

pub(crate) fn get(
    connection: &mut Connection,
    layout: Layout,
    key: &SessionKey,
    window: EventWindow,
) -> Result<Option<StoredSession>, SessionError> {
    let transaction = connection.transaction().map_err(failed_to("begin to read a session"))?;
    let found = get_in(&transaction, layout, key, window);
    transaction.finish().map_err(failed_to("end reading a session"))?;
    found
}

/// A session with the state that it shares. Shared state that was deleted keeps its version in its
/// history.
const SESSION: &str = "
    SELECT s.state, s.update_time, s.sessile_version, s.sessile_incarnation, s.sessile_initial, a.state,
           coalesce(a.sessile_version, (SELECT max(version) FROM sessile_app_changes WHERE app_name = ?1), 0),
           u.state,
           coalesce(u.sessile_version, (
               SELECT max(version) FROM sessile_user_changes WHERE app_name = ?1 AND user_id = ?2), 0)
      FROM sessions s
      LEFT JOIN app_states a ON a.app_name = s.app_name
      LEFT JOIN user_states u ON u.app_name = s.app_name AND u.user_id = s.user_id
     WHERE s.app_name = ?1 AND s.user_id = ?2 AND s.id = ?3
";

fn get_in(
    connection: &Connection,
    layout: Layout,
    key: &SessionKey,
    window: EventWindow,
) -> Result<Option<StoredSession>, SessionError> {
    let mut statement = connection.prepare_cached(SESSION).map_err(failed_to("read a session"))?;
    let mut rows = statement.query([key.app(), key.user(), key.id()]).map_err(failed_to("read a session"))?;
    let Some(row) = rows.next().map_err(failed_to("read a session"))? else { return Ok(None) };
    let mut session = session(row, layout, key)?;
    session.events = Arc::new(events(connection, layout, key, window)?);
    Ok(Some(session))
}

fn session(row: &Row<'_>, layout: Layout, key: &SessionKey) -> Result<StoredSession, SessionError> {
    let own = Owner::Session(key.clone());
    let text: String = row.get(0).map_err(own.unreadable("state"))?;
    let time = row.get_ref(1).map_err(own.unreadable("update_time"))?;
    let version: i64 = row.get(2).map_err(own.unreadable("sessile_version"))?;
    let number: Option<i64> = row.get(3).map_err(own.unreadable("sessile_incarnation"))?;
    let initial: Option<String> = row.get(4).map_err(own.unreadable("sessile_initial"))?;
    let (app, app_version) = shared(row, 5, ScopeKey::app_of(key))?;
    let (user, user_version) = shared(row, 7, ScopeKey::user_of(key))?;
    Ok(StoredSession {
        key: key.clone(),
        incarnation: incarnation(number),
        version: version.unsigned_abs(),
        update_time: layout.read_time(time).map_err(|error| own.corrupt("update_time", error))?,
        session: state(&text).map_err(|error| own.corrupt("state", error))?,
        app,
        app_version,
        user,
        user_version,
        initial: initial
            .map(|text| state(&text).map_err(|error| own.corrupt("sessile_initial", error)))
            .transpose()?,
        events: Arc::default(),
    })
}

/// Shared state and its version, from two columns.
fn shared(row: &Row<'_>, first: usize, scope: ScopeKey) -> Result<(Arc<StateMap>, Version), SessionError> {
    let owner = Owner::Shared(scope);
    let text: Option<String> = row.get(first).map_err(owner.unreadable("state"))?;
    let version: i64 = row.get(first + 1).map_err(owner.unreadable("sessile_version"))?;
    let state = match text {
        Some(text) => StoredState { owner, text }.values()?,
        None => Arc::default(),
    };
    Ok((state, version.unsigned_abs()))
}

/// The events of a window, in a transaction that is open.
pub(crate) fn events(
    connection: &Connection,
    layout: Layout,
    key: &SessionKey,
    window: EventWindow,
) -> Result<Vec<SessionEvent>, SessionError> {
    let limit = window.last.map_or(-1, |last| i64::try_from(last).unwrap_or(i64::MAX));
    if limit == 0 {
        return Ok(Vec::new());
    }
    let mut query = format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3"
    );
    let mut values: Vec<Value> =
        [key.app(), key.user(), key.id()].map(|id| Value::Text(id.to_owned())).into();
    let mut filter = |condition: &str, value: Value| {
        values.push(value);
        query.push_str(&format!(" AND {condition} ?{}", values.len()));
    };
    if let Some(version) = window.after_version {
        filter("sessile_seq >", Value::Integer(i64::try_from(version).unwrap_or(i64::MAX)));
    }
    if let Some(version) = window.until_version {
        filter("sessile_seq <=", Value::Integer(i64::try_from(version).unwrap_or(i64::MAX)));
    }
    if let Some(time) = window.after_time {
        filter("timestamp >=", layout.write_time(time).map_err(failed_to("write a time"))?);
    }
    let (order, backwards) = if window.last.is_some() { ("DESC", true) } else { ("ASC", false) };
    values.push(Value::Integer(limit));
    query.push_str(&format!(" ORDER BY sessile_seq {order} LIMIT ?{}", values.len()));
    let mut statement = connection.prepare_cached(&query).map_err(failed_to("read events"))?;
    let mut rows = statement.query(params_from_iter(values)).map_err(failed_to("read events"))?;
    let mut events = Vec::new();
    while let Some(row) = rows.next().map_err(failed_to("read events"))? {
        events.push(event(row, key, layout)?);
    }
    if backwards {
        events.reverse();
    }
    Ok(events)
}
