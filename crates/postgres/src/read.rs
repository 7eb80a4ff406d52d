//! Reads, each in one statement and so from one snapshot.

use std::pin::pin;
use std::sync::Arc;

use deadpool_postgres::Client;
use futures_util::StreamExt;
use sessile_session::{
    BoxError, Event, EventWindow, Incarnation, ScopeKey, ScopeState, SessionError, SessionEvent, SessionKey,
    StateMap, StoredSession, doing,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// A session with the state that it shares.
const SESSION: &str = "
    SELECT 0 AS kind, s.user_id, s.id, s.state::text AS own, extract(epoch FROM s.update_time)::float8 AS time,
           s.sessile_version AS version, coalesce(s.sessile_incarnation, 0) AS incarnation,
           s.sessile_initial::text AS initial,
           a.state::text AS app, coalesce(a.sessile_version, 0) AS app_version,
           u.state::text AS shared, coalesce(u.sessile_version, 0) AS user_version
      FROM sessions s
      LEFT JOIN app_states a ON a.app_name = s.app_name
      LEFT JOIN user_states u ON u.app_name = s.app_name AND u.user_id = s.user_id
     WHERE s.app_name = $1
";

/// Events, in the columns of [`SESSION`], so that one statement reads both from one snapshot.
const EVENTS: &str = "
    SELECT 1, id, invocation_id, event_data::text,
           CASE WHEN event_data ? 'timestamp' THEN 0 ELSE extract(epoch FROM timestamp)::float8 END,
           sessile_seq, 0::bigint, NULL::text, NULL::text, 0::bigint, NULL::text, 0::bigint
      FROM events
     WHERE app_name = $1 AND user_id = $2 AND session_id = $3
       AND sessile_seq > $4 AND sessile_seq <= $5
";

pub(crate) async fn get(
    client: &Client,
    key: &SessionKey,
    window: EventWindow,
) -> Result<Option<StoredSession>, SessionError> {
    let bound = |version: Option<u64>, default: i64| {
        version.map_or(default, |v| i64::try_from(v).unwrap_or(i64::MAX))
    };
    let after = bound(window.after_version, -1);
    let until = bound(window.until_version, i64::MAX);
    let last = window.last.map_or(i64::MAX, |last| i64::try_from(last).unwrap_or(i64::MAX));
    let (app, user, id) = (key.app(), key.user(), key.id());
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&app, &user, &id];
    let mut query = format!("{SESSION} AND s.user_id = $2 AND s.id = $3");
    if last > 0 {
        values.extend([&after as &(dyn ToSql + Sync), &until, &last]);
        let time = match &window.after_time {
            Some(time) => {
                values.push(time);
                " AND timestamp >= sessile_time($7)"
            }
            None => "",
        };
        let order = if window.last.is_some() { "DESC" } else { "ASC" };
        query = format!("({query}) UNION ALL ({EVENTS}{time} ORDER BY sessile_seq {order} LIMIT $6)");
    }
    let statement = client.prepare_cached(&query).await.map_err(doing("read a session"))?;
    // Rows are parsed as they arrive: the server works meanwhile, and their texts are not kept.
    let rows = client.query_raw(&statement, values).await.map_err(doing("read a session"))?;
    let mut rows = pin!(rows);
    let (mut found, mut events) = (None, Vec::new());
    while let Some(row) = rows.next().await.transpose().map_err(doing("read a session"))? {
        match row.get::<_, i32>(0) {
            0 => found = Some(session(&row, app)?),
            _ => events.push(event(&row, key)?),
        }
    }
    let Some(mut session) = found else { return Ok(None) };
    events.sort_by_key(|event: &SessionEvent| event.version); // ascending or descending, see `order`
    session.events = Arc::new(events);
    Ok(Some(session))
}

