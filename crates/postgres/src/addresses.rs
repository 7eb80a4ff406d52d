//! Listing the addresses of everything that is stored.

use deadpool_postgres::Client;
use sessile_session::{Address, ScopeKey, SessionError, SessionKey, doing};

const APPS: &str = "
    SELECT app_name::text, $2::text, $3::text FROM app_states WHERE app_name {after} $1
     ORDER BY app_name LIMIT $4
";
const USERS: &str = "
    SELECT app_name::text, user_id::text, $3::text FROM user_states WHERE (app_name, user_id) {after} ($1, $2)
     ORDER BY app_name, user_id LIMIT $4
";
const SESSIONS: &str = "
    SELECT app_name::text, user_id::text, id::text FROM sessions WHERE (app_name, user_id, id) {after} ($1, $2, $3)
     ORDER BY app_name, user_id, id LIMIT $4
";

/// The addresses after another one: of applications, then of users, then of sessions.
pub(crate) async fn addresses(
    client: &Client,
    after: Option<&Address>,
    limit: usize,
) -> Result<Vec<Address>, SessionError> {
    let (reached, place) = match after {
        None => (0, None),
        Some(Address::Scope(ScopeKey::App(app))) => (0, Some([app, "", ""])),
        Some(Address::Scope(ScopeKey::User(app, user))) => (1, Some([app, user, ""])),
        Some(Address::Session(key)) => (2, Some([key.app(), key.user(), key.id()])),
    };
    let mut found = Vec::new();
    for (kind, query) in [APPS, USERS, SESSIONS].into_iter().enumerate().skip(reached) {
        let place = place.filter(|_| kind == reached);
        // Without a place to start after, every text is `>=` the empty one.
        let query = query.replace("{after}", if place.is_some() { ">" } else { ">=" });
        let [app, user, id] = place.unwrap_or_default();
        let left = i64::try_from(limit.saturating_sub(found.len())).unwrap_or(i64::MAX);
        let statement = client.prepare_cached(&query).await.map_err(doing("walk over the tables"))?;
        let rows = client
            .query(&statement, &[&app, &user, &id, &left])
            .await
            .map_err(doing("walk over the tables"))?;
        found.extend(rows.into_iter().map(|row| match kind {
            0 => Address::Scope(ScopeKey::App(row.get(0))),
            1 => Address::Scope(ScopeKey::User(row.get(0), row.get(1))),
            _ => Address::Session(SessionKey::from_stored(
                row.get::<_, String>(0),
                row.get::<_, String>(1),
                row.get::<_, String>(2),
            )),
        }));
    }
    Ok(found)
}
