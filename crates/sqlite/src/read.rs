//! What is read, each in one transaction and so from one moment.

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use sessile_session::{
    EventWindow, ScopeKey, SessionError, SessionEvent, SessionKey, StateMap, StoredSession, Version,
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
    let shared = |column: usize, scope: ScopeKey| -> Result<Arc<StateMap>, SessionError> {
        let (table, place) = row_of(&scope);
        let text: Option<String> = row.get(column).map_err(|error| corrupt(table, "state", &place, error))?;
        text.map_or_else(|| Ok(Arc::default()), |text| state(&text, table, "state", &place))
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
        app: shared(6, ScopeKey::app_of(&key))?,
        user: shared(8, ScopeKey::user_of(&key))?,
        initial,
        version: version(4)?,
        app_version: version(7)?,
        user_version: version(9)?,
        events: Arc::default(),
        key,
    })
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

const APP_STATE: &str = "SELECT state, sessile_version FROM app_states WHERE app_name = ?1";
const USER_STATE: &str =
    "SELECT state, sessile_version FROM user_states WHERE app_name = ?1 AND user_id = ?2";

/// State that sessions share, and what its text takes.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) state: Arc<StateMap>,
    pub(crate) version: Version,
    pub(crate) bytes: usize,
}

pub(crate) fn shared(connection: &Connection, scope: &ScopeKey) -> Result<Shared, SessionError> {
    let (query, values) = match scope {
        ScopeKey::App(app) => (APP_STATE, vec![app]),
        ScopeKey::User(app, user) => (USER_STATE, vec![app, user]),
    };
    let (table, row) = row_of(scope);
    let mut statement = connection.prepare_cached(query).map_err(doing("read shared state"))?;
    let found: Option<(String, i64)> = statement
        .query_row(params_from_iter(values), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(|error| corrupt(table, "state", &row, error))?;
    let Some((text, version)) = found else { return Ok(Shared::default()) };
    let state = state(&text, table, "state", &row)?;
    Ok(Shared { state, version: version.unsigned_abs(), bytes: text.len() })
}

pub(crate) fn scope_state(connection: &Connection, scope: &ScopeKey) -> Result<StateMap, SessionError> {
    shared(connection, scope).map(|shared| Arc::unwrap_or_clone(shared.state))
}

/// The table of shared state, and its row as errors name it.
pub(crate) fn row_of(scope: &ScopeKey) -> (&'static str, String) {
    match scope {
        ScopeKey::App(app) => ("app_states", app.clone()),
        ScopeKey::User(app, user) => ("user_states", format!("{app}/{user}")),
    }
}
