//! The rows of events.

use rusqlite::types::Value;
use rusqlite::{Connection, params};
use sessile_session::{Event, JsonAroundDelta, SessionError, SessionEvent, SessionKey, Version};

use crate::failure::failed_to;
use crate::layout::Layout;
use crate::rows::{EVENT_COLUMNS, event};
use crate::statement::Statement;

/// The columns of an event that are costly to make, so the caller's task makes them.
pub(crate) struct EventColumns {
    pub(crate) data: String,
    pub(crate) time: Value,
}

impl EventColumns {
    pub(crate) fn new(event: &Event, layout: Layout) -> Result<Self, SessionError> {
        Ok(Self { data: json_of(event)?, time: time_of(event, layout)? })
    }
}

/// The JSON of an event, as it is stored.
pub(crate) fn json_of(event: &Event) -> Result<String, SessionError> {
    event.to_stored_json().map_err(|error| invalid(event, error.to_string()))
}

/// The JSON of an event with operations, as it is stored, without their results.
pub(crate) fn json_around_delta(event: &mut Event) -> Result<JsonAroundDelta, SessionError> {
    JsonAroundDelta::new(event).map_err(|error| invalid(event, error.to_string()))
}

/// The time of an event, as its column holds it.
pub(crate) fn time_of(event: &Event, layout: Layout) -> Result<Value, SessionError> {
    let time = layout.write_time(event.time());
    time.map_err(|error| invalid(event, format!("its timestamp cannot be stored: {error}")))
}

fn invalid(event: &Event, reason: String) -> SessionError {
    SessionError::InvalidEvent { id: event.id.clone(), reason }
}

pub(crate) const INSERT_EVENT: &str = "
    INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data, sessile_seq)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
    ON CONFLICT (app_name, user_id, session_id, id) DO NOTHING
";

/// Inserts an event with [`INSERT_EVENT`] unless its session has one with this id; returns
/// whether it did.
pub(crate) fn insert(
    statement: &mut Statement<'_>,
    key: &SessionKey,
    version: Version,
    event: &Event,
    time: &Value,
    data: &str,
) -> Result<bool, SessionError> {
    let (app, user, id) = (key.app(), key.user(), key.id());
    let inserted = statement
        .get()
        .and_then(|statement| {
            statement.execute(params![event.id, app, user, id, event.invocation_id, time, data, version])
        })
        .map_err(failed_to("insert an event"))?;
    Ok(inserted == 1)
}

/// Finds an event by its id.
pub(crate) fn find(
    connection: &Connection,
    layout: Layout,
    key: &SessionKey,
    id: &str,
) -> Result<Option<SessionEvent>, SessionError> {
    let query = format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3 AND id = ?4"
    );
    let mut statement = connection.prepare_cached(&query).map_err(failed_to("read an event"))?;
    let mut rows =
        statement.query([key.app(), key.user(), key.id(), id]).map_err(failed_to("read an event"))?;
    let row = rows.next().map_err(failed_to("read an event"))?;
    row.map(|row| event(row, key, layout)).transpose()
}

const DELETE_EVENTS: &str = "DELETE FROM events WHERE app_name = ?1 AND user_id = ?2 AND session_id = ?3";

/// Deletes all events of a session. The foreign key does not always do it: other programs may have
/// dropped it.
pub(crate) fn delete_all(connection: &Connection, key: &SessionKey) -> Result<(), SessionError> {
    connection
        .prepare_cached(DELETE_EVENTS)
        .and_then(|mut statement| statement.execute([key.app(), key.user(), key.id()]))
        .map(drop)
        .map_err(failed_to("delete events"))
}
