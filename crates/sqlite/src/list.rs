//! Pages of sessions.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, Row, params_from_iter};
use sessile_session::{
    ListPlace, ListQuery, PageWriter, ScopeKey, SessionError, SessionKey, StateMap, StoredPage,
    StoredSession, Unreadable, Version,
};

use crate::failure::failed_to;
use crate::layout::Layout;
use crate::rows::{Owner, corrupt, incarnation, state};
use crate::scope_read::shared_text;

pub(crate) fn list(
    connection: &mut Connection,
    layout: Layout,
    query: &ListQuery,
) -> Result<StoredPage, SessionError> {
    let transaction = connection.transaction().map_err(failed_to("begin to list sessions"))?;
    let listed = list_in(&transaction, layout, query);
    transaction.finish().map_err(failed_to("end listing sessions"))?;
    listed
}

fn list_in(connection: &Connection, layout: Layout, query: &ListQuery) -> Result<StoredPage, SessionError> {
    let (text, values) = statement(layout, query)?;
    let mut statement = connection.prepare_cached(&text).map_err(failed_to("list sessions"))?;
    let mut rows = statement.query(params_from_iter(values)).map_err(failed_to("list sessions"))?;
    let app = Known::read(connection, ScopeKey::App(query.app.clone()))?;
    let mut users = HashMap::new();
    let mut page = PageWriter::new(query);
    while let Some(row) = rows.next().map_err(failed_to("list sessions"))? {
        let listed = Listed::new(row, layout, &query.app)?;
        let name = listed.key.user();
        if !users.contains_key(name) {
            let user = ScopeKey::User(query.app.clone(), name.to_owned());
            users.insert(name.to_owned(), Known::read(connection, user)?);
        }
        let user = &users[name];
        if !page.takes(listed.bytes() + app.bytes() + user.bytes()) {
            break;
        }
        let place = listed.place();
        page.add(place, listed.session(&app, user));
    }
    page.finish()
}

/// Sessions without the state that they share, which is read once for all of them.
const SESSIONS: &str = "
    SELECT s.user_id, s.id, s.update_time, s.sessile_version, s.state, s.sessile_incarnation
      FROM sessions s WHERE s.app_name = ?1
";

fn statement(layout: Layout, query: &ListQuery) -> Result<(String, Vec<Value>), SessionError> {
    let mut text = SESSIONS.to_owned();
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
    let limit = query.limit.saturating_add(1); // one more, to find whether there is a next page
    text.push_str(&format!(" ORDER BY s.update_time {order}, s.user_id {order}, s.id {order} LIMIT {limit}"));
    Ok((text, values))
}

/// A row of the page, of which only the address is parsed.
struct Listed<'a> {
    key: SessionKey,
    /// The error, if the address cannot be read.
    address_error: Option<SessionError>,
    time: Result<f64, SessionError>,
    version: ValueRef<'a>,
    state: ValueRef<'a>,
    incarnation: ValueRef<'a>,
}

impl<'a> Listed<'a> {
    fn new(row: &'a Row<'_>, layout: Layout, app: &str) -> Result<Self, SessionError> {
        let column = |place: usize| row.get_ref(place).map_err(failed_to("read a session's row"));
        let (user, id) = (column(0)?, column(1)?);
        let key = SessionKey::from_stored(app, shown(user), shown(id));
        let address = key.to_string();
        let not_text = |value: ValueRef<'_>, name: &'static str| {
            value.as_str().err().map(|error| corrupt("sessions", name, &address, error))
        };
        let address_error = not_text(user, "user_id").or_else(|| not_text(id, "id"));
        let time = layout.read_time(column(2)?);
        let time = time.map_err(|error| corrupt("sessions", "update_time", &address, error));
        Ok(Self { key, address_error, time, version: column(3)?, state: column(4)?, incarnation: column(5)? })
    }

    fn bytes(&self) -> usize {
        self.state.as_bytes().map_or(0, <[u8]>::len)
    }

    /// The position of this session in the list, after which the next page begins.
    fn place(&self) -> Option<ListPlace> {
        let update_time = *self.time.as_ref().ok().filter(|_| self.address_error.is_none())?;
        Some(ListPlace { update_time, user: self.key.user().to_owned(), id: self.key.id().to_owned() })
    }

    fn session(self, app: &Known, user: &Known) -> Result<StoredSession, Unreadable> {
        let key = self.key.clone();
        self.read(app, user).map_err(|error| Unreadable { key, error })
    }

    fn read(self, app: &Known, user: &Known) -> Result<StoredSession, SessionError> {
        if let Some(error) = self.address_error {
            return Err(error);
        }
        let own = Owner::Session(self.key.clone());
        let text = self.state.as_str().map_err(|error| own.corrupt("state", error))?;
        let version = self.version.as_i64().map_err(|error| own.corrupt("sessile_version", error))?;
        let number = self.incarnation.as_i64_or_null();
        let number = number.map_err(|error| own.corrupt("sessile_incarnation", error))?;
        let (app, user) = (app.state()?, user.state()?);
        Ok(StoredSession {
            session: state(text).map_err(|error| own.corrupt("state", error))?,
            update_time: self.time?,
            incarnation: incarnation(number),
            version: version.unsigned_abs(),
            app_version: app.version,
            user_version: user.version,
            app: app.state.clone(),
            user: user.state.clone(),
            initial: None,
            events: Arc::default(),
            key: self.key,
        })
    }
}

/// An id as errors show it, whatever its type is.
fn shown(id: ValueRef<'_>) -> String {
    match id.as_bytes() {
        Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Err(_) => format!("{id:?}"),
    }
}

/// State that sessions of the page share, or the reason why none of them can be read.
struct Known {
    scope: ScopeKey,
    found: Result<Shared, String>,
}

struct Shared {
    state: Arc<StateMap>,
    version: Version,
    /// The length of its text.
    bytes: usize,
}

impl Known {
    fn read(connection: &Connection, scope: ScopeKey) -> Result<Self, SessionError> {
        let found = match Shared::read(connection, &scope) {
            Err(SessionError::Corrupt { source, .. }) => Err(source.to_string()),
            found => Ok(found?),
        };
        Ok(Self { scope, found })
    }

    fn bytes(&self) -> usize {
        self.found.as_ref().map_or(0, |shared| shared.bytes)
    }

    fn state(&self) -> Result<&Shared, SessionError> {
        let corrupt = |reason: &String| Owner::Shared(self.scope.clone()).corrupt("state", reason.clone());
        self.found.as_ref().map_err(corrupt)
    }
}

impl Shared {
    fn read(connection: &Connection, scope: &ScopeKey) -> Result<Self, SessionError> {
        let (text, version) = shared_text(connection, scope)?;
        match text {
            Some(stored) => Ok(Self { state: stored.values()?, version, bytes: stored.text.len() }),
            None => Ok(Self { state: Arc::default(), version, bytes: 0 }),
        }
    }
}
