//! Finding the rows that other transactions have locked.

use std::collections::HashSet;

use deadpool_postgres::Pool;
use sessile_session::{Address, ScopeKey, SessionError, SessionKey, doing};

use crate::batch::needed;
use crate::queue::Waiting;
use crate::retry::client;

/// Rows that exist, and that another transaction has locked: `SKIP LOCKED` skips them.
const HELD_SESSIONS: &str = "
    SELECT l.app, l.usr, l.sid FROM unnest($1::text[], $2::text[], $3::text[]) AS l (app, usr, sid)
     WHERE EXISTS (SELECT FROM sessions x WHERE x.app_name = l.app AND x.user_id = l.usr AND x.id = l.sid)
       AND (SELECT 1 FROM sessions x WHERE x.app_name = l.app AND x.user_id = l.usr AND x.id = l.sid
               FOR UPDATE SKIP LOCKED) IS NULL
";
const HELD_APPS: &str = "
    SELECT l.app FROM unnest($1::text[]) AS l (app)
     WHERE EXISTS (SELECT FROM app_states x WHERE x.app_name = l.app)
       AND (SELECT 1 FROM app_states x WHERE x.app_name = l.app FOR UPDATE SKIP LOCKED) IS NULL
";
const HELD_USERS: &str = "
    SELECT l.app, l.usr FROM unnest($1::text[], $2::text[]) AS l (app, usr)
     WHERE EXISTS (SELECT FROM user_states x WHERE x.app_name = l.app AND x.user_id = l.usr)
       AND (SELECT 1 FROM user_states x WHERE x.app_name = l.app AND x.user_id = l.usr
               FOR UPDATE SKIP LOCKED) IS NULL
";

/// The rows that these commits need and other transactions have locked.
pub(crate) async fn locked_by_others(
    pool: &Pool,
    waiting: &[Waiting],
) -> Result<HashSet<Address>, SessionError> {
    let rows: HashSet<Address> = waiting.iter().flat_map(|one| needed(&one.commit)).collect();
    let (mut sessions, mut apps, mut users) = ((vec![], vec![], vec![]), vec![], (vec![], vec![]));
    for row in &rows {
        match row {
            Address::Session(key) => {
                sessions.0.push(key.app());
                sessions.1.push(key.user());
                sessions.2.push(key.id());
            }
            Address::Scope(ScopeKey::App(app)) => apps.push(app.as_str()),
            Address::Scope(ScopeKey::User(app, user)) => {
                users.0.push(app.as_str());
                users.1.push(user.as_str());
            }
        }
    }
    let client = client(pool).await?;
    let doing = || doing::<tokio_postgres::Error>("look for locked rows");
    let mut held = HashSet::new();
    for row in client.query(HELD_SESSIONS, &[&sessions.0, &sessions.1, &sessions.2]).await.map_err(doing())? {
        let [app, user, id]: [String; 3] = [row.get(0), row.get(1), row.get(2)];
        held.insert(Address::Session(SessionKey::from_stored(app, user, id)));
    }
    for row in client.query(HELD_APPS, &[&apps]).await.map_err(doing())? {
        held.insert(Address::Scope(ScopeKey::App(row.get(0))));
    }
    for row in client.query(HELD_USERS, &[&users.0, &users.1]).await.map_err(doing())? {
        held.insert(Address::Scope(ScopeKey::User(row.get(0), row.get(1))));
    }
    Ok(held)
}
