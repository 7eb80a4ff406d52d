//! Commits as the columns that `sessile_commit` takes.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use sessile_session::{Address, ChangedBy, Commit, ScopeKey, SessionError, committed};
use sessile_state::{Change, Scope};
use tokio_postgres::types::ToSql;

use crate::json::{self, Fields, ScopeTexts};

/// Calls `sessile_commit` with the columns of a [`Batch`]. `set_config` sets the lock timeout for
/// this transaction only. The call depends on its result, so that PostgreSQL sets it first.
pub(crate) const APPEND: &str = "
    SELECT status, version, update_time, incarnation, actual, detail::text, known, earlier,
           session_state, user_state, user_version, app_state, app_version
      FROM (SELECT set_config('lock_timeout', $31, true) AS lock_timeout OFFSET 0) AS set
     CROSS JOIN LATERAL sessile_commit(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::text[]::jsonb[], $14,
        $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26::text[]::jsonb[], $27, $28, $29,
        CASE WHEN set.lock_timeout IS NOT NULL THEN $30::boolean[] END)
";

/// The rows that a commit locks: its session's, and those of the shared scopes that it changes or
/// compares, the largest last. A commit that answers with the state of all scopes locks them too:
/// if they could change between being read and the commit, another reader could see the two in the
/// opposite order.
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
    let Commit { delta, expect, guards, answer, .. } = commit;
    !delta.user.is_empty() || expect.user.is_some() || !guards.user.is_empty() || answer.state
}

fn needs_app(commit: &Commit) -> bool {
    let Commit { delta, expect, guards, answer, .. } = commit;
    !delta.app.is_empty() || expect.app.is_some() || !guards.app.is_empty() || answer.state
}

/// A commit as the texts that are sent to the server, made before the commit is queued.
pub(crate) struct Texts {
    event: String,
    session: Option<ScopeTexts>,
    user: Option<ScopeTexts>,
    app: Option<ScopeTexts>,
    /// The author of the commit, for the history of shared state.
    changed_by: Option<String>,
    guards: Option<String>,
}

impl Texts {
    /// # Errors
    ///
    /// [`SessionError::InvalidEvent`] or [`SessionError::InvalidState`] if PostgreSQL cannot store
    /// the event or one of its values.
    pub(crate) fn new(commit: &Commit) -> Result<Self, SessionError> {
        // State first: its errors name the key. Those of the event, with the same values, do not.
        let app = json::delta(&commit.delta.app, Scope::App)?;
        let user = json::delta(&commit.delta.user, Scope::User)?;
        let session = json::delta(&commit.delta.session, Scope::Session)?;
        let changed_by = match app.is_some() || user.is_some() {
            true => Some(json::raw(&ChangedBy::event(&commit.key, &commit.event))?.get().to_owned()),
            false => None,
        };
        let mut guards = Fields::new();
        for (name, scope, given) in [
            ("session", Scope::Session, &commit.guards.session),
            ("user", Scope::User, &commit.guards.user),
            ("app", Scope::App, &commit.guards.app),
        ] {
            guards.extend(json::guards(given, scope)?.map(|guards| (name, guards)));
        }
        let guards = match guards.is_empty() {
            true => None,
            false => Some(json::raw(&guards)?.get().to_owned()),
        };
        let event = match commit.event.actions.state_delta.has_operations() {
            false => json::event(&commit.event)?,
            // The database adds the results of the operations.
            true => {
                let intent = &commit.event.actions.state_delta;
                let mut plain = intent.clone();
                plain.retain(|key| !matches!(intent.get(key), Some(Change::Operate(_))));
                json::event(&committed(commit.event.clone(), plain, BTreeMap::new()))?
            }
        };
        Ok(Self { event: event.get().to_owned(), session, user, app, changed_by, guards })
    }
}

/// The ids of the events in a batch, which must not hold the same event twice.
#[derive(Default)]
pub(crate) struct Contents(HashSet<(String, String, String, String)>);

