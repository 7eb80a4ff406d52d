//! Reading the rows with which the database's functions answer a write.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use sessile_session::{
    Appended, Commit, Event, Incarnation, NewSession, OverwriteNotes, ScopeChange, ScopeKey, ScopeWrite,
    ScopeWritten, Scopes, SessionError, SessionEvent, SessionKey, StateMap, StoredSession, Version, apply,
    committed, doing,
};
use sessile_state::{Change, Delta, Scope, SharedValue};
use tokio_postgres::Row;

use crate::read::{corrupt, row_of};

/// Reads the row with which `sessile_commit` answers a commit. Its `status` says whether an
/// expectation failed: the SQL makes the comparisons of `Expect::check_session` and
/// `Expect::check_shared`.
pub(crate) fn appended(commit: &Commit, row: &Row) -> Result<Appended, SessionError> {
    let key = &commit.key;
    let conflict = |scope: Scope, expected: Option<Version>| {
        let (key, expected, actual) = (key.clone(), expected.unwrap_or(0), number(row, "actual"));
        Err(SessionError::Conflict { key, scope, expected, actual })
    };
    let too_large = |scope: Scope| Err(size_error(row, scope, commit.max_scope_bytes));
    let event = match row.get::<_, &str>("status") {
        "done" => match row.get::<_, Option<&str>>("detail") {
            None => commit.event.clone(),
            Some(detail) => with_results(commit, detail)?,
        },
        "known" => known_event(key, row.get("known"))?,
        "missing" => return Err(SessionError::NotFound { key: key.clone() }),
        "replaced" => return Err(SessionError::Replaced { key: key.clone() }),
        "session" => return conflict(Scope::Session, commit.expect.session),
        "user" => return conflict(Scope::User, commit.expect.user),
        "app" => return conflict(Scope::App, commit.expect.app),
        "session_size" => return too_large(Scope::Session),
        "user_size" => return too_large(Scope::User),
        "app_size" => return too_large(Scope::App),
        "overwritten" => return Err(overwritten(row)),
        "operation" => return Err(operation(row, key, |key| commit.delta.get(key))),
        other => return Err(unknown_status(other)),
    };
    let state = match commit.answer.state {
        true => Some(scopes(row, key)?),
        false => None,
    };
    let is_known = row.get::<_, &str>("status") == "known";
    Ok(Appended {
        is_known,
        sent: is_known.then(|| commit.event.clone()),
        version: number(row, "version"),
        update_time: row.get::<_, Option<f64>>("update_time").unwrap_or(0.0),
        incarnation: Incarnation(number(row, "incarnation")),
        event,
        between: earlier_events(key, row.get("earlier"))?,
        state,
    })
}

/// Reads the row with which `sessile_write_scope` answers a write.
pub(crate) fn written(write: &ScopeWrite, row: &Row) -> Result<ScopeWritten, SessionError> {
    let scope = &write.scope;
    let version = number(row, "version");
    let state = || state_map(row, "state", scope);
    match row.get::<_, &str>("status") {
        "done" => {
            let (state, overwrote) = (Arc::new(state()?), overwrote(row)?);
            Ok(ScopeWritten { version, state, known: None, overwrote })
        }
        "known" => {
            let mut state = state()?;
            for later in parsed::<Vec<ScopeChange>>(row, "later", scope)?.into_iter().flatten() {
                later.undo(&mut state).map_err(doing("compute an earlier state"))?;
            }
            let known = parsed::<Delta>(row, "known", scope)?;
            let known = Some(known.unwrap_or_else(Delta::new));
            Ok(ScopeWritten { version, state: Arc::new(state), known, overwrote: overwrote(row)? })
        }
        "version" => {
            let expected = write.expect.unwrap_or(0);
            Err(SessionError::ScopeConflict { scope: scope.clone(), expected, actual: number(row, "actual") })
        }
        "overwritten" => Err(overwritten(row)),
        "operation" => {
            let refused = Refused::of(row)?;
            let change = write.delta.get(Scope::of(&refused.key).1);
            Err(refused.explained(change, scope.to_string()))
        }
        "size" => Err(size_error(row, scope.scope(), write.max_scope_bytes)),
        other => Err(unknown_status(other)),
    }
}

