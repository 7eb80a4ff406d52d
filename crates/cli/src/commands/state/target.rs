//! The owner of state (application, user or session), and how its state is read and changed.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use sessile_session::{
    Append, Event, EventActions, EventWindow, Expect, Ids, RandomIds, ScopeKey, Session, SessionError,
    SessionKey, SessionService, StateMap, StateWrite,
};
use sessile_state::{Change, Delta, Scope, SharedValue};

use crate::agents::with_schemas;
use crate::args::StoreArgs;
use crate::exit::Failure;
use crate::os_user::os_user;
use crate::store_url::{Need, with_sessions};

/// The owner of the state.
#[derive(Debug, Args)]
pub(super) struct Owner {
    /// The application.
    #[arg(value_name = "APP")]
    pub(super) app: String,
    /// The user, for `user:` keys and those of a session.
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,
    /// The session, for its own keys.
    #[arg(long, value_name = "SESSION", requires = "user")]
    pub(super) session: Option<String>,
    #[command(flatten)]
    pub(super) store: StoreArgs,
}

/// The key to change, and on which condition.
#[derive(Debug, Args)]
pub(super) struct Changed {
    #[command(flatten)]
    pub(super) owner: Owner,
    /// The key with its prefix.
    #[arg(value_name = "KEY")]
    pub(super) key: String,
    /// Only if the scope of the key (application, user or session) still has this version.
    #[arg(long, value_name = "VERSION")]
    pub(super) if_version: Option<u64>,
    /// Check the change with the state_schema of the application in this folder, as `serve` does:
    /// the folder with a folder for each application, or that of one.
    #[arg(long, env = "SESSILE_AGENTS", value_name = "FOLDER")]
    pub(super) agents: Option<PathBuf>,
}

impl Changed {
    /// Opens the store for `work`; changes are checked with the schema of the application if a
    /// folder is named.
    pub(super) async fn with_sessions<T>(
        &self,
        work: impl AsyncFnOnce(&SessionService) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        with_sessions(&self.owner.store.store, Need::Existing, async |service| {
            work(&with_schemas(service.clone(), self.agents.as_deref())?).await
        })
        .await
    }
}

/// The scope that a key belongs to, with its address.
pub(super) enum Target {
    Shared(ScopeKey),
    Session(SessionKey),
}

impl Owner {
    /// The session, if one is named.
    pub(super) fn session(&self) -> Option<SessionKey> {
        Some(SessionKey::from_stored(&self.app, self.user.as_ref()?, self.session.as_ref()?))
    }

    /// The scope of a key; a usage error if the arguments do not name its owner.
    pub(super) fn target(&self, key: &str) -> anyhow::Result<Target> {
        let lacks = |what: &str| Failure::Usage(format!("{key:?} is a key of a {what}; add --{what}"));
        match Scope::of(key).0 {
            Scope::App => Ok(Target::Shared(ScopeKey::App(self.app.clone()))),
            Scope::User => {
                let user = self.user.clone().ok_or_else(|| lacks("user"))?;
                Ok(Target::Shared(ScopeKey::User(self.app.clone(), user)))
            }
            Scope::Session => Ok(Target::Session(self.session().ok_or_else(|| lacks("session"))?)),
            Scope::Temp => {
                let text = format!("{key:?} is of the scope temp:, which is never stored");
                Err(Failure::Usage(text).into())
            }
        }
    }
}

impl Target {
    /// The state of the scope, keys without prefix.
    pub(super) async fn read(&self, service: &SessionService) -> anyhow::Result<StateMap> {
        match self {
            Self::Shared(scope) => Ok(Arc::unwrap_or_clone(service.scope_state(scope).await?.state)),
            Self::Session(key) => {
                let session = found(service, key).await?;
                let own = session.state().iter().filter(|(key, _)| Scope::of(key).0 == Scope::Session);
                Ok(own.map(|(key, value)| (key.to_owned(), value.clone())).collect())
            }
        }
    }

    /// Commits a change of a key, given with its prefix, and returns the new value.
    pub(super) async fn write(
        &self,
        service: &SessionService,
        key: &str,
        change: Change,
        if_version: Option<u64>,
    ) -> anyhow::Result<Option<SharedValue>> {
        match self {
            Self::Shared(scope) => {
                let name = Scope::of(key).1;
                let write = StateWrite {
                    expect: if_version,
                    principal: os_user(),
                    ..StateWrite::new(scope.clone(), only(name, change))
                };
                Ok(service.write_state(write).await?.state.get(name).cloned())
            }
            Self::Session(session) => {
                let event = Event::new("user")
                    .with_actions(EventActions::from_delta(only(key, change)))
                    .with_invocation(format!("p-{}", RandomIds.new_id()));
                let expect = Expect { session: if_version, ..Expect::default() };
                let appended =
                    service.append_answering(session, Append::new(event).expecting(expect)).await?;
                match appended.event.actions.state_delta.get(key) {
                    Some(Change::Set(value)) => Ok(Some(value.clone())),
                    _ => Ok(None),
                }
            }
        }
    }

    pub(super) fn missing(&self, key: &str, state: &StateMap) -> anyhow::Error {
        let whose = match self {
            Self::Shared(scope) => scope.to_string(),
            Self::Session(session) => format!("session {session}"),
        };
        let hint = match state.len() {
            0 => "it has none".to_owned(),
            count => format!("it has {count} others; `sessile state get` without a key shows them"),
        };
        Failure::NotFound(format!("{whose} has no key {key:?}; {hint}")).into()
    }
}

/// A delta of one change.
fn only(key: &str, change: Change) -> Delta {
    let mut delta = Delta::new();
    match change {
        Change::Set(value) => delta.set(key, value),
        Change::Remove => delta.remove(key),
        Change::Operate(operations) => delta.operate(key, operations),
    }
    delta
}

pub(super) async fn found(service: &SessionService, key: &SessionKey) -> anyhow::Result<Session> {
    let session = service.get(key, EventWindow::NONE).await?;
    session.ok_or_else(|| SessionError::NotFound { key: key.clone() }.into())
}
