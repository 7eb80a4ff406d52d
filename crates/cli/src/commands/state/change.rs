//! `set` and `rm`.

use std::io::Read;

use anyhow::Context;
use clap::Args;
use sessile_session::SessionService;
use sessile_state::{Change, Scope, SharedValue};

use super::target::Changed;
use crate::exit::Failure;

/// The arguments of `state set`.
#[derive(Debug, Args)]
pub(crate) struct Set {
    #[command(flatten)]
    changed: Changed,
    #[command(flatten)]
    value: Given,
}

/// A value of the command line.
#[derive(Debug, Args)]
pub(super) struct Given {
    /// The value as JSON; - reads it from standard input.
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    /// Take the value as text, not as JSON.
    #[arg(long)]
    text: bool,
}

impl Given {
    pub(super) fn read(&self) -> anyhow::Result<SharedValue> {
        let mut given = self.value.clone();
        if given == "-" {
            given.clear();
            std::io::stdin().read_to_string(&mut given).context("cannot read the value")?;
        }
        match self.text {
            true => Ok(SharedValue::from(serde_json::Value::from(given))),
            false => json(&given, "quote it as '\"text\"', or add --text"),
        }
    }
}

/// Parses an argument as JSON.
pub(super) fn json(text: &str, advice: &str) -> anyhow::Result<SharedValue> {
    SharedValue::from_json(text.trim())
        .map_err(|error| Failure::Usage(format!("the value is not JSON ({error}); {advice}")).into())
}

impl Set {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let Changed { owner, key, if_version, .. } = &self.changed;
        let target = owner.target(key)?;
        let change = Change::Set(self.value.read()?);
        let write = async |service: &SessionService| target.write(service, key, change, *if_version).await;
        self.changed.with_sessions(write).await.map(drop)
    }
}

/// The arguments of `state rm`.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    changed: Changed,
}

impl Remove {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        self.changed.with_sessions(async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let Changed { owner, key, if_version, .. } = &self.changed;
        let target = owner.target(key)?;
        let state = target.read(service).await?;
        if !state.contains_key(Scope::of(key).1) {
            return Err(target.missing(key, &state));
        }
        target.write(service, key, Change::Remove, *if_version).await.map(drop)
    }
}
