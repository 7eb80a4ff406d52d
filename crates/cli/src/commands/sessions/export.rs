use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use sessile_session::{Address, EventWindow, ScopeKey, SessionError, SessionKey, SessionService};

use super::format::{FORMAT, Line, SessionLine};
use crate::args::StoreArgs;
use crate::exit::Failure;
use crate::output::written;
use crate::progress::Progress;
use crate::stderr::say;
use crate::store_url::{Need, with_sessions};
use crate::walk::Walk;

/// How many events are read at a time.
const PAGE: u64 = 1_000;

/// The arguments of `sessions export`.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Only of this application.
    #[arg(value_name = "APP")]
    app: Option<String>,
    /// Only of this user.
    #[arg(value_name = "USER")]
    user: Option<String>,
    /// Only this session.
    #[arg(value_name = "SESSION")]
    id: Option<String>,
    /// Write to this file, which must not exist yet, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Do not export shared state, that of applications and users.
    #[arg(long)]
    no_shared: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Export {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        with_sessions(&self.store.store, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let mut lines = Lines::to(self.output.as_ref())?;
        lines.write(&Line::SessileExport { format: FORMAT })?;
        let progress = Progress::counting("sessions exported");
        let mut exported = 0_u64;
        for key in self.chosen(service, &mut lines).await? {
            // A session that was deleted since it was listed is skipped.
            if session(service, &key, &mut lines).await? {
                exported += 1;
                progress.advance(1);
            }
        }
        lines.finish()?;
        drop(progress);
        if exported == 0 && self.id.is_some() {
            return Err(Failure::NotFound("there is no such session".to_owned()).into());
        }
        say(format_args!("exported {exported} sessions"));
        Ok(())
    }

    /// The sessions to export. Also writes the shared state, which comes first in the walk.
    async fn chosen(
        &self,
        service: &SessionService,
        lines: &mut Lines,
    ) -> anyhow::Result<BTreeSet<SessionKey>> {
        let mut keys = BTreeSet::new();
        let mut walk = Walk::over(service.store());
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        loop {
            let page = walk.next().await?;
            if page.is_empty() {
                return Ok(keys);
            }
            for address in page {
                match address {
                    Address::Scope(scope) if !self.no_shared => {
                        let chosen = match &scope {
                            ScopeKey::App(app) => is(&self.app, app),
                            ScopeKey::User(app, user) => is(&self.app, app) && is(&self.user, user),
                        };
                        if chosen {
                            shared(service, scope, lines).await?;
                        }
                    }
                    Address::Session(key)
                        if is(&self.app, key.app())
                            && is(&self.user, key.user())
                            && is(&self.id, key.id()) =>
                    {
                        keys.insert(key);
                    }
                    Address::Scope(_) | Address::Session(_) => {}
                }
            }
        }
    }
}

async fn shared(service: &SessionService, scope: ScopeKey, lines: &mut Lines) -> anyhow::Result<()> {
    let state = Arc::unwrap_or_clone(service.store().scope_state(&scope).await?.state);
    if state.is_empty() {
        return Ok(());
    }
    lines.write(&match scope {
        ScopeKey::App(app) => Line::AppState { app, state },
        ScopeKey::User(app, user) => Line::UserState { app, user, state },
    })
}

/// Writes a session and its events, a page at a time; returns whether it exists.
async fn session(service: &SessionService, key: &SessionKey, lines: &mut Lines) -> anyhow::Result<bool> {
    let Some(now) = service.store().get(key, EventWindow::NONE).await? else { return Ok(false) };
    let initial = match &now.initial {
        Some(initial) => (**initial).clone(),
        None => service.state_at(key, 0).await?,
    };
    lines.write(&Line::Session(SessionLine {
        app: key.app().to_owned(),
        user: key.user().to_owned(),
        id: key.id().to_owned(),
        version: now.version,
        update_time: now.update_time,
        initial,
        state: (*now.session).clone(),
    }))?;
    let (mut after, mut events) = (0, 0);
    while after < now.version {
        let until = (after + PAGE).min(now.version);
        let window =
            EventWindow { after_version: Some(after), until_version: Some(until), ..EventWindow::ALL };
        let page = service.store().get(key, window).await?;
        let page = page.ok_or_else(|| SessionError::NotFound { key: key.clone() })?;
        for event in page.events.iter() {
            events += 1;
            lines.write(&Line::Event { version: event.version, event: Box::new((*event.event).clone()) })?;
        }
        after = until;
    }
    lines.write(&Line::End { events })?;
    Ok(true)
}

/// Writes lines to a file or to standard output.
struct Lines(Box<dyn Write>);

impl Lines {
    fn to(file: Option<&PathBuf>) -> anyhow::Result<Self> {
        let Some(path) = file else { return Ok(Self(Box::new(BufWriter::new(stdout())))) };
        let made = File::create_new(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::Conflict(format!(
                "{} exists already; name another file, or remove it",
                path.display()
            ))
            .into(),
            _ => anyhow::Error::from(error).context(format!("cannot create the file {}", path.display())),
        })?;
        Ok(Self(Box::new(BufWriter::new(made))))
    }

    fn write(&mut self, line: &Line) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(line).context("cannot write a line as JSON")?;
        text.push(b'\n');
        written(self.0.write_all(&text))
    }

    fn finish(mut self) -> anyhow::Result<()> {
        written(self.0.flush())
    }
}
