//! `sessile state`: what is known, in every scope. A key's prefix says whose it is: `app:`, `user:`, or none
//! for the session's own.

use std::io::Read;

use anyhow::Context;
use clap::{Args, Subcommand};
use sessile_session::{Event, EventWindow, SessionError, SessionKey, SessionService, StateMap};
use sessile_state::{Delta, Scope, SharedValue};

use crate::args::{OutputArgs, StoreArgs};
use crate::event_text::cut;
use crate::exit::Failure;
use crate::output::Output;
use crate::place::{Need, sessions};

#[derive(Debug, Subcommand)]
pub(crate) enum State {
    /// Print a key's value as JSON, or everything that is known there.
    Get(Get),
    /// Set a key; a change of a session is an event of its own.
    Set(Set),
    /// Remove a key; a change of a session is an event of its own.
    Rm(Remove),
}

pub(crate) async fn run(command: State) -> anyhow::Result<()> {
    match command {
        State::Get(command) => command.run().await,
        State::Set(command) => command.run().await,
        State::Rm(command) => command.run().await,
    }
}

/// Whose state it is.
#[derive(Debug, Args)]
pub(crate) struct Owner {
    /// The application.
    #[arg(value_name = "APP")]
    app: String,
    /// The user, for `user:` keys and those of a session.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The session, for its own keys.
    #[arg(long, value_name = "SESSION", requires = "user")]
    session: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
}

/// The arguments of `state get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    #[command(flatten)]
    owner: Owner,
    /// The key with its prefix; everything if it is left out.
    #[arg(value_name = "KEY")]
    key: Option<String>,
    /// Print a text as it is, without quotes.
    #[arg(long, requires = "key")]
    raw: bool,
    #[command(flatten)]
    output: OutputArgs,
}

/// The arguments of `state set`.
#[derive(Debug, Args)]
pub(crate) struct Set {
    #[command(flatten)]
    owner: Owner,
    /// The key with its prefix.
    #[arg(value_name = "KEY")]
    key: String,
    /// The value as JSON; - reads it from standard input.
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    /// The value is a text, not JSON.
    #[arg(long)]
    text: bool,
    /// Only if the session still has this version.
    #[arg(long, value_name = "VERSION", requires = "session")]
    if_version: Option<u64>,
}

/// The arguments of `state rm`.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    owner: Owner,
    /// The key with its prefix.
    #[arg(value_name = "KEY")]
    key: String,
    /// Only if the session still has this version.
    #[arg(long, value_name = "VERSION", requires = "session")]
    if_version: Option<u64>,
}

impl Get {
    async fn run(self) -> anyhow::Result<()> {
        let service = sessions(&self.owner.store.store, Need::Existing).await?;
        let mut output = Output::new(&self.output);
        let Some(key) = &self.key else {
            let state = self.owner.everything(&service).await?;
            match output.is_json() {
                true => output.json(&state)?,
                false => {
                    let rows = state.iter().map(|(key, value)| [key.clone(), cut(&value.to_string(), 200)]);
                    output.table(["KEY", "VALUE"], &rows.collect::<Vec<_>>())?;
                }
            }
            return output.finish();
        };
        let target = self.owner.target(key)?;
        let state = target.read(&service).await?;
        let value = state.get(Scope::of(key).1).ok_or_else(|| target.missing(key, &state))?;
        match value.as_str().filter(|_| self.raw) {
            Some(text) => output.line(text)?,
            None => output.json(value)?,
        }
        output.finish()
    }
}

impl Set {
    async fn run(self) -> anyhow::Result<()> {
        let target = self.owner.target(&self.key)?;
        let mut given = self.value.clone();
        if given == "-" {
            given.clear();
            std::io::stdin().read_to_string(&mut given).context("cannot read the value")?;
        }
        let value = match self.text {
            true => SharedValue::from(serde_json::Value::from(given)),
            false => SharedValue::from_json(given.trim()).map_err(|error| {
                Failure::Usage(format!(
                    "the value is no JSON ({error}); quote it as '\"text\"', or add --text"
                ))
            })?,
        };
        let service = sessions(&self.owner.store.store, Need::Existing).await?;
        let mut delta = Delta::new();
        delta.set(&self.key, value);
        target.write(&service, &delta, self.if_version).await
    }
}

impl Remove {
    async fn run(self) -> anyhow::Result<()> {
        let target = self.owner.target(&self.key)?;
        let service = sessions(&self.owner.store.store, Need::Existing).await?;
        let state = target.read(&service).await?;
        if !state.contains_key(Scope::of(&self.key).1) {
            return Err(target.missing(&self.key, &state));
        }
        let mut delta = Delta::new();
        delta.remove(&self.key);
        target.write(&service, &delta, self.if_version).await
    }
}

