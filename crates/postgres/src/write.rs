//! What is written, as the JSON that the database's functions take.

use serde_json::value::RawValue;
use sessile_session::{
    Appended, Commit, NewSession, SessionError, SessionKey, StateMap, Version, apply, next_update_time,
};
use sessile_state::{Delta, Scope};
use tokio_postgres::Row;

use crate::json::{Fields, delta, event, raw, state_value};

/// What `sessile_append_all` answered to a commit.
pub(crate) fn appended(commit: &Commit, row: &Row) -> Result<Appended, SessionError> {
    let key = commit.key.clone();
    let version = |column: &str| row.get::<_, Option<i64>>(column).map_or(0, i64::unsigned_abs);
    let conflict = |scope: Scope, expected: Option<Version>| {
        Err(SessionError::Conflict {
            key: key.clone(),
            scope,
            expected: expected.unwrap_or(0),
            actual: version("actual"),
        })
    };
    match row.get::<_, &str>("status") {
        "done" | "again" => Ok(Appended {
            version: version("version"),
            update_time: row.get::<_, Option<f64>>("update_time").unwrap_or(0.0),
        }),
        "missing" => Err(SessionError::NotFound { key }),
        "other_event" => Err(SessionError::EventConflict { key, id: commit.event.id.clone() }),
        "session" => conflict(Scope::Session, commit.expect.session),
        "user" => conflict(Scope::User, commit.expect.user),
        "app" => conflict(Scope::App, commit.expect.app),
        other => Err(SessionError::Backend {
            action: "append an event",
            source: format!("answer {other:?}").into(),
        }),
    }
}

/// A session for `sessile_create`.
pub(crate) fn new_session(new: &NewSession) -> Result<Box<RawValue>, SessionError> {
    let mut state = new.session.clone();
    let mut update_time = new.time;
    let mut events = Vec::with_capacity(new.events.len());
    for (listed, changes) in &new.events {
        apply(&mut state, changes);
        update_time = next_update_time(update_time, listed.timestamp);
        let mut fields = Fields::new();
        fields.insert("event_id", raw(&listed.id)?);
        fields.insert("invocation", raw(&listed.invocation_id)?);
        fields.insert("time", raw(&listed.timestamp)?);
        fields.insert("event", event(listed)?);
        events.push(fields);
    }
    let mut fields = address(&new.key)?;
    fields.insert("time", raw(&new.time)?);
    fields.insert("update_time", raw(&update_time)?);
    fields.insert("initial", state_map(&new.session)?);
    fields.insert("state", state_map(&state)?);
    fields.insert("app_delta", delta(&new.app, Scope::App)?);
    fields.insert("user_delta", delta(&new.user, Scope::User)?);
    fields.insert("events", raw(&events)?);
    raw(&fields)
}

/// A delta for `sessile_write_app` or `sessile_write_user`.
pub(crate) fn scope_delta(changes: &Delta, scope: Scope) -> Result<Box<RawValue>, SessionError> {
    delta(changes, scope)
}

fn state_map(state: &StateMap) -> Result<Box<RawValue>, SessionError> {
    let mut values = std::collections::BTreeMap::new();
    for (key, value) in state {
        values.insert(key.as_str(), state_value(key, value, "")?);
    }
    raw(&values)
}

fn address(key: &SessionKey) -> Result<Fields, SessionError> {
    Ok(Fields::from([("app", raw(key.app())?), ("user", raw(key.user())?), ("id", raw(key.id())?)]))
}