/// What the guards that only report have found.
fn overwrote(row: &Row) -> Result<OverwriteNotes, SessionError> {
    #[derive(Default, serde::Deserialize)]
    struct Reported {
        #[serde(default)]
        overwrote: Option<OverwriteNotes>,
    }
    let detail: Option<&str> = row.get("detail");
    let reported: Option<Reported> =
        detail.map(serde_json::from_str).transpose().map_err(doing("read what was overwritten"))?;
    Ok(reported.and_then(|reported| reported.overwrote).into_iter().flatten().collect())
}

/// Reads the row with which `sessile_create_session` answers.
pub(crate) fn created(new: &NewSession, row: &Row) -> Result<StoredSession, SessionError> {
    let too_large = |scope: Scope| Err(size_error(row, scope, new.max_scope_bytes));
    match row.get::<_, &str>("status") {
        "done" => {}
        "exists" => return Err(SessionError::AlreadyExists { key: new.key.clone() }),
        "operation" => {
            let change = |key: &str| match Scope::of(key) {
                (Scope::App, name) => new.app.get(name),
                (_, name) => new.user.get(name),
            };
            return Err(operation(row, &new.key, change));
        }
        "session_size" => return too_large(Scope::Session),
        "user_size" => return too_large(Scope::User),
        "app_size" => return too_large(Scope::App),
        other => return Err(unknown_status(other)),
    }
    let mut state = new.session.clone();
    new.events.iter().for_each(|(_, changes)| apply(&mut state, changes));
    let events = (1..).zip(&new.events);
    Ok(StoredSession {
        key: new.key.clone(),
        incarnation: new.incarnation,
        version: new.events.len() as Version,
        app_version: number(row, "app_version"),
        user_version: number(row, "user_version"),
        update_time: row.get::<_, Option<f64>>("update_time").unwrap_or(new.time),
        session: Arc::new(state),
        app: Arc::new(state_map(row, "app_state", &ScopeKey::app_of(&new.key))?),
        user: Arc::new(state_map(row, "user_state", &ScopeKey::user_of(&new.key))?),
        initial: Some(Arc::new(new.session.clone())),
        events: Arc::new(
            events.map(|(version, (event, _))| SessionEvent { version, event: event.clone() }).collect(),
        ),
    })
}

/// The event as it is stored: with the results of its operations, and what it overwrote.
fn with_results(commit: &Commit, detail: &str) -> Result<Arc<Event>, SessionError> {
    #[derive(serde::Deserialize)]
    struct Detail {
        results: BTreeMap<String, SharedValue>,
        #[serde(default)]
        overwrote: BTreeMap<String, SharedValue>,
    }
    let Detail { results, overwrote } =
        serde_json::from_str(detail).map_err(doing("read what was committed"))?;
    let mut changes = commit.event.actions.state_delta.clone();
    results.into_iter().for_each(|(key, value)| changes.set(key, value));
    Ok(committed(commit.event.clone(), changes, overwrote))
}

/// An event as the functions of the database return it: id, invocation, seconds and JSON.
type EventFields = (String, String, Option<f64>, Option<Box<RawValue>>);

fn known_event(key: &SessionKey, json: Option<&str>) -> Result<Arc<Event>, SessionError> {
    let fields: EventFields = serde_json::from_str(json.unwrap_or("null")).map_err(doing("read an event"))?;
    event_of(key, fields)
}

fn earlier_events(key: &SessionKey, json: Option<&str>) -> Result<Vec<SessionEvent>, SessionError> {
    let Some(json) = json else { return Ok(Vec::new()) };
    type Listed = (Version, String, String, Option<f64>, Option<Box<RawValue>>);
    let listed: Vec<Listed> = serde_json::from_str(json).map_err(doing("read events"))?;
    let read = |(version, id, invocation, time, data)| {
        Ok(SessionEvent { version, event: event_of(key, (id, invocation, time, data))? })
    };
    listed.into_iter().map(read).collect()
}

fn event_of(key: &SessionKey, (id, invocation, time, data): EventFields) -> Result<Arc<Event>, SessionError> {
    let data = data.as_ref().map_or("{}", |data| data.get());
    crate::read::stored_event(key, id, invocation, time, data).map(Arc::new)
}