/// Where the keys of one scope are.
enum Target {
    App(String),
    User(String, String),
    Session(SessionKey),
}

impl Owner {
    /// The place of a key, if enough is said to find it.
    fn target(&self, key: &str) -> anyhow::Result<Target> {
        let lacks = |what: &str| Failure::Usage(format!("{key:?} is a key of a {what}; add --{what}"));
        let user = || self.user.clone();
        match Scope::of(key).0 {
            Scope::App => Ok(Target::App(self.app.clone())),
            Scope::User => {
                let user = user().ok_or_else(|| lacks("user"))?;
                Ok(Target::User(self.app.clone(), user))
            }
            Scope::Session => match (user(), &self.session) {
                (Some(user), Some(id)) => Ok(Target::Session(SessionKey::from_stored(&self.app, user, id))),
                (None, Some(_)) => Err(lacks("user").into()),
                (_, None) => Err(lacks("session").into()),
            },
            Scope::Temp => {
                let text = format!("{key:?} is of the scope temp:, which is never stored");
                Err(Failure::Usage(text).into())
            }
        }
    }

    /// Everything that is known here, keys with their prefixes.
    async fn everything(&self, service: &SessionService) -> anyhow::Result<StateMap> {
        let mut state = StateMap::new();
        if let (Some(user), Some(id)) = (&self.user, &self.session) {
            let key = SessionKey::from_stored(&self.app, user, id);
            let session = found(service, &key).await?;
            state.extend(session.state().iter().map(|(key, value)| (key.to_owned(), value.clone())));
            return Ok(state);
        }
        let prefixed = |scope: Scope| move |(key, value): (String, SharedValue)| (scope.key(&key), value);
        state.extend(service.app_state(&self.app).await?.into_iter().map(prefixed(Scope::App)));
        if let Some(user) = &self.user {
            state.extend(service.user_state(&self.app, user).await?.into_iter().map(prefixed(Scope::User)));
        }
        Ok(state)
    }
}

impl Target {
    /// The state of the scope, keys without prefix.
    async fn read(&self, service: &SessionService) -> anyhow::Result<StateMap> {
        Ok(match self {
            Self::App(app) => service.app_state(app).await?,
            Self::User(app, user) => service.user_state(app, user).await?,
            Self::Session(key) => {
                let session = found(service, key).await?;
                let own = session.state().iter().filter(|(key, _)| Scope::of(key).0 == Scope::Session);
                own.map(|(key, value)| (key.to_owned(), value.clone())).collect()
            }
        })
    }

    /// Commits changes of keys with their prefixes.
    async fn write(
        &self,
        service: &SessionService,
        delta: &Delta,
        if_version: Option<u64>,
    ) -> anyhow::Result<()> {
        match self {
            Self::App(app) => service.write_app_state(app, &delta.split().app).await?,
            Self::User(app, user) => service.write_user_state(app, user, &delta.split().user).await?,
            Self::Session(key) => {
                let mut event = Event::new("user").with_delta(delta);
                event.invocation_id =
                    format!("p-{}", sessile_session::Ids::new_id(&sessile_session::RandomIds));
                let Some(expected) = if_version else {
                    service.append_to(key, event).await?;
                    return Ok(());
                };
                let mut session = found(service, key).await?;
                if session.version() != expected {
                    let (scope, actual) = (Scope::Session, session.version());
                    return Err(SessionError::Conflict { key: key.clone(), scope, expected, actual }.into());
                }
                service.append(&mut session, event).await?;
            }
        }
        Ok(())
    }

    fn missing(&self, key: &str, state: &StateMap) -> anyhow::Error {
        let whose = match self {
            Self::App(app) => format!("application {app}"),
            Self::User(app, user) => format!("user {user} of application {app}"),
            Self::Session(session) => format!("session {session}"),
        };
        let hint = match state.len() {
            0 => "it has none".to_owned(),
            count => format!("it has {count} others; `sessile state get` without a key shows them"),
        };
        Failure::NotFound(format!("{whose} has no key {key:?}; {hint}")).into()
    }
}

async fn found(service: &SessionService, key: &SessionKey) -> anyhow::Result<sessile_session::Session> {
    let session = service.get(key, EventWindow::NONE).await?;
    session.ok_or_else(|| SessionError::NotFound { key: key.clone() }.into())
}
