//! `sessile chat`: a conversation with an agent in the terminal.
//!
//! The agent's answers go to standard output; its tool calls and changes of state to standard
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
use crate::event_text::{changes, cut, summary};
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
    /// The user of the session.
    #[arg(long, value_name = "USER", default_value = "user")]
    user: String,
    /// The session to continue, or the id of a new one; a new id is generated if it is left out.
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
        Conversation::new(runner, key)?.run().await
    }

    /// The session of the conversation, created if it does not exist.
    async fn session(&self, sessions: &SessionService) -> anyhow::Result<SessionKey> {
        if let Some(id) = &self.session {
            let key = SessionKey::new(&self.app, &self.user, id)?;
            if let Some(session) = sessions.get(&key, EventWindow::NONE).await? {
                say(format_args!("continuing session {key} of {} events", session.version()));
                return Ok(key);
            }
        }
        let new = CreateSession { id: self.session.clone(), ..CreateSession::new(&self.app, &self.user) };
        let key = sessions.create(new).await?.key().clone();
        say(format_args!(
            "new session; continue it later with: --user {} --session {}",
            key.user(),
            key.id()
        ));
        Ok(key)
    }
}

/// A conversation in the terminal.
struct Conversation {
    runner: Runner,
    key: SessionKey,
    lines: Lines<BufReader<Stdin>>,
    /// Ctrl-C. Registered for the whole conversation, so that none is missed between turns.
    interrupts: Signal,
    /// Whether messages are typed at a terminal, not piped.
    typed: bool,
    dim: bool,
    failed: bool,
}

impl Conversation {
    fn new(runner: Runner, key: SessionKey) -> anyhow::Result<Self> {
        let typed = stdin().is_terminal();
        let interrupts = signal(SignalKind::interrupt()).context("cannot handle Ctrl-C")?;
        let lines = BufReader::new(tokio::io::stdin()).lines();
        Ok(Self { runner, key, lines, interrupts, typed, dim: colours_on(&std::io::stderr()), failed: false })
    }

    /// Runs turns until there are no more messages.
    async fn run(mut self) -> anyhow::Result<()> {
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

    /// Prints pieces as they arrive, and a whole answer only if it was not streamed in pieces.
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
            self.aside(&cut(&summary(event), 300));
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

/// The text of an event without the model's thoughts.
fn spoken(event: &Event) -> String {
    let parts = event.content.iter().flat_map(|content| content.parts());
    let texts = parts.filter(|part| part.thought != Some(true)).filter_map(|part| part.text.as_deref());
    texts.collect()
}
