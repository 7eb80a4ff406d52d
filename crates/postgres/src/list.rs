//! Pages of sessions.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use deadpool_postgres::Client;
use sessile_session::{
    Incarnation, ListPlace, ListQuery, PageWriter, ScopeKey, SessionError, SessionKey, StateMap, StoredPage,
    StoredSession, Unreadable, Version, doing,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::read::{corrupt, row_of};

const LIST: &str = "
    SELECT kind, named_user, named_id, content, changed_at, revision, incarnation
      FROM sessile_list_sessions($1, $2, $3, $4, $5, $6, $7, $8)
";

/// The Unix seconds that PostgreSQL's `timestamp` can represent, up to the year 294276.
const TIMES: Range<f64> = -210_866_803_200.0..9_224_318_016_000.0;

pub(crate) async fn list(client: &Client, query: &ListQuery) -> Result<StoredPage, SessionError> {
    let after = query.after.as_ref();
    if after.is_some_and(|after| !TIMES.contains(&after.update_time)) {
        return Err(SessionError::InvalidCursor);
    }
    let (time, user, id) =
        (after.map(|place| place.update_time), after.map(|place| &place.user), after.map(|place| &place.id));
    // The function adds one to the limit to look for a next page, which must not overflow.
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).min(i64::MAX - 1);
    let max_bytes = i64::try_from(query.max_bytes).unwrap_or(i64::MAX);
    let values: [&(dyn ToSql + Sync); 8] =
        [&query.app, &query.user, &time, &user, &id, &query.newest_first, &limit, &max_bytes];
    let statement = client.prepare_cached(LIST).await.map_err(doing("list sessions"))?;
    let rows = client.query(&statement, &values).await.map_err(doing("list sessions"))?;

    let mut page = PageWriter::new(query);
    let (mut app, mut users) = (Shared::none(ScopeKey::App(query.app.clone())), HashMap::new());
    for row in &rows {
        let user = || row.get::<_, &str>("named_user").to_owned();
        let of_user = |user: String| ScopeKey::User(query.app.clone(), user);
        match row.get::<_, i32>("kind") {
            0 => app = Shared::read(app.scope, row),
            1 => drop(users.insert(user(), Shared::read(of_user(user()), row))),
            2 => {
                let shared = users.entry(user()).or_insert_with(|| Shared::none(of_user(user())));
                let key = SessionKey::from_stored(&query.app, user(), row.get::<_, &str>("named_id"));
                let time = row.get::<_, Option<f64>>("changed_at").filter(|time| time.is_finite());
                let place = time.map(|update_time| ListPlace {
                    update_time,
                    user: key.user().to_owned(),
                    id: key.id().to_owned(),
                });
                let read = session(row, &key, time, &app, shared);
                page.add(place, read.map_err(|error| Unreadable { key, error }));
            }
            _ => page.ends_here(),
        }
    }
    page.finish()
}

fn session(
    row: &Row,
    key: &SessionKey,
    time: Option<f64>,
    app: &Shared,
    user: &Shared,
) -> Result<StoredSession, SessionError> {
    let bad = |column: &'static str, reason: String| corrupt("sessions", column, key.to_string(), reason);
    let (app_version, app) = app.state()?;
    let (user_version, user) = user.state()?;
    let session = parsed(row).map_err(|reason| bad("state", reason))?;
    Ok(StoredSession {
        incarnation: Incarnation(row.get::<_, Option<i64>>("incarnation").map_or(0, i64::unsigned_abs)),
        version: version(row),
        app_version,
        user_version,
        update_time: time.ok_or_else(|| bad("update_time", "it is not a finite time".to_owned()))?,
        session,
        app,
        user,
        initial: None,
        events: Arc::default(),
        key: key.clone(),
    })
}

/// State that sessions of the page share, or the reason why none of them can be read.
struct Shared {
    scope: ScopeKey,
    found: Result<(Version, Arc<StateMap>), String>,
}

impl Shared {
    fn none(scope: ScopeKey) -> Self {
        Self { scope, found: Ok((0, Arc::default())) }
    }

    fn read(scope: ScopeKey, row: &Row) -> Self {
        Self { scope, found: parsed(row).map(|state| (version(row), state)) }
    }

    fn state(&self) -> Result<(Version, Arc<StateMap>), SessionError> {
        let (table, row) = row_of(&self.scope);
        self.found.clone().map_err(|reason| corrupt(table, "state", row, reason))
    }
}

fn parsed(row: &Row) -> Result<Arc<StateMap>, String> {
    let text: Option<&str> = row.get("content");
    serde_json::from_str(text.ok_or("it is null")?).map(Arc::new).map_err(|error| error.to_string())
}

fn version(row: &Row) -> Version {
    row.get::<_, Option<i64>>("revision").map_or(0, i64::unsigned_abs)
}
