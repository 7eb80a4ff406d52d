use std::collections::BTreeSet;

use clap::Args;
use serde::Serialize;
use sessile_session::{Address, EventWindow, ScopeKey, SessionError, SessionKey, SessionService, StateMap};

use super::Schema;
use crate::args::{OutputArgs, StoreArgs};
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::store_url::{Need, StoreUrl, closed};
use crate::walk::Walk;

/// The arguments of `db check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What the check found.
#[derive(Debug, Serialize)]
struct Report {
    store: String,
    /// The layout of the tables: that of Sessile or of google-adk. `None` if there are no tables.
    layout: Option<&'static str>,
    /// The last migration that was applied.
    migration: i64,
    /// The last migration that this program knows.
    latest: i64,
    apps: usize,
    users: usize,
    sessions: u64,
    events: u64,
    problems: Vec<Problem>,
}

/// A defect in stored data.
#[derive(Debug, Serialize)]
struct Problem {
    /// The session or scope. The name of the field is part of the JSON output.
    place: String,
    /// What is wrong with it.
    problem: String,
}

impl Check {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store_url = StoreUrl::parse(&self.store.store)?;
        let schema = Schema::of(&store_url).await?;
        let mut report = Report {
            store: store_url.to_string(),
            layout: schema.layout,
            migration: schema.migration,
            latest: schema.latest,
            apps: 0,
            users: 0,
            sessions: 0,
            events: 0,
            problems: Vec::new(),
        };
        // Opening the database would migrate it, and a check must not change anything.
        let migrated = schema.migration == schema.latest;
        if migrated {
            let service = SessionService::over(store_url.open(Need::Existing).await?);
            let read = report.read_all(&service).await;
            closed(&service, read).await?;
        }
        let mut output = Output::new(&self.output);
        match output.is_json() {
            true => output.json(&report)?,
            false => report.show(&mut output)?,
        }
        output.finish()?;
        match (migrated, report.problems.len()) {
            (true, 0) => Ok(()),
            (true, count) => Err(Failure::Damaged(format!("{count} problems found")).into()),
            (false, _) if schema.migration > schema.latest => Err(Failure::Damaged(format!(
                "{store_url} was written by a newer Sessile (migration {}, this one knows {}); upgrade this one",
                schema.migration, schema.latest
            ))
            .into()),
            (false, _) => Err(Failure::Damaged(format!(
                "{store_url} is not migrated, so its sessions were not checked; run `sessile db migrate`"
            ))
            .into()),
        }
    }
}

impl Report {
    /// Reads everything, and continues after damaged data.
    async fn read_all(&mut self, service: &SessionService) -> anyhow::Result<()> {
        let store = service.store();
        let progress = Progress::counting("sessions checked");
        let (mut apps, mut users) = (BTreeSet::new(), BTreeSet::new());
        let mut walk = Walk::over(store.clone());
        loop {
            let page = walk.next().await?;
            if page.is_empty() {
                break;
            }
            for address in page {
                match address {
                    Address::Scope(scope) => match store.scope_state(&scope).await {
                        Ok(stored) if stored.state.is_empty() => {} // an empty scope is the same as none
                        Ok(_) => owners(scope, &mut apps, &mut users),
                        Err(error) => {
                            self.problem(format!("state of {scope}"), error)?;
                            owners(scope, &mut apps, &mut users);
                        }
                    },
                    Address::Session(key) => {
                        apps.insert(key.app().to_owned());
                        users.insert((key.app().to_owned(), key.user().to_owned()));
                        self.session(service, &key).await?;
                        progress.advance(1);
                    }
                }
            }
        }
        (self.apps, self.users) = (apps.len(), users.len());
        Ok(())
    }

    async fn session(&mut self, service: &SessionService, key: &SessionKey) -> anyhow::Result<()> {
        self.sessions += 1;
        match checked(service, key).await {
            Ok(None) => self.sessions -= 1, // deleted meanwhile
            Ok(Some((events, problems))) => {
                self.events += events;
                let place = format!("session {key}");
                self.problems
                    .extend(problems.into_iter().map(|problem| Problem { place: place.clone(), problem }));
            }
            Err(error) => self.problem(format!("session {key}"), error)?,
        }
        Ok(())
    }

    /// Records damaged data. Any other error ends the check.
    fn problem(&mut self, place: String, error: SessionError) -> anyhow::Result<()> {
        match error {
            SessionError::Corrupt { .. } => {
                self.problems.push(Problem { place, problem: error.to_string() });
                Ok(())
            }
            other => Err(other.into()),
        }
    }

    fn show(&self, output: &mut Output) -> anyhow::Result<()> {
        let facts = [
            ("store", self.store.clone()),
            ("layout", self.layout.unwrap_or("no tables yet").to_owned()),
            ("migration", format!("{} of {}", self.migration, self.latest)),
            ("applications", self.apps.to_string()),
            ("users", self.users.to_string()),
            ("sessions", self.sessions.to_string()),
            ("events", self.events.to_string()),
            ("problems", self.problems.len().to_string()),
        ];
        output.table(["FACT", ""], &facts.map(|(name, value)| [name.to_owned(), value]))?;
        if self.problems.is_empty() {
            return Ok(());
        }
        output.line("")?;
        let rows = self.problems.iter().map(|problem| [problem.place.clone(), problem.problem.clone()]);
        output.table(["WHERE", "PROBLEM"], &rows.collect::<Vec<_>>())
    }
}

/// The number of a session's events, and its problems; `None` if it was deleted meanwhile.
async fn checked(
    service: &SessionService,
    key: &SessionKey,
) -> Result<Option<(u64, Vec<String>)>, SessionError> {
    let Some(now) = service.store().get(key, EventWindow::ALL).await? else { return Ok(None) };
    let events = now.events.len() as u64;
    let mut problems = Vec::new();
    if events != now.version {
        problems.push(format!("it is at version {} and has {events} events", now.version));
    }
    // Events up to this version never change, so a second read sees the same history.
    let computed = match service.state_at(key, now.version).await {
        Err(SessionError::NotFound { .. }) => return Ok(None),
        computed => computed?,
    };
    problems.extend(
        differing(&now.session, &computed)
            .map(|key| format!("the state key {key:?} is not what the events say")),
    );
    Ok(Some((events, problems)))
}

/// The keys whose values differ, or that only one of the two has.
fn differing<'a>(one: &'a StateMap, other: &'a StateMap) -> impl Iterator<Item = &'a String> {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    keys.into_iter().filter(|key| one.get(*key) != other.get(*key))
}

/// Adds the application and user that own a scope.
fn owners(scope: ScopeKey, apps: &mut BTreeSet<String>, users: &mut BTreeSet<(String, String)>) {
    match scope {
        ScopeKey::App(app) => drop(apps.insert(app)),
        ScopeKey::User(app, user) => {
            apps.insert(app.clone());
            users.insert((app, user));
        }
    }
}
