//! Commits as the columns that `sessile_append_all` takes.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sessile_session::{Address, Commit, ScopeKey, SessionError, Version};
use sessile_state::{Delta, Scope};
use tokio_postgres::types::ToSql;

use crate::json;

/// A call with the columns of a [`Batch`]. The setting holds for this statement, and is made before the call because
/// that needs its result.
pub(crate) const APPEND: &str = "
    SELECT status, version, update_time, actual
      FROM (SELECT set_config('lock_timeout', $20, true) AS patience OFFSET 0) AS set
     CROSS JOIN LATERAL sessile_append_all(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::text[]::jsonb[],
        $14::text[]::jsonb[], $15::text[]::jsonb[], $16::text[]::jsonb[], $17, $18,
        CASE WHEN set.patience IS NOT NULL THEN $19::bigint[] END)
";

/// The rows that a commit locks: its session's, and those of the scopes that it is about, the largest last.
pub(crate) fn needed(commit: &Commit) -> impl Iterator<Item = Address> + use<> {
    let user = needs_user(commit).then(|| Address::Scope(ScopeKey::user_of(&commit.key)));
    let app = needs_app(commit).then(|| Address::Scope(ScopeKey::app_of(&commit.key)));
    std::iter::once(session(commit)).chain(user).chain(app)
}

/// The row of a commit's session.
pub(crate) fn session(commit: &Commit) -> Address {
    Address::Session(commit.key.clone())
}

fn needs_user(commit: &Commit) -> bool {
    !commit.delta.user.is_empty() || commit.expect.user.is_some()
}

fn needs_app(commit: &Commit) -> bool {
    !commit.delta.app.is_empty() || commit.expect.app.is_some()
}

/// What a commit takes to the server, made before it waits.
pub(crate) struct Texts {
    event: String,
    session: Option<String>,
    user: Option<String>,
    app: Option<String>,
}

impl Texts {
    /// # Errors
    ///
    /// [`SessionError::InvalidEvent`] or [`SessionError::InvalidState`] if PostgreSQL cannot hold it.
    pub(crate) fn new(commit: &Commit) -> Result<Self, SessionError> {
        let text = |delta: &Delta, scope: Scope| match delta.is_empty() {
            true => Ok(None),
            false => json::delta(delta, scope).map(|text| Some(text.get().to_owned())),
        };
        // State first: its errors name the key, and the event repeats it.
        let app = text(&commit.delta.app, Scope::App)?;
        let user = text(&commit.delta.user, Scope::User)?;
        let session = text(&commit.delta.session, Scope::Session)?;
        Ok(Self { event: json::event(&commit.event)?.get().to_owned(), session, user, app })
    }
}

/// Which events are in a batch already: an event must not be in it twice.
#[derive(Default)]
pub(crate) struct Contents(HashSet<(String, String, String, String)>);

impl Contents {
    /// Notes a commit; tells whether it was new.
    pub(crate) fn add(&mut self, Commit { key, event, .. }: &Commit) -> bool {
        let [app, user, id] = [key.app(), key.user(), key.id()].map(str::to_owned);
        self.0.insert((app, user, id, event.id.clone()))
    }
}

/// One column for each parameter of the function.
#[derive(Default)]
pub(crate) struct Batch<'a> {
    session_apps: Vec<&'a str>,
    session_users: Vec<&'a str>,
    session_ids: Vec<&'a str>,
    user_apps: Vec<&'a str>,
    user_ids: Vec<&'a str>,
    app_names: Vec<&'a str>,
    places: Vec<i32>,
    user_places: Vec<Option<i32>>,
    app_places: Vec<Option<i32>>,
    event_ids: Vec<&'a str>,
    invocations: Vec<&'a str>,
    seconds: Vec<f64>,
    events: Vec<&'a str>,
    session_deltas: Vec<Option<&'a str>>,
    user_deltas: Vec<Option<&'a str>>,
    app_deltas: Vec<Option<&'a str>>,
    expect_session: Vec<Option<i64>>,
    expect_user: Vec<Option<i64>>,
    expect_app: Vec<Option<i64>>,
    /// How long to wait for each row, in milliseconds.
    patience: String,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(
        commits: impl Iterator<Item = (&'a Commit, &'a Texts)> + Clone,
        patience: Duration,
    ) -> Self {
        let (mut sessions, mut users, mut apps) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (commit, _) in commits.clone() {
            let key = &commit.key;
            sessions.insert((key.app(), key.user(), key.id()), 0);
            if needs_user(commit) {
                users.insert((key.app(), key.user()), 0);
            }
            if needs_app(commit) {
                apps.insert(key.app(), 0);
            }
        }
        number(&mut sessions);
        number(&mut users);
        number(&mut apps);
        let mut batch = Self {
            session_apps: sessions.keys().map(|key| key.0).collect(),
            session_users: sessions.keys().map(|key| key.1).collect(),
            session_ids: sessions.keys().map(|key| key.2).collect(),
            user_apps: users.keys().map(|key| key.0).collect(),
            user_ids: users.keys().map(|key| key.1).collect(),
            app_names: apps.keys().copied().collect(),
            patience: patience.as_millis().to_string(),
            ..Self::default()
        };
        for (commit, texts) in commits {
            let Commit { key, event, expect, .. } = commit;
            batch.places.push(sessions[&(key.app(), key.user(), key.id())]);
            batch.user_places.push(users.get(&(key.app(), key.user())).copied());
            batch.app_places.push(apps.get(key.app()).copied());
            batch.event_ids.push(&event.id);
            batch.invocations.push(&event.invocation_id);
            batch.seconds.push(event.timestamp);
            batch.events.push(&texts.event);
            batch.session_deltas.push(texts.session.as_deref());
            batch.user_deltas.push(texts.user.as_deref());
            batch.app_deltas.push(texts.app.as_deref());
            batch.expect_session.push(expect.session.map(signed));
            batch.expect_user.push(expect.user.map(signed));
            batch.expect_app.push(expect.app.map(signed));
        }
        batch
    }

    /// The columns in the order of the parameters.
    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 20] {
        [
            &self.session_apps,
            &self.session_users,
            &self.session_ids,
            &self.user_apps,
            &self.user_ids,
            &self.app_names,
            &self.places,
            &self.user_places,
            &self.app_places,
            &self.event_ids,
            &self.invocations,
            &self.seconds,
            &self.events,
            &self.session_deltas,
            &self.user_deltas,
            &self.app_deltas,
            &self.expect_session,
            &self.expect_user,
            &self.expect_app,
            &self.patience,
        ]
    }
}

/// Gives each key its place in the sorted list, from 1.
fn number<K: Ord>(keys: &mut BTreeMap<K, i32>) {
    for (place, number) in (1..).zip(keys.values_mut()) {
        *number = place;
    }
}

fn signed(version: Version) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}
