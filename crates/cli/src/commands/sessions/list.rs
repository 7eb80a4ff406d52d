use anyhow::bail;
use clap::Args;
use serde::Serialize;
use sessile_session::{ListSessions, Session, SessionService, SessionState, Unreadable};

use super::format::{AsMap, Map};
use crate::args::{OutputArgs, StoreArgs};
use crate::exit::Failure;
use crate::output::Output;
use crate::stderr::{harmless, say};
use crate::store_url::{Need, with_sessions};
use crate::{times, walk};

/// The arguments of `sessions list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only of this application.
    #[arg(value_name = "APP")]
    app: Option<String>,
    /// Only of this user.
    #[arg(long, value_name = "USER", requires = "app")]
    user: Option<String>,
    /// At most this many of each application; 0 lists all.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
    /// The least recently changed first.
    #[arg(long)]
    oldest_first: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl List {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        with_sessions(&self.store.store, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let apps = match &self.app {
            Some(app) => [app.clone()].into(),
            None => walk::apps(service.store()).await?,
        };
        let (mut output, mut rows, mut cut, mut unreadable) =
            (Output::new(&self.output), Vec::new(), false, 0);
        for app in apps {
            let mut list = ListSessions {
                app,
                user: self.user.clone(),
                page_size: if self.limit == 0 { 1_000 } else { self.limit.min(1_000) },
                page_token: None,
                newest_first: !self.oldest_first,
            };
            let mut left = if self.limit == 0 { usize::MAX } else { self.limit };
            loop {
                let page = service.list(&list).await?;
                for Unreadable { key, error } in &page.unreadable {
                    say(format_args!("left out: {}", harmless(&format!("{key} cannot be read: {error}"))));
                }
                unreadable += page.unreadable.len();
                let taken = page.sessions.len().min(left);
                for session in &page.sessions[..taken] {
                    match output.is_json() {
                        true => output.json(&Listed::from(session))?,
                        false => rows.push(row(session)),
                    }
                }
                left -= taken;
                cut |= left == 0 && (page.next.is_some() || taken < page.sessions.len());
                match page.next {
                    Some(next) if left > 0 => list.page_token = Some(next),
                    _ => break,
                }
            }
        }
        if !output.is_json() {
            output.table(["APP", "USER", "SESSION", "EVENTS", "CHANGED", "KEYS"], &rows)?;
        }
        if cut {
            say(format_args!("there are more; --limit 0 lists all"));
        }
        output.finish()?;
        if unreadable > 0 {
            bail!(Failure::Damaged(format!(
                "{unreadable} of the sessions cannot be read; repair the rows that are named above, or delete the sessions"
            )));
        }
        Ok(())
    }
}

/// A session without its events, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Listed<'a> {
    app_name: &'a str,
    user_id: &'a str,
    id: &'a str,
    version: u64,
    last_update_time: f64,
    state: AsMap<&'a SessionState>,
}

impl<'a> From<&'a Session> for Listed<'a> {
    fn from(session: &'a Session) -> Self {
        Self {
            app_name: session.key().app(),
            user_id: session.key().user(),
            id: session.key().id(),
            version: session.version(),
            last_update_time: session.last_update_time(),
            state: session.state().as_map(),
        }
    }
}

fn row(session: &Session) -> [String; 6] {
    let key = session.key();
    [
        key.app().to_owned(),
        key.user().to_owned(),
        key.id().to_owned(),
        session.version().to_string(),
        times::shown(session.last_update_time()),
        session.state().keys().count().to_string(),
    ]
}
