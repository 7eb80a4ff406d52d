//! Columns into values, with the address of what cannot be understood.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::Row;
use serde_json::value::RawValue;
use sessile_session::{BoxError, Event, SessionError, SessionEvent, SessionKey, StateMap};
use sessile_state::{Change, Delta, Scope, SharedValue};

use crate::layout::Layout;

/// A scope's state as it is stored: each value's text is kept, so that a key that is not touched is
/// written back as it was.
#[derive(Default)]
pub(crate) struct StateText(BTreeMap<String, Box<RawValue>>);

impl StateText {
    pub(crate) fn parse(text: &str, table: &'static str, row: &str) -> Result<Self, SessionError> {
        serde_json::from_str(text).map(Self).map_err(|error| corrupt(table, "state", row, error))
    }

    pub(crate) fn apply(&mut self, delta: &Delta) -> Result<(), serde_json::Error> {
        for (key, change) in delta.iter() {
            match change {
                Change::Set(value) => self.0.insert(key.to_owned(), serde_json::value::to_raw_value(value)?),
                Change::Remove => self.0.remove(key),
            };
        }
        Ok(())
    }

    /// Applies a delta to state that sessions share. A row written by hand may name a key with its prefix, which is
    /// read as the same key: that one goes, so that it neither shadows what is set nor survives its removal.
    pub(crate) fn apply_shared(&mut self, delta: &Delta, scope: Scope) -> Result<(), serde_json::Error> {
        for (key, _) in delta.iter() {
            self.0.remove(&scope.key(key));
        }
        self.apply(delta)
    }

    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.0)
    }
}

/// The values of a scope's state.
pub(crate) fn state(
    text: &str,
    table: &'static str,
    column: &'static str,
    row: &str,
) -> Result<Arc<StateMap>, SessionError> {
    let state: BTreeMap<String, SharedValue> =
        serde_json::from_str(text).map_err(|error| corrupt(table, column, row, error))?;
    Ok(Arc::new(state))
}

/// The columns that [`event`] reads.
pub(crate) const EVENT_COLUMNS: &str = "id, invocation_id, timestamp, event_data, sessile_seq";

/// An event, as google-adk reads it: two columns override the JSON, the time is only a fallback.
pub(crate) fn event(row: &Row<'_>, key: &SessionKey, layout: Layout) -> Result<SessionEvent, SessionError> {
    let id: String = row.get(0).map_err(|error| corrupt("events", "id", &key.to_string(), error))?;
    let address = || format!("{key}/{id}");
    let bad = |column: &'static str, error: BoxError| corrupt("events", column, &address(), error);
    let data = row.get_ref(3).map_err(|error| bad("event_data", error.into()))?;
    let data = data.as_str_or_null().map_err(|error| bad("event_data", error.into()))?.unwrap_or("{}");
    let mut event = Event::from_stored_json(data).map_err(|error| bad("event_data", error.into()))?;
    event.invocation_id = row.get(1).map_err(|error| bad("invocation_id", error.into()))?;
    if event.timestamp == 0.0 {
        let time = row.get_ref(2).map_err(|error| bad("timestamp", error.into()))?;
        event.timestamp = layout.read_time(time).map_err(|error| bad("timestamp", error.into()))?;
    }
    let version: i64 = row.get(4).map_err(|error| bad("sessile_seq", error.into()))?;
    event.id = id;
    Ok(SessionEvent { version: version.unsigned_abs(), event: Arc::new(event) })
}

pub(crate) fn corrupt(
    table: &'static str,
    column: &'static str,
    row: &str,
    source: impl Into<BoxError>,
) -> SessionError {
    SessionError::Corrupt { table, column, row: row.to_owned(), source: source.into() }
}
