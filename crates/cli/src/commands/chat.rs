//! `sessile chat`: talking to an agent in the terminal.
//!
//! What the agent says goes to standard output; its calls, and state as it changes, to standard
//! error.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use sessile_agent::{RunConfig, RunError, RunRequest, Runner, Streaming};
use sessile_session::{CreateSession, Event, EventWindow, SessionKey, SessionService};
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::agents::{Services, with_schemas};
use crate::args::StoreArgs;
use crate::event_text::{changes, cut, said};
use crate::exit::Failure;
use crate::output::written;
use crate::services::ServiceArgs;
use crate::stderr::{colours_on, harmless, harmless_lines, say};
use crate::store_url::{Need, StoreUrl, closed};

/// The arguments of `chat`.
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// The application to talk to; without --agents, one of the samples: greeter or shop.
    #[arg(value_name = "APP")]
    app: String,
    /// The folder with a folder for each application.
    #[arg(long, value_name = "FOLDER")]
    agents: Option<PathBuf>,
    /// Who talks.
    #[arg(long, value_name = "USER", default_value = "user")]
    user: String,
    /// The session to go on with, or to make under this id; a new one if it is left out.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    services: ServiceArgs,
}

impl Chat {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store_url = StoreUrl::parse(&self.store.store)?;
        let sessions = SessionService::over(store_url.open(Need::Any).await?);
        let done = match with_schemas(sessions.clone(), self.agents.as_deref()) {
            Ok(checked) => self.talk(&store_url, &checked).await,
            Err(error) => Err(error),
        };
        closed(&sessions, done).await
    }

    async fn talk(&self, store_url: &StoreUrl, sessions: &SessionService) -> anyhow::Result<()> {
        let services = Services {
            sessions: sessions.clone(),
            artifacts: self.services.artifacts(store_url).await?,
            memory: self.services.memory(store_url).await?,
            auto_create: false,
        };
        let applications = services.load(self.agents.as_deref())?;
        let names: Vec<&str> = applications.iter().map(|app| app.name.as_str()).collect();
        let known = names.join(", ");
        let Some(found) = applications.into_iter().find(|app| app.name == self.app) else {
            let text = format!("there is no application {:?}; there are: {known}", self.app);
            return Err(Failure::NotFound(text).into());
        };
        let runner = found.runner.map_err(Failure::Usage)?;
        let key = self.session(&services.sessions).await?;
        Conversation::new(runner, key)?.go_on().await
    }

    /// The session to talk in, made if it is not there.
    async fn session(&self, sessions: &SessionService) -> anyhow::Result<SessionKey> {
        if let Some(id) = &self.session {
            let key = SessionKey::new(&self.app, &self.user, id)?;
            if let Some(session) = sessions.get(&key, EventWindow::NONE).await? {
                say(format_args!("going on with session {key} of {} events", session.version()));
                return Ok(key);
            }
        }
        let new = CreateSession { id: self.session.clone(), ..CreateSession::new(&self.app, &self.user) };
        let key = sessions.create(new).await?.key().clone();
        say(format_args!("new session; go on with it later: --user {} --session {}", key.user(), key.id()));
        Ok(key)
    }
}

/// A conversation in the terminal.
struct Conversation {
    runner: Runner,
    key: SessionKey,
    lines: Lines<BufReader<Stdin>>,
    /// Ctrl-C, heard all the time.
    interrupts: Signal,
    /// Whether a person types the messages.
    typed: bool,
    dim: bool,
    failed: bool,
}

impl Conversation {
    fn new(runner: Runner, key: SessionKey) -> anyhow::Result<Self> {
        let typed = stdin().is_terminal();
        let interrupts = signal(SignalKind::interrupt()).context("cannot hear Ctrl-C")?;
        let lines = BufReader::new(tokio::io::stdin()).lines();
        Ok(Self { runner, key, lines, interrupts, typed, dim: colours_on(&std::io::stderr()), failed: false })
    }

    /// One turn after the other, until there are no more messages.
    async fn go_on(mut self) -> anyhow::Result<()> {
        if self.typed {
            say(format_args!(
                "type a message; Ctrl-C ends a turn, and then the conversation; Ctrl-D ends it too"
            ));
        }
        while let Some(message) = self.message().await? {
            if !message.trim().is_empty() {
                self.turn(message).await?;
            }
        }
        match self.failed {
            true => Err(anyhow::anyhow!("a turn failed; the session keeps what was committed")),
            false => Ok(()),
        }
    }

    async fn message(&mut self) -> anyhow::Result<Option<String>> {
        if self.typed {
            drop(write!(std::io::stderr(), "> "));
        }
        tokio::select! {
            line = self.lines.next_line() => line.context("cannot read the message"),
            _ = self.interrupts.recv() => Err(Failure::Interrupted.into()),
        }
    }

    async fn turn(&mut self, message: String) -> anyhow::Result<()> {
        let config = RunConfig { streaming: Streaming::Pieces, ..RunConfig::default() };
        let request = RunRequest::new(self.key.user(), self.key.id()).with_text(message).with_config(config);
        let mut run = self.runner.run(request);
        let mut pieces = false;
        loop {
            let event = tokio::select! {
                event = run.next() => event,
                _ = self.interrupts.recv() => {
                    drop(run);
                    say(format_args!("\n(the turn was cancelled; what was committed stays)"));
                    self.failed |= !self.typed;
                    return Ok(());
                }
            };
            match event {
                None => return Ok(()),
                Some(Ok(event)) => self.show(&event, &mut pieces)?,
                Some(Err(error)) => {
                    self.tell_error(&error);
                    return Ok(());
                }
            }
        }
    }

    /// Shows pieces as they come, and a whole answer only if it did not come in pieces.
    fn show(&self, event: &Arc<Event>, pieces: &mut bool) -> anyhow::Result<()> {
        let text = spoken(event);
        if event.is_partial() {
            *pieces |= !text.is_empty();
            written(write!(stdout(), "{}", harmless_lines(&text)))?;
            return written(stdout().flush());
        }
        match std::mem::take(pieces) {
            true => written(writeln!(stdout()))?,
            false if text.is_empty() => {}
            false => written(writeln!(stdout(), "{}", harmless_lines(&text)))?,
        }
        let without_text =
            event.function_calls().next().is_some() || event.function_responses().next().is_some();
        if without_text || event.error_code.is_some() {
            self.aside(&cut(&said(event), 300));
        }
        changes(&event.actions.state_delta).iter().for_each(|change| self.aside(&cut(change, 300)));
        Ok(())
    }

    fn tell_error(&mut self, error: &RunError) {
        self.failed = true;
        say(format_args!("error: {}", harmless(&error.to_string())));
    }

    fn aside(&self, text: &str) {
        let text = harmless(text);
        match self.dim {
            true => say(format_args!("\u{1b}[2m  {text}\u{1b}[0m")),
            false => say(format_args!("  {text}")),
        }
    }
}

/// What an event says to the user: its texts, but not the model's thoughts.
fn spoken(event: &Event) -> String {
    let parts = event.content.iter().flat_map(|content| content.parts());
    let texts = parts.filter(|part| part.thought != Some(true)).filter_map(|part| part.text.as_deref());
    texts.collect()
}
