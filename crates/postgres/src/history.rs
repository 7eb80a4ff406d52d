//! The history of shared state: reading it, and removing the oldest rows.

use deadpool_postgres::Client;
use sessile_session::{
    ChangeWindow, ScopeChange, ScopeKey, SessionError, TrimmedChanges, Version, changes_from_json, doing,
};
use tokio_postgres::types::ToSql;

use crate::batch::{length, signed};
use crate::read::{corrupt, row_of};

/// Rows that may have changes of a window. A row's version is that of its last change, so the last
/// row to read is the first that is not before the window's end. A row has at least one change, so
/// the limit of the window is enough rows, plus one whose changes may all be outside of it.
const APP_CHANGES: &str = "
    SELECT changes::text, version FROM sessile_app_changes
     WHERE app_name = $1 AND version > $2 AND version <= coalesce(
        (SELECT min(version) FROM sessile_app_changes WHERE app_name = $1 AND version >= $3), 9223372036854775807)
";
const USER_CHANGES: &str = "
    SELECT changes::text, version FROM sessile_user_changes
     WHERE app_name = $1 AND user_id = $5 AND version > $2 AND version <= coalesce(
        (SELECT min(version) FROM sessile_user_changes WHERE app_name = $1 AND user_id = $5 AND version >= $3),
        9223372036854775807)
";

pub(crate) async fn changes(
    client: &Client,
    scope: &ScopeKey,
    window: ChangeWindow,
) -> Result<Vec<ScopeChange>, SessionError> {
    let (after, until) = (signed(window.after), signed(window.until.unwrap_or(Version::MAX)));
    let most = length(window.limit.saturating_add(1));
    let (query, table, mut values): (_, _, Vec<&(dyn ToSql + Sync)>) = match scope {
        ScopeKey::App(app) => (APP_CHANGES, "sessile_app_changes", vec![app, &after, &until, &most]),
        ScopeKey::User(app, _) => (USER_CHANGES, "sessile_user_changes", vec![app, &after, &until, &most]),
    };
    if let ScopeKey::User(_, user) = scope {
        values.push(user);
    }
    let direction = if window.oldest_first { "ASC" } else { "DESC" };
    let query = format!("{query} ORDER BY version {direction} LIMIT $4");
    let statement = client.prepare_cached(&query).await.map_err(doing("read the history of shared state"))?;
    let rows = client.query(&statement, &values).await.map_err(doing("read the history of shared state"))?;
    let mut changes = Vec::new();
    for row in &rows {
        let address = || format!("{} version {}", row_of(scope).1, row.get::<_, i64>(1));
        let mut listed =
            changes_from_json(row.get(0)).map_err(|error| corrupt(table, "changes", address(), error))?;
        if !window.oldest_first {
            listed.reverse();
        }
        changes.extend(listed.into_iter().filter(|change| window.admits(change.version)));
    }
    changes.truncate(window.limit);
    Ok(changes)
}

/// The next scopes, and when the oldest row of each was written. The recursion finds each scope by
/// the index, without reading the rows between.
const NEXT_APPS: &str = "
    WITH RECURSIVE scopes AS (
        (SELECT app_name, written_at, 1 AS n FROM sessile_app_changes WHERE app_name > $1
          ORDER BY app_name, version LIMIT 1)
        UNION ALL
        SELECT later.app_name, later.written_at, scopes.n + 1 FROM scopes CROSS JOIN LATERAL (
            SELECT h.app_name, h.written_at FROM sessile_app_changes h WHERE h.app_name > scopes.app_name
             ORDER BY h.app_name, h.version LIMIT 1) later
         WHERE scopes.n < $2
    )
    SELECT app_name::text, extract(epoch FROM written_at)::double precision FROM scopes ORDER BY n
";
const NEXT_USERS: &str = "
    WITH RECURSIVE scopes AS (
        (SELECT app_name, user_id, written_at, 1 AS n FROM sessile_user_changes WHERE (app_name, user_id) > ($1, $2)
          ORDER BY app_name, user_id, version LIMIT 1)
        UNION ALL
        SELECT later.app_name, later.user_id, later.written_at, scopes.n + 1 FROM scopes CROSS JOIN LATERAL (
            SELECT h.app_name, h.user_id, h.written_at FROM sessile_user_changes h
             WHERE (h.app_name, h.user_id) > (scopes.app_name, scopes.user_id)
             ORDER BY h.app_name, h.user_id, h.version LIMIT 1) later
         WHERE scopes.n < $3
    )
    SELECT app_name::text, user_id::text, extract(epoch FROM written_at)::double precision FROM scopes ORDER BY n
