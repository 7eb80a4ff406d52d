//! Parsing columns; errors name the table, column and row.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Error, Row};
use sessile_session::{
    BoxError, Event, Incarnation, ScopeKey, SessionError, SessionEvent, SessionKey, StateMap,
};
use sessile_state::{Scope, SharedValue};

use crate::failure::failed_to;
use crate::layout::Layout;

/// The owner of a state, which names its row in errors.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    Session(SessionKey),
    Shared(ScopeKey),
}

impl Owner {
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::Session(_) => Scope::Session,
            Self::Shared(scope) => scope.scope(),
        }
    }

    pub(crate) fn table(&self) -> &'static str {
        match self {
            Self::Session(_) => "sessions",
            Self::Shared(ScopeKey::App(_)) => "app_states",
            Self::Shared(ScopeKey::User(..)) => "user_states",
        }
    }

    /// The row's key, as errors name it.
    pub(crate) fn row(&self) -> String {
        match self {
            Self::Session(key) => key.to_string(),
            Self::Shared(ScopeKey::App(app)) => app.clone(),
            Self::Shared(ScopeKey::User(app, user)) => format!("{app}/{user}"),
        }
    }

    /// An error about one of the row's columns.
    pub(crate) fn corrupt(&self, column: &'static str, source: impl Into<BoxError>) -> SessionError {
        corrupt(self.table(), column, &self.row(), source)
    }

    /// The error of a column that could not be read: it is corrupt if its content has another type;
    /// otherwise the database failed.
    pub(crate) fn unreadable(&self, column: &'static str) -> impl FnOnce(Error) -> SessionError {
        move |error| match error {
            Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..) => self.corrupt(column, error),
            other => failed_to("read a row")(other),
        }
    }
}

/// A text of JSON that was read from the column `state`, with its owner.
#[derive(Debug)]
pub(crate) struct StoredState {
    pub(crate) owner: Owner,
    pub(crate) text: String,
}

impl StoredState {
    /// Its keys and values.
    pub(crate) fn values(&self) -> Result<Arc<StateMap>, SessionError> {
        state(&self.text).map_err(|error| self.owner.corrupt("state", error))
    }
}

/// The keys and values of a state.
pub(crate) fn state(text: &str) -> Result<Arc<StateMap>, serde_json::Error> {
    serde_json::from_str::<BTreeMap<String, SharedValue>>(text).map(Arc::new)
}

/// A session's incarnation; sessions from before incarnations have none.
pub(crate) fn incarnation(column: Option<i64>) -> Incarnation {
    Incarnation(column.map_or(0, i64::unsigned_abs))
}

/// The columns that [`event`] reads.
pub(crate) const EVENT_COLUMNS: &str = "id, invocation_id, timestamp, event_data, sessile_seq";

/// An event as google-adk reads it: the columns of the id and the invocation override the JSON;
/// that of the time is only a fallback.
pub(crate) fn event(row: &Row<'_>, key: &SessionKey, layout: Layout) -> Result<SessionEvent, SessionError> {
    let id: String = row.get(0).map_err(|error| corrupt("events", "id", &key.to_string(), error))?;
    let address = || format!("{key}/{id}");
    let bad = |column: &'static str, error: BoxError| corrupt("events", column, &address(), error);
    let data = row.get_ref(3).map_err(|error| bad("event_data", error.into()))?;
    let data = data.as_str_or_null().map_err(|error| bad("event_data", error.into()))?.unwrap_or("{}");
    let mut event = Event::from_stored_json(data).map_err(|error| bad("event_data", error.into()))?;
    event.invocation_id = row.get(1).map_err(|error| bad("invocation_id", error.into()))?;
    if event.timestamp.is_none() {
        let time = row.get_ref(2).map_err(|error| bad("timestamp", error.into()))?;
        event.timestamp = Some(layout.read_time(time).map_err(|error| bad("timestamp", error.into()))?);
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