/// The state of the three scopes as of a commit.
fn scopes(row: &Row, key: &SessionKey) -> Result<Scopes, SessionError> {
    let session: &str = row.get::<_, Option<&str>>("session_state").unwrap_or("{}");
    let session = serde_json::from_str(session)
        .map_err(|error| corrupt("sessions", "state", key.to_string(), error))?;
    Ok(Scopes {
        session: Arc::new(session),
        user: Arc::new(state_map(row, "user_state", &ScopeKey::user_of(key))?),
        user_version: number(row, "user_version"),
        app: Arc::new(state_map(row, "app_state", &ScopeKey::app_of(key))?),
        app_version: number(row, "app_version"),
    })
}

/// Shared state; empty if there is no row.
fn state_map(row: &Row, column: &str, scope: &ScopeKey) -> Result<StateMap, SessionError> {
    Ok(parsed(row, column, scope)?.unwrap_or_else(StateMap::new))
}

fn parsed<T: serde::de::DeserializeOwned>(
    row: &Row,
    column: &str,
    scope: &ScopeKey,
) -> Result<Option<T>, SessionError> {
    let (table, address) = row_of(scope);
    let text: Option<&str> = row.get(column);
    text.map(serde_json::from_str).transpose().map_err(|error| corrupt(table, "state", address, error))
}

/// An operation that could not be applied.
struct Refused {
    key: String,
    /// `None` if the key is absent; a null is a value.
    found: Option<SharedValue>,
}

impl Refused {
    fn of(row: &Row) -> Result<Self, SessionError> {
        let detail = row.get::<_, Option<&str>>("detail").unwrap_or("{}");
        let mut fields: BTreeMap<String, SharedValue> =
            serde_json::from_str(detail).map_err(doing("read why an operation was refused"))?;
        let key = fields.get("key").and_then(|key| key.as_str()).map_or_else(String::new, str::to_owned);
        Ok(Self { key, found: fields.remove("found") })
    }

    /// The error with its cause: applying the operation here fails for the same reason. This relies
    /// on `sessile_operate` doing the same as [`Change::apply`].
    fn explained(self, change: Option<&Change>, owner: String) -> SessionError {
        let Self { key, found } = self;
        match change.map(|change| change.apply(found.as_ref())) {
            Some(Err(source)) => SessionError::Operation { key, owner, found: found.map(Box::new), source },
            _ => SessionError::Backend {
                action: "apply an operation",
                source: format!("the database refused the operation on {key:?}").into(),
            },
        }
    }
}

fn operation<'a>(
    row: &Row,
    key: &SessionKey,
    change_of: impl FnOnce(&str) -> Option<&'a Change>,
) -> SessionError {
    let refused = match Refused::of(row) {
        Ok(refused) => refused,
        Err(error) => return error,
    };
    let owner = match Scope::of(&refused.key).0 {
        Scope::App => ScopeKey::app_of(key).to_string(),
        Scope::User => ScopeKey::user_of(key).to_string(),
        Scope::Session | Scope::Temp => key.to_string(),
    };
    let change = change_of(&refused.key);
    refused.explained(change, owner)
}

/// The error of a guard that refuses: the keys that differ, with their current values.
fn overwritten(row: &Row) -> SessionError {
    #[derive(serde::Deserialize)]
    struct Differs {
        current: BTreeMap<String, SharedValue>,
        absent: Vec<String>,
    }
    let detail = row.get::<_, Option<&str>>("detail").unwrap_or("null");
    match serde_json::from_str::<Differs>(detail) {
        Ok(Differs { current, absent }) => {
            let present = current.into_iter().map(|(key, value)| (key, Some(value)));
            let absent = absent.into_iter().map(|key| (key, None));
            SessionError::Overwritten { current: present.chain(absent).collect() }
        }
        Err(error) => doing("read what was changed meanwhile")(error),
    }
}

fn size_error(row: &Row, scope: Scope, limit: Option<usize>) -> SessionError {
    let size = usize::try_from(number(row, "actual")).unwrap_or(usize::MAX);
    SessionError::TooLarge { scope, size, limit: limit.unwrap_or(0) }
}

fn unknown_status(status: &str) -> SessionError {
    SessionError::Backend {
        action: "write",
        source: format!("the database returned the unknown status {status:?}").into(),
    }
}

fn number(row: &Row, column: &str) -> u64 {
    row.get::<_, Option<i64>>(column).map_or(0, i64::unsigned_abs)
}