";

/// Removes the oldest rows of a scope, but never its newest, which keeps the scope's version. If
/// another process does the same at once, the second one waits for the rows and finds them gone.
const TRIM_APP: &str = "
    DELETE FROM sessile_app_changes WHERE app_name = $1 AND version IN (
        SELECT h.version FROM sessile_app_changes h WHERE h.app_name = $1 AND h.written_at < to_timestamp($2)
           AND h.version < (SELECT max(n.version) FROM sessile_app_changes n WHERE n.app_name = $1)
         ORDER BY h.version LIMIT $3)
";
const TRIM_USER: &str = "
    DELETE FROM sessile_user_changes WHERE app_name = $1 AND user_id = $4 AND version IN (
        SELECT h.version FROM sessile_user_changes h
         WHERE h.app_name = $1 AND h.user_id = $4 AND h.written_at < to_timestamp($2)
           AND h.version < (SELECT max(n.version) FROM sessile_user_changes n WHERE n.app_name = $1 AND n.user_id = $4)
         ORDER BY h.version LIMIT $3)
";

/// One step of trimming: all applications, then all users.
pub(crate) async fn trim(
    client: &Client,
    before: f64,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<TrimmedChanges, SessionError> {
    let scopes = next_scopes(client, after, limit).await?;
    let mut trimmed = TrimmedChanges { removed: 0, next: after.cloned() };
    if scopes.len() < limit {
        trimmed.next = None;
    } else if let Some((scope, _)) = scopes.last() {
        trimmed.next = Some(scope.clone());
    }
    for (scope, _) in scopes.iter().filter(|(_, written_at)| *written_at < before) {
        let most = length(limit - trimmed.removed);
        let (query, values): (_, Vec<&(dyn ToSql + Sync)>) = match scope {
            ScopeKey::App(app) => (TRIM_APP, vec![app, &before, &most]),
            ScopeKey::User(app, user) => (TRIM_USER, vec![app, &before, &most, user]),
        };
        let trimming = || doing("remove old changes of shared state");
        let statement = client.prepare_cached(query).await.map_err(trimming())?;
        let removed = client.execute(&statement, &values).await.map_err(trimming())?;
        trimmed.removed += usize::try_from(removed).unwrap_or(usize::MAX);
    }
    Ok(trimmed)
}

/// The next scopes, and when the oldest change of each was written.
async fn next_scopes(
    client: &Client,
    after: Option<&ScopeKey>,
    limit: usize,
) -> Result<Vec<(ScopeKey, f64)>, SessionError> {
    let looking = || doing("look for old changes of shared state");
    let mut scopes = Vec::new();
    let (app, of_user) = match after {
        None => (Some(""), ("", "")),
        Some(ScopeKey::App(app)) => (Some(app.as_str()), ("", "")),
        Some(ScopeKey::User(app, user)) => (None, (app.as_str(), user.as_str())),
    };
    if let Some(app) = app {
        let statement = client.prepare_cached(NEXT_APPS).await.map_err(looking())?;
        let most = i32::try_from(limit).unwrap_or(i32::MAX);
        let rows = client.query(&statement, &[&app, &most]).await.map_err(looking())?;
        scopes.extend(rows.iter().map(|row| (ScopeKey::App(row.get(0)), row.get(1))));
    }
    if scopes.len() < limit {
        let statement = client.prepare_cached(NEXT_USERS).await.map_err(looking())?;
        let most = i32::try_from(limit - scopes.len()).unwrap_or(i32::MAX);
        let rows = client.query(&statement, &[&of_user.0, &of_user.1, &most]).await.map_err(looking())?;
        scopes.extend(rows.iter().map(|row| (ScopeKey::User(row.get(0), row.get(1)), row.get(2))));
    }
    Ok(scopes)
}
