//! What is read, each in one transaction and so from one moment.

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use sessile_session::{
    EventWindow, ListQuery, ScopeKey, SessionError, SessionEvent, SessionKey, StateMap, StoredSession,
};

use crate::failure::doing;
use crate::layout::Layout;
use crate::rows::{EVENT_COLUMNS, corrupt, event, state};

/// A session with the state that it shares.
const SESSION: &str = "
    SELECT s.user_id, s.id, s.state, s.update_time, s.sessile_version, s.sessile_initial,
           a.state, coalesce(a.sessile_version, 0), u.state, coalesce(u.sessile_version, 0)
      FROM sessions s
      LEFT JOIN app_states a ON a.app_name = s.app_name
      LEFT JOIN user_states u ON u.app_name = s.app_name AND u.user_id = s.user_id
     WHERE s.app_name = ?1
";

pub(crate) fn get(
    connection: &mut Connection,
    layout: Layout,
    key: &SessionKey,
    window: EventWindow,
) -> Result<Option<StoredSession>, SessionError> {
    let transaction = connection.transaction().map_err(doing("begin to read a session"))?;
    let found = get_in(&transaction, layout, key, window);
    transaction.finish().map_err(doing("end reading a session"))?;
    found
}

/// [`get`], in a transaction that is open.
pub(crate) fn get_in(
    connection: &Connection,
    layout: Layout,
    key: &SessionKey,
    window: EventWindow,
) -> Result<Option<StoredSession>, SessionError> {
    let query = format!("{SESSION} AND s.user_id = ?2 AND s.id = ?3");
    let mut statement = connection.prepare_cached(&query).map_err(doing("read a session"))?;
    let mut rows = statement.query([key.app(), key.user(), key.id()]).map_err(doing("read a session"))?;
    let Some(row) = rows.next().map_err(doing("read a session"))? else { return Ok(None) };
    let mut session = session(row, layout, key.app())?;
    session.events = Arc::new(events(connection, layout, key, window)?);
    Ok(Some(session))
}

fn session(row: &Row<'_>, layout: Layout, app: &str) -> Result<StoredSession, SessionError> {
    let reading = || doing::<rusqlite::Error>("read a session's row");
    let (user, id): (String, String) = (row.get(0).map_err(reading())?, row.get(1).map_err(reading())?);
    let address = format!("{app}/{user}/{id}");
    let key = SessionKey::from_stored(app, user, id);
    let text = |column: usize, name: &'static str| -> Result<Option<String>, SessionError> {
        row.get(column).map_err(|error| corrupt("sessions", name, &address, error))
    };
    let own = text(2, "state")?.ok_or_else(|| corrupt("sessions", "state", &address, "it is null"))?;
    let time = row.get_ref(3).map_err(reading())?;
    let shared = |column: usize, table: &'static str| -> Result<Arc<StateMap>, SessionError> {
        let text: Option<String> =
            row.get(column).map_err(|error| corrupt(table, "state", &row_of(table, &key), error))?;
        text.map_or_else(|| Ok(Arc::default()), |text| state(&text, table, "state", &row_of(table, &key)))
    };
    let version = |column: usize| -> Result<u64, SessionError> {
        let version: i64 = row.get(column).map_err(reading())?;
        Ok(version.unsigned_abs())
    };
    let initial = text(5, "sessile_initial")?
        .map(|text| state(&text, "sessions", "sessile_initial", &address))
        .transpose()?;
    Ok(StoredSession {
        update_time: layout
            .read_time(time)
            .map_err(|error| corrupt("sessions", "update_time", &address, error))?,
        session: state(&own, "sessions", "state", &address)?,
        app: shared(6, "app_states")?,
        user: shared(8, "user_states")?,
        initial,
        version: version(4)?,
        app_version: version(7)?,
        user_version: version(9)?,
        events: Arc::default(),
        key,
    })
}

/// The row of a table that a session sees.
fn row_of(table: &str, key: &SessionKey) -> String {
    match table {
        "app_states" => key.app().to_owned(),
        "user_states" => format!("{}/{}", key.app(), key.user()),
        _ => key.to_string(),
    }
}

fn events(
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
        filter("timestamp >=", layout.write_time(time).map_err(doing("write a time"))?);
    }
    let (order, backwards) = if window.last.is_some() { ("DESC", true) } else { ("ASC", false) };
    query.push_str(&format!(" ORDER BY sessile_seq {order} LIMIT {limit}"));
    let mut statement = connection.prepare_cached(&query).map_err(doing("read events"))?;
    let mut rows = statement.query(params_from_iter(values)).map_err(doing("read events"))?;
    let mut events = Vec::new();
    while let Some(row) = rows.next().map_err(doing("read events"))? {
        events.push(event(row, key, layout)?);
    }
    if backwards {
        events.reverse();
    }
    Ok(events)
}

pub(crate) fn list(
    connection: &Connection,
    layout: Layout,
    query: &ListQuery,
) -> Result<Vec<StoredSession>, SessionError> {
    let mut text = SESSION.to_owned();
    let mut values = vec![Value::Text(query.app.clone())];
    if let Some(user) = &query.user {
        values.push(Value::Text(user.clone()));
        text.push_str(" AND s.user_id = ?2");
    }
    let (compare, order) = if query.newest_first { ("<", "DESC") } else { (">", "ASC") };
    if let Some(after) = &query.after {
        let first = values.len() + 1;
        values.push(layout.write_time(after.update_time).map_err(|_| SessionError::InvalidCursor)?);
        values.push(Value::Text(after.user.clone()));
        values.push(Value::Text(after.id.clone()));
        let (second, third) = (first + 1, first + 2);
        text.push_str(&format!(
            " AND (s.update_time, s.user_id, s.id) {compare} (?{first}, ?{second}, ?{third})"
        ));
    }
    let limit = query.limit;
    text.push_str(&format!(" ORDER BY s.update_time {order}, s.user_id {order}, s.id {order} LIMIT {limit}"));
    let mut statement = connection.prepare_cached(&text).map_err(doing("list sessions"))?;
    let mut rows = statement.query(params_from_iter(values)).map_err(doing("list sessions"))?;
    let mut sessions = Vec::new();
    while let Some(row) = rows.next().map_err(doing("list sessions"))? {
        sessions.push(session(row, layout, &query.app)?);
    }
    Ok(sessions)
}

const APP_STATE: &str = "SELECT state FROM app_states WHERE app_name = ?1";
const USER_STATE: &str = "SELECT state FROM user_states WHERE app_name = ?1 AND user_id = ?2";

pub(crate) fn scope_state(connection: &Connection, scope: &ScopeKey) -> Result<StateMap, SessionError> {
    let (query, table, row, values) = match scope {
        ScopeKey::App(app) => (APP_STATE, "app_states", app.clone(), vec![app]),
        ScopeKey::User(app, user) => (USER_STATE, "user_states", format!("{app}/{user}"), vec![app, user]),
    };
    let mut statement = connection.prepare_cached(query).map_err(doing("read shared state"))?;
    let text: Option<String> = statement
        .query_row(params_from_iter(values), |row| row.get(0))
        .optional()
        .map_err(|error| corrupt(table, "state", &row, error))?;
    match text {
        Some(text) => state(&text, table, "state", &row).map(Arc::unwrap_or_clone),
        None => Ok(StateMap::new()),
    }
}
