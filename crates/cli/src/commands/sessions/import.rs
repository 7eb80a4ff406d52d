use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use sessile_session::{
    Event, Guards, OnOverwrite, RestoreSession, ScopeKey, SessionError, SessionKey, SessionService, StateMap,
    StateWrite, apply,
};
use sessile_state::Delta;

use super::format::{FORMAT, Line, SessionLine};
use crate::args::StoreArgs;
use crate::exit::Failure;
use crate::progress::Progress;
use crate::stderr::say;
use crate::store_url::{Need, with_sessions};

/// The arguments of `sessions import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The file that `sessions export` wrote; - is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Skip sessions that exist already, instead of stopping there.
    #[arg(long)]
    skip_existing: bool,
    /// Keep existing values of application and user state that differ, instead of stopping there.
    #[arg(long)]
    keep_shared: bool,
    #[command(flatten)]
    store: StoreArgs,
}

impl Import {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut lines = Lines::of(&self.file)?;
        lines.check_format()?;
        with_sessions(&self.store.store, Need::Any, async |service| {
            let (mut imported, mut skipped) = (0_u64, 0_u64);
            let result = self.import(service, &mut lines, &mut imported, &mut skipped).await;
            say(format_args!("imported {imported} sessions, left {skipped} as they were"));
            result
        })
        .await
    }

    async fn import(
        &self,
        service: &SessionService,
        lines: &mut Lines,
        imported: &mut u64,
        skipped: &mut u64,
    ) -> anyhow::Result<()> {
        while let Some(line) = lines.next()? {
            match line {
                Line::SessileExport { .. } => {} // the head of a second file, if files were concatenated
                Line::AppState { app, state } => {
                    self.shared(service, ScopeKey::App(app), state).await?;
                }
                Line::UserState { app, user, state } => {
                    self.shared(service, ScopeKey::User(app, user), state).await?;
                }
                Line::Session(line) => match service.restore(lines.session(line)?).await {
                    Ok(_) => *imported += 1,
                    Err(SessionError::AlreadyExists { .. }) if self.skip_existing => *skipped += 1,
                    Err(SessionError::AlreadyExists { key }) => {
                        let text = format!(
                            "session {key} exists already and stays as it is; --skip-existing goes on with the others"
                        );
                        return Err(Failure::Conflict(text).into());
                    }
                    Err(error) => return Err(lines.wrong(error)),
                },
                Line::Event { .. } | Line::End { .. } => return Err(lines.wrong("it belongs to no session")),
            }
        }
        Ok(())
    }

    /// Adds the keys that are not there; refuses those that have another value. Keys that other
    /// writers add between the comparison and the write are compared too.
    async fn shared(&self, service: &SessionService, scope: ScopeKey, state: StateMap) -> anyhow::Result<()> {
        loop {
            let write = self.missing(service, &scope, &state).await?;
            match service.write_state(write).await {
                Ok(_) => return Ok(()),
                Err(SessionError::Overwritten { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A write of the missing keys, which is refused if one of them is set by another writer
    /// meanwhile.
    async fn missing(
        &self,
        service: &SessionService,
        scope: &ScopeKey,
        state: &StateMap,
    ) -> anyhow::Result<StateWrite> {
        let now = service.store().scope_state(scope).await?.state;
        let mut write = StateWrite::new(scope.clone(), Delta::new());
        write.guards = Guards::new(OnOverwrite::Refuse);
        for (key, value) in state {
            match now.get(key) {
                None => {
                    write.delta.set(key, value.clone());
                    write.guards.insert(key.clone(), None);
                }
                Some(stored) if stored == value || self.keep_shared => {}
                Some(_) => {
                    let key = scope.scope().key(key);
                    return Err(Failure::Conflict(format!(
                        "{key} of {scope} has another value already; --keep-shared leaves such keys as they are"
                    ))
                    .into());
                }
            }
        }
        Ok(write)
    }
}

/// The lines of a file, one after the other.
struct Lines {
    reader: Box<dyn BufRead>,
    name: String,
    number: u64,
    progress: Progress,
}

impl Lines {
    fn of(path: &Path) -> anyhow::Result<Self> {
        let what = "imported";
        if path == Path::new("-") {
            let (reader, name) = (Box::new(BufReader::new(stdin())), "standard input".to_owned());
            return Ok(Self { reader, name, number: 0, progress: Progress::counting(what) });
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::NotFound(format!("there is no file {name}")).into(),
            _ => anyhow::Error::from(error).context(format!("cannot read {name}")),
        })?;
        let size = file.metadata().with_context(|| format!("cannot read {name}"))?.len();
        let progress = Progress::of_bytes(size, what);
        Ok(Self { reader: Box::new(BufReader::new(file)), name, number: 0, progress })
    }

    /// The next line; `None` at the end.
    fn next(&mut self) -> anyhow::Result<Option<Line>> {
        let mut text = String::new();
        loop {
            text.clear();
            let read =
                self.reader.read_line(&mut text).with_context(|| format!("cannot read {}", self.name))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            self.progress.advance(read as u64);
            if !text.trim().is_empty() {
                return serde_json::from_str(&text).map(Some).map_err(|error| self.wrong(error));
            }
        }
    }

    fn check_format(&mut self) -> anyhow::Result<()> {
        match self.next() {
            Ok(Some(Line::SessileExport { format: FORMAT })) => Ok(()),
            Ok(Some(Line::SessileExport { format })) => {
                bail!("{} is in format {format}, and this program reads {FORMAT}; upgrade it", self.name)
            }
            _ => {
                Err(Failure::Usage(format!("{} was not written by `sessile sessions export`", self.name))
                    .into())
            }
        }
    }

    /// Reads the events of a session, and checks that they result in its state.
    fn session(&mut self, line: SessionLine) -> anyhow::Result<RestoreSession> {
        let (mut events, mut state, mut version) = (Vec::<Event>::new(), line.initial.clone(), 0);
        loop {
            match self.next()? {
                Some(Line::Event { version: next, event }) if next > version => {
                    apply(&mut state, &event.actions.state_delta.split().session);
                    version = next;
                    events.push(*event);
                }
                Some(Line::Event { version: next, .. }) => {
                    return Err(self.wrong(format!("version {next} does not come after {version}")));
                }
                Some(Line::End { events: count }) if count == events.len() as u64 => break,
                Some(Line::End { events: count }) => {
                    return Err(self.wrong(format!("there are {} events and not {count}", events.len())));
                }
                Some(_) | None => {
                    return Err(self.wrong(format!("the session {:?} is cut off here", line.id)));
                }
            }
        }
        if let Some(key) = differing(&state, &line.state) {
            return Err(self.wrong(format!(
                "the state key {key:?} of session {:?} does not agree with its events; was the file edited?",
                line.id
            )));
        }
        let key = SessionKey::new(line.app, line.user, &line.id).map_err(|error| self.wrong(error))?;
        if key.id() != line.id {
            return Err(
                self.wrong(format!("the id {:?} has white space around it; rename the session", line.id))
            );
        }
        let first = events.first().map_or(line.update_time, |event| event.time());
        Ok(RestoreSession { key, time: first.min(line.update_time), initial: line.initial, events })
    }

    fn wrong(&self, error: impl std::fmt::Display) -> anyhow::Error {
        Failure::Usage(format!("line {} of {}: {error}", self.number, self.name)).into()
    }
}

/// A key whose values differ, or that only one of the two has.
fn differing<'a>(one: &'a StateMap, other: &'a StateMap) -> Option<&'a str> {
    let differs = |key: &&'a String| one.get(*key) != other.get(*key);
    one.keys().chain(other.keys()).find(differs).map(String::as_str)
}