impl Contents {
    /// Adds a commit; returns whether it was new.
    pub(crate) fn add(&mut self, Commit { key, event, .. }: &Commit) -> bool {
        let [app, user, id] = [key.app(), key.user(), key.id()].map(str::to_owned);
        self.0.insert((app, user, id, event.id.clone()))
    }
}

/// Commits as columns: one array for each parameter of `sessile_commit`.
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
    sizes: Vec<i64>,
    session_deltas: ScopeColumns<'a>,
    user_deltas: ScopeColumns<'a>,
    app_deltas: ScopeColumns<'a>,
    changed_by: Vec<Option<&'a str>>,
    expect_incarnation: Vec<Option<i64>>,
    expect_session: Vec<Option<i64>>,
    expect_user: Vec<Option<i64>>,
    expect_app: Vec<Option<i64>>,
    guards: Vec<Option<&'a str>>,
    limits: Vec<Option<i64>>,
    since_incarnation: Vec<Option<i64>>,
    since_version: Vec<Option<i64>>,
    wants_state: Vec<bool>,
    /// How long to wait for the lock of each row, in milliseconds.
    lock_timeout: String,
}

/// The changes of one scope.
#[derive(Default)]
struct ScopeColumns<'a> {
    deltas: Vec<Option<&'a str>>,
    names: Vec<Option<&'a str>>,
}

impl<'a> ScopeColumns<'a> {
    fn push(&mut self, texts: Option<&'a ScopeTexts>) {
        self.deltas.push(texts.map(|texts| texts.delta.as_str()));
        self.names.push(texts.map(|texts| texts.names.as_str()));
    }
}

impl<'a> Batch<'a> {
    pub(crate) fn new(
        commits: impl Iterator<Item = (&'a Commit, &'a Texts)> + Clone,
        lock_timeout: Duration,
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
            lock_timeout: lock_timeout.as_millis().to_string(),
            ..Self::default()
        };
        for (commit, texts) in commits {
            let Commit { key, event, expect, answer, .. } = commit;
            batch.places.push(sessions[&(key.app(), key.user(), key.id())]);
            batch.user_places.push(users.get(&(key.app(), key.user())).copied());
            batch.app_places.push(apps.get(key.app()).copied());
            batch.event_ids.push(&event.id);
            batch.invocations.push(&event.invocation_id);
            batch.seconds.push(event.time());
            batch.events.push(&texts.event);
            batch.sizes.push(length(texts.event.len()));
            batch.session_deltas.push(texts.session.as_ref());
            batch.user_deltas.push(texts.user.as_ref());
            batch.app_deltas.push(texts.app.as_ref());
            batch.changed_by.push(texts.changed_by.as_deref());
            batch.expect_incarnation.push(expect.incarnation.map(|incarnation| signed(incarnation.0)));
            batch.expect_session.push(expect.session.map(signed));
            batch.expect_user.push(expect.user.map(signed));
            batch.expect_app.push(expect.app.map(signed));
            batch.guards.push(texts.guards.as_deref());
            batch.limits.push(commit.max_scope_bytes.map(length));
            batch.since_incarnation.push(answer.since.map(|since| signed(since.incarnation.0)));
            batch.since_version.push(answer.since.map(|since| signed(since.version)));
            batch.wants_state.push(answer.state);
        }
        batch
    }

    /// The columns in the order of the parameters.
    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 31] {
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
            &self.sizes,
            &self.session_deltas.deltas,
            &self.session_deltas.names,
            &self.user_deltas.deltas,
            &self.user_deltas.names,
            &self.app_deltas.deltas,
            &self.app_deltas.names,
            &self.changed_by,
            &self.expect_incarnation,
            &self.expect_session,
            &self.expect_user,
            &self.expect_app,
            &self.guards,
            &self.limits,
            &self.since_incarnation,
            &self.since_version,
            &self.wants_state,
            &self.lock_timeout,
        ]
    }
}

/// Gives each key its index in the sorted list, from 1 as SQL counts.
fn number<K: Ord>(keys: &mut BTreeMap<K, i32>) {
    for (place, number) in (1..).zip(keys.values_mut()) {
        *number = place;
    }
}

/// A version or incarnation as PostgreSQL's `bigint`; none comes near the limit.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
