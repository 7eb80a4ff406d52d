use clap::Args;
use serde_json::json;
use sessile_session::{ScopeKey, SessionService, StateMap};
use sessile_state::{Scope, SharedValue};

use super::target::{Owner, found};
use crate::args::OutputArgs;
use crate::event_text::cut;
use crate::output::Output;
use crate::store_url::{Need, with_sessions};

/// The arguments of `state get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    #[command(flatten)]
    owner: Owner,
    /// The key with its prefix; all keys if it is left out.
    #[arg(value_name = "KEY")]
    key: Option<String>,
    /// Print a text as it is, without quotes.
    #[arg(long, requires = "key")]
    raw: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl Get {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let url = &self.owner.store.store;
        with_sessions(url, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let mut output = Output::new(&self.output);
        let Some(key) = &self.key else {
            let state = everything(&self.owner, service).await?;
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
        let state = target.read(service).await?;
        let value = state.get(Scope::of(key).1).ok_or_else(|| target.missing(key, &state))?;
        match value.as_str().filter(|_| self.raw) {
            Some(text) => output.line(text)?,
            None => output.json(value)?,
        }
        output.finish()
    }
}

/// The state of all scopes that the arguments name, keys with their prefixes.
async fn everything(owner: &Owner, service: &SessionService) -> anyhow::Result<StateMap> {
    let mut state = StateMap::new();
    if let Some(key) = owner.session() {
        let session = found(service, &key).await?;
        state.extend(session.state().iter().map(|(key, value)| (key.to_owned(), value.clone())));
        return Ok(state);
    }
    let prefixed = |scope: Scope| move |(key, value): (String, SharedValue)| (scope.key(&key), value);
    state.extend(service.app_state(&owner.app).await?.into_iter().map(prefixed(Scope::App)));
    if let Some(user) = &owner.user {
        state.extend(service.user_state(&owner.app, user).await?.into_iter().map(prefixed(Scope::User)));
    }
    Ok(state)
}

/// The arguments of `state versions`.
#[derive(Debug, Args)]
pub(crate) struct Versions {
    #[command(flatten)]
    owner: Owner,
    #[command(flatten)]
    output: OutputArgs,
}

impl Versions {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let url = &self.owner.store.store;
        with_sessions(url, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let Owner { app, user, .. } = &self.owner;
        let mut versions = vec![("app", service.scope_state(&ScopeKey::App(app.clone())).await?.version)];
        if let Some(user) = user {
            let scope = ScopeKey::User(app.clone(), user.clone());
            versions.push(("user", service.scope_state(&scope).await?.version));
        }
        if let Some(key) = self.owner.session() {
            versions.push(("session", found(service, &key).await?.version()));
        }
        let mut output = Output::new(&self.output);
        match output.is_json() {
            true => {
                let each = versions.into_iter().map(|(scope, version)| (scope.to_owned(), json!(version)));
                output.json(&each.collect::<serde_json::Map<_, _>>())?;
            }
            false => {
                let rows: Vec<[String; 2]> = versions
                    .into_iter()
                    .map(|(scope, version)| [scope.to_owned(), version.to_string()])
                    .collect();
                output.table(["SCOPE", "VERSION"], &rows)?;
            }
        }
        output.finish()
    }
}