fn event(row: &Row, key: &SessionKey) -> Result<SessionEvent, SessionError> {
    let data = row.get::<_, Option<&str>>(3).unwrap_or("{}");
    let event = stored_event(key, row.get(1), row.get(2), row.get(4), data)?;
    Ok(SessionEvent { version: row.get::<_, i64>(5).unsigned_abs(), event: Arc::new(event) })
}

/// An event as google-adk reads it: the columns of the id and the invocation override the JSON;
/// that of the time is only a fallback.
pub(crate) fn stored_event(
    key: &SessionKey,
    id: String,
    invocation: String,
    time: Option<f64>,
    data: &str,
) -> Result<Event, SessionError> {
    let mut event = Event::from_stored_json(data)
        .map_err(|error| corrupt("events", "event_data", format!("{key}/{id}"), error))?;
    event.timestamp = event.timestamp.or(time);
    event.invocation_id = invocation;
    event.id = id;
    Ok(event)
}

fn session(row: &Row, app: &str) -> Result<StoredSession, SessionError> {
    let (user, id): (String, String) = (row.get("user_id"), row.get("id"));
    let key = SessionKey::from_stored(app, user, id);
    type Found = Result<Option<Arc<StateMap>>, SessionError>;
    let state = |name: &str, table: &'static str, column: &'static str| -> Found {
        let text: Option<&str> = row.get(name);
        let parsed: Result<Option<StateMap>, _> = text.map(serde_json::from_str).transpose();
        let row = || match table {
            "app_states" => app.to_owned(),
            "user_states" => format!("{app}/{}", key.user()),
            _ => key.to_string(),
        };
        Ok(parsed.map_err(|error| corrupt(table, column, row(), error))?.map(Arc::new))
    };
    let version = |column: &str| row.get::<_, i64>(column).unsigned_abs();
    Ok(StoredSession {
        incarnation: Incarnation(version("incarnation")),
        version: version("version"),
        app_version: version("app_version"),
        user_version: version("user_version"),
        update_time: row.get("time"),
        session: state("own", "sessions", "state")?
            .ok_or_else(|| corrupt("sessions", "state", key.to_string(), "it is null"))?,
        app: state("app", "app_states", "state")?.unwrap_or_else(Arc::default),
        user: state("shared", "user_states", "state")?.unwrap_or_else(Arc::default),
        initial: state("initial", "sessions", "sessile_initial")?,
        events: Arc::default(),
        key,
    })
}

const APP_STATE: &str = "SELECT state::text, sessile_version FROM app_states WHERE app_name = $1";
const USER_STATE: &str =
    "SELECT state::text, sessile_version FROM user_states WHERE app_name = $1 AND user_id = $2";

pub(crate) async fn scope_state(client: &Client, scope: &ScopeKey) -> Result<ScopeState, SessionError> {
    let (query, values): (_, Vec<&(dyn ToSql + Sync)>) = match scope {
        ScopeKey::App(app) => (APP_STATE, vec![app]),
        ScopeKey::User(app, user) => (USER_STATE, vec![app, user]),
    };
    let (table, row) = row_of(scope);
    let statement = client.prepare_cached(query).await.map_err(doing("read shared state"))?;
    let Some(found) = client.query_opt(&statement, &values).await.map_err(doing("read shared state"))? else {
        return Ok(ScopeState::default());
    };
    let state = serde_json::from_str(found.get(0)).map_err(|error| corrupt(table, "state", row, error))?;
    Ok(ScopeState { version: found.get::<_, i64>(1).unsigned_abs(), state: Arc::new(state) })
}

/// The table of shared state, and its row as errors name it.
pub(crate) fn row_of(scope: &ScopeKey) -> (&'static str, String) {
    match scope {
        ScopeKey::App(app) => ("app_states", app.clone()),
        ScopeKey::User(app, user) => ("user_states", format!("{app}/{user}")),
    }
}

pub(crate) fn corrupt(
    table: &'static str,
    column: &'static str,
    row: String,
    source: impl Into<BoxError>,
) -> SessionError {
    SessionError::Corrupt { table, column, row, source: source.into() }
}
