use clap::Args;
use serde_json::json;
use sessile_session::{Clock, Expect, ListSessions, Session, SessionError, SessionService, SystemClock};

use crate::args::{OutputArgs, StoreArgs};
use crate::output::Output;
use crate::progress::Progress;
use crate::stderr::say;
use crate::store_url::{Need, with_sessions};
use crate::times::{Age, shown};
use crate::walk;

/// The arguments of `db sweep`.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    /// Sessions that were not changed for this long: 90s, 15m, 12h, 30d or 4w.
    #[arg(long, value_name = "AGE")]
    older_than: Age,
    /// Only of this application.
    #[arg(long, value_name = "APP")]
    app: Option<String>,
    /// Only of this user.
    #[arg(long, value_name = "USER", requires = "app")]
    user: Option<String>,
    /// Only list what would be deleted.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Sweep {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        with_sessions(&self.store.store, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let before = SystemClock.now() - self.older_than.0.as_secs_f64();
        let apps = match &self.app {
            Some(app) => [app.clone()].into(),
            None => walk::apps(service.store()).await?,
        };
        let (mut output, mut rows) = (Output::new(&self.output), Vec::new());
        let progress = Progress::counting("sessions swept");
        let (mut swept, mut kept) = (0_u64, 0_u64);
        for app in apps {
            let mut list =
                ListSessions { app, user: self.user.clone(), page_size: 500, ..Default::default() };
            'pages: loop {
                let page = service.list(&list).await?;
                for session in page.sessions {
                    if session.last_update_time() >= before {
                        break 'pages; // the least recently changed come first
                    }
                    if !self.dry_run && !delete(service, &session).await? {
                        kept += 1;
                        continue;
                    }
                    swept += 1;
                    progress.advance(1);
                    let key = session.key();
                    match output.is_json() {
                        true => output.json(&json!({
                            "appName": key.app(), "userId": key.user(), "id": key.id(),
                            "lastUpdateTime": session.last_update_time(), "deleted": !self.dry_run,
                        }))?,
                        false => rows.push([
                            key.app().to_owned(),
                            key.user().to_owned(),
                            key.id().to_owned(),
                            shown(session.last_update_time()),
                        ]),
                    }
                }
                match page.next {
                    Some(next) => list.page_token = Some(next),
                    None => break,
                }
            }
        }
        drop(progress);
        if !output.is_json() {
            output.table(["APP", "USER", "SESSION", "CHANGED"], &rows)?;
        }
        let done = if self.dry_run { "would delete" } else { "deleted" };
        say(format_args!("{done} {swept} sessions; {kept} were changed meanwhile and stay"));
        output.finish()
    }
}

/// Deletes a session, unless it was changed or replaced since it was listed.
async fn delete(service: &SessionService, session: &Session) -> anyhow::Result<bool> {
    let expect = Expect::session(session.incarnation(), session.version());
    match service.delete_expecting(session.key(), expect).await {
        Ok(deleted) => Ok(deleted),
        Err(SessionError::Conflict { .. } | SessionError::Replaced { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
