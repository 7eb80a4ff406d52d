//! The rows of the history of shared state.
//!
//! A row has the changes that one transaction made to a scope, as a JSON list in their order; its
//! version is that of the last one. A write without a session has a row of its own, with its
//! request id.

use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params, params_from_iter};
use sessile_session::{
    BoxError, ChangeWindow, ChangedBy, OverwriteNotes, ScopeChange, ScopeKey, SessionError, Undo, Version,
    changes_from_json,
};
use sessile_state::Delta;

use crate::failure::failed_to;
use crate::rows::corrupt;

/// The part of a [`ScopeChange`] that is known before its commit, as JSON: when, by whom, and what
/// was to be changed. The caller's task makes it, so that the writing thread need not.
pub(crate) struct ChangeNote {
    pub(crate) time: f64,
    json: String,
}

impl ChangeNote {
    /// `by` is a [`ChangedBy`] as JSON, which the scopes of a commit share.
    pub(crate) fn new(time: f64, by: &str, change: &Delta) -> Result<Self, SessionError> {
        let json = || -> Result<String, BoxError> {
            let mut json = Vec::with_capacity(by.len() + 128);
            json.extend_from_slice(br#""time":"#);
            serde_json::to_writer(&mut json, &time)?;
            json.extend_from_slice(br#","by":"#);
            json.extend_from_slice(by.as_bytes());
            json.extend_from_slice(br#","change":"#);
            serde_json::to_writer(&mut json, change)?;
            Ok(String::from_utf8(json)?)
        };
        Ok(Self { time, json: json().map_err(failed_to("write the history of shared state"))? })
    }
}

/// Who makes a change, as JSON.
pub(crate) fn by_json(by: &ChangedBy) -> Result<String, SessionError> {
    serde_json::to_string(by).map_err(failed_to("write the history of shared state"))
}

/// Changes of a scope that are not written yet: the row that they will be.
#[derive(Default)]
pub(crate) struct NewRow {
    /// The version of the last one.
    version: Version,
    /// Their list without its end; empty if there are none.
    json: String,
}

impl NewRow {
    /// Adds a change.
    pub(crate) fn push(
        &mut self,
        version: Version,
        note: &ChangeNote,
        undo: &Undo,
        overwrote: &OverwriteNotes,
    ) -> Result<(), SessionError> {
        let start = if self.json.is_empty() { "[" } else { "," };
        let version_text = version.to_string();
        self.version = version;
        for part in [start, r#"{"version":"#, &version_text, ",", &note.json] {
            self.json.push_str(part);
        }
        if *undo != Undo::default() {
            let undo = serde_json::to_string(undo).map_err(failed_to("write the history of shared state"))?;
            self.json.push_str(r#","undo":"#);
            self.json.push_str(&undo);
        }
        if !overwrote.is_empty() {
            let told =
                serde_json::to_string(overwrote).map_err(failed_to("write the history of shared state"))?;
            self.json.push_str(r#","overwrote":"#);
            self.json.push_str(&told);
        }
        self.json.push('}');
        Ok(())
    }
}

const INSERT_APP: &str = "
    INSERT INTO sessile_app_changes (app_name, version, request_id, changes, written_at)
    VALUES (?1, ?2, ?3, ?4, unixepoch())
";
const INSERT_USER: &str = "
    INSERT INTO sessile_user_changes (app_name, user_id, version, request_id, changes, written_at)
    VALUES (?1, ?2, ?3, ?4, ?5, unixepoch())
";

/// Writes a row, unless it has no changes.
pub(crate) fn insert(
    connection: &Connection,
    scope: &ScopeKey,
    request: Option<&str>,
    row: NewRow,
) -> Result<(), SessionError> {
    let NewRow { version, mut json } = row;
    if json.is_empty() {
        return Ok(());
    }
    json.push(']');
    let inserted = match scope {
        ScopeKey::App(app) => connection
            .prepare_cached(INSERT_APP)
            .and_then(|mut statement| statement.execute(params![app, version, request, json])),
        ScopeKey::User(app, user) => connection
            .prepare_cached(INSERT_USER)
            .and_then(|mut statement| statement.execute(params![app, user, version, request, json])),
    };
    inserted.map(drop).map_err(failed_to("write the history of shared state"))
}

/// Rows that may have changes of a window. The row of a batch is named by its last version, so the
/// last row to look at is the first that is not before the window's end.
const APP_ROWS: &str = "
    SELECT version, changes FROM sessile_app_changes
     WHERE app_name = ?1 AND version > ?2 AND version <= coalesce(
        (SELECT min(version) FROM sessile_app_changes WHERE app_name = ?1 AND version >= ?3), 9223372036854775807)
     ORDER BY version
";
const USER_ROWS: &str = "
    SELECT version, changes FROM sessile_user_changes
     WHERE app_name = ?1 AND user_id = ?2 AND version > ?3 AND version <= coalesce(
        (SELECT min(version) FROM sessile_user_changes WHERE app_name = ?1 AND user_id = ?2 AND version >= ?4),
        9223372036854775807)
     ORDER BY version
";

/// The changes of a window.
pub(crate) fn changes(
    connection: &Connection,
    scope: &ScopeKey,
    window: ChangeWindow,
) -> Result<Vec<ScopeChange>, SessionError> {
    let mut found = Vec::new();
    let direction = if window.oldest_first { "ASC" } else { "DESC" };
    let ordered = |rows: &str| format!("{} {direction}", rows.trim_end());
    let (mut statement, mut values) = prepare(connection, scope, &ordered(APP_ROWS), &ordered(USER_ROWS))?;
    for bound in [window.after, window.until.unwrap_or(Version::MAX)] {
        values.push(Value::Integer(i64::try_from(bound).unwrap_or(i64::MAX)));
    }
    let reading = || failed_to("read the history of shared state");
    let mut rows = statement.query(params_from_iter(values)).map_err(reading())?;
    while found.len() < window.limit
        && let Some(row) = rows.next().map_err(reading())?
    {
        let version: Version = row.get(0).map_err(reading())?;
        let text = row.get_ref(1).map_err(reading())?;
        let text = text.as_str().map_err(|error| unreadable(scope, version, error))?;
        let mut row = changes_from_json(text).map_err(|error| unreadable(scope, version, error))?;
        if !window.oldest_first {
            row.reverse();
        }
        let passing = row.into_iter().filter(|change| window.admits(change.version));
        found.extend(passing.take(window.limit - found.len()));
    }
    Ok(found)
}

const APP_REQUEST: &str = "
    SELECT version FROM sessile_app_changes WHERE app_name = ?1 AND request_id = ?2
";
const USER_REQUEST: &str = "
    SELECT version FROM sessile_user_changes WHERE app_name = ?1 AND user_id = ?2 AND request_id = ?3
";

/// The version that a write with this request id made.
pub(crate) fn version_of_request(
    connection: &Connection,
    scope: &ScopeKey,
    request: &str,
) -> Result<Option<Version>, SessionError> {
    let (mut statement, mut values) = prepare(connection, scope, APP_REQUEST, USER_REQUEST)?;
    values.push(Value::Text(request.to_owned()));
    let version = statement.query_row(params_from_iter(values), |row| row.get(0)).optional();
    version.map_err(failed_to("look for a request in the history of shared state"))
}

const APP_NEWEST: &str = "SELECT max(version) FROM sessile_app_changes WHERE app_name = ?1";
const USER_NEWEST: &str =
    "SELECT max(version) FROM sessile_user_changes WHERE app_name = ?1 AND user_id = ?2";

/// The version of a scope that has no row: 0 if it never had one. If the row was deleted it is the
/// last one, because a scope's version never goes back.
pub(crate) fn newest_version(connection: &Connection, scope: &ScopeKey) -> Result<Version, SessionError> {
    let (mut statement, values) = prepare(connection, scope, APP_NEWEST, USER_NEWEST)?;
    let newest: rusqlite::Result<Option<Version>> =
        statement.query_row(params_from_iter(values), |row| row.get(0));
    Ok(newest.map_err(failed_to("read the newest version of shared state"))?.unwrap_or(0))
}

/// The statement for the kind of scope, and the scope's part of its values.
fn prepare<'c>(
    connection: &'c Connection,
    scope: &ScopeKey,
    of_app: &str,
    of_user: &str,
) -> Result<(CachedStatement<'c>, Vec<Value>), SessionError> {
    let (query, values) = match scope {
        ScopeKey::App(app) => (of_app, vec![Value::Text(app.clone())]),
        ScopeKey::User(app, user) => (of_user, vec![Value::Text(app.clone()), Value::Text(user.clone())]),
    };
    let statement =
        connection.prepare_cached(query).map_err(failed_to("read the history of shared state"))?;
    Ok((statement, values))
}

fn unreadable(scope: &ScopeKey, version: Version, error: impl Into<BoxError>) -> SessionError {
    match scope {
        ScopeKey::App(app) => corrupt("sessile_app_changes", "changes", &format!("{app}/{version}"), error),
        ScopeKey::User(app, user) => {
            corrupt("sessile_user_changes", "changes", &format!("{app}/{user}/{version}"), error)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_row_is_written_as_the_list_of_its_changes() {
        let by = ChangedBy::Request { request: "r \"1\"".to_owned(), principal: None };
        let mut undo = Undo::default();
        undo.added.insert("log".to_owned(), 2);
        let mut delta = Delta::from_iter([("a", json!({"deep": [1.5, null]}))]);
        delta.append("log", [json!(1), json!(2)]);
        delta.remove("gone");
        let changes: Vec<_> = [(7, Undo::default()), (8, undo)]
            .into_iter()
            .map(|(version, undo)| {
                let (by, change) = (by.clone(), delta.clone());
                let overwrote =
                    OverwriteNotes::from([("app:a".to_owned(), json!({"read": 1, "found": [2]}).into())]);
                ScopeChange { version, time: 1_700_000_000.25, by, change, undo, overwrote }
            })
            .collect();
        let mut row = NewRow::default();
        for ScopeChange { version, time, by, change, undo, overwrote } in &changes {
            let note = ChangeNote::new(*time, &by_json(by).unwrap(), change).unwrap();
            row.push(*version, &note, undo, overwrote).unwrap();
        }
        assert_eq!(row.version, 8);
        assert_eq!(row.json + "]", serde_json::to_string(&changes).unwrap());
    }
}
