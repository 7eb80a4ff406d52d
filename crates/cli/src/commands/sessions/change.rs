//! `delete`, `fork` and `rewind`.

use clap::Args;
use serde_json::json;
use sessile_session::{EventWindow, Expect, SessionError, SessionService};

use crate::args::{OutputArgs, SessionArgs, StoreArgs};
use crate::output::Output;
use crate::stderr::say;
use crate::store_url::{Need, with_sessions};

/// The arguments of `sessions delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    session: SessionArgs,
    /// Only if the session still has this version.
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,
    #[command(flatten)]
    store: StoreArgs,
}

impl Delete {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        with_sessions(&self.store.store, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let key = self.session.key();
        let expect = Expect { session: self.if_version, ..Expect::default() };
        if !service.delete_expecting(&key, expect).await? {
            return Err(SessionError::NotFound { key }.into());
        }
        say(format_args!("deleted {key}"));
        Ok(())
    }
}

/// The arguments of `sessions fork`.
#[derive(Debug, Args)]
pub(crate) struct Fork {
    #[command(flatten)]
    session: SessionArgs,
    /// Fork the session as it was at this version, instead of the newest.
    #[arg(long, value_name = "VERSION")]
    at: Option<u64>,
    /// The id of the new session; one is generated if it is left out.
    #[arg(long = "as", value_name = "ID")]
    new_id: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Fork {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        with_sessions(&self.store.store, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let key = self.session.key();
        let version = match self.at {
            Some(version) => version,
            None => match service.get(&key, EventWindow::NONE).await? {
                Some(session) => session.version(),
                None => return Err(SessionError::NotFound { key }.into()),
            },
        };
        let fork = service.fork(&key, version, self.new_id.as_deref()).await?;
        let mut output = Output::new(&self.output);
        match output.is_json() {
            true => output.json(&json!({"id": fork.key().id(), "version": fork.version()}))?,
            false => output.line(fork.key().id())?,
        }
        output.finish()
    }
}

/// The arguments of `sessions rewind`.
#[derive(Debug, Args)]
pub(crate) struct Rewind {
    #[command(flatten)]
    session: SessionArgs,
    /// The first invocation to undo; `sessions show` lists them.
    #[arg(long, value_name = "INVOCATION")]
    before: String,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Rewind {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        with_sessions(&self.store.store, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let session = service.rewind(&self.session.key(), &self.before).await?;
        let mut output = Output::new(&self.output);
        match output.is_json() {
            true => output.json(&json!({"id": session.key().id(), "version": session.version()}))?,
            false => output.line(&format!(
                "{} is as it was before {}; it is at version {}",
                session.key(),
                self.before,
                session.version()
            ))?,
        }
        output.finish()
    }
}
