use clap::Args;
use serde::Serialize;
use sessile_session::{EventWindow, Session, SessionError, SessionEvent, SessionService};

use super::list::Listed;
use crate::args::{OutputArgs, SessionArgs, StoreArgs};
use crate::event_text::{changes, cut, summary};
use crate::output::Output;
use crate::store_url::{Need, with_sessions};
use crate::times;

/// The arguments of `sessions show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    session: SessionArgs,
    /// Only the last few events; 0 shows none.
    #[arg(long, value_name = "COUNT")]
    last: Option<usize>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        with_sessions(&self.store.store, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let key = self.session.key();
        let window = self.last.map_or(EventWindow::ALL, EventWindow::last);
        let Some(session) = service.get(&key, window).await? else {
            return Err(SessionError::NotFound { key }.into());
        };
        let mut output = Output::new(&self.output);
        match output.is_json() {
            true => output.json(&Shown::from(&session))?,
            false => show(&session, &mut output)?,
        }
        output.finish()
    }
}

fn show(session: &Session, output: &mut Output) -> anyhow::Result<()> {
    let head = [
        ("session", session.key().to_string()),
        ("version", session.version().to_string()),
        ("changed", times::shown(session.last_update_time())),
    ];
    output.table(["", ""], &head.map(|(name, value)| [name.to_owned(), value]))?;
    output.line("")?;
    let state = session.state().iter().map(|(key, value)| [key.to_owned(), cut(&value.to_string(), 200)]);
    output.table(["KEY", "VALUE"], &state.collect::<Vec<_>>())?;
    output.line("")?;
    let events: Vec<[String; 5]> = session.events().iter().map(row).collect();
    output.table(["VERSION", "TIME", "INVOCATION", "AUTHOR", "EVENT"], &events)
}

fn row(event: &SessionEvent) -> [String; 5] {
    let mut pieces = vec![cut(&summary(event), 200)];
    pieces.extend(changes(&event.actions.state_delta).iter().map(|change| cut(change, 100)));
    pieces.retain(|piece| !piece.is_empty());
    [
        event.version.to_string(),
        times::shown(event.time()),
        event.invocation_id.clone(),
        event.author.clone(),
        pieces.join("  "),
    ]
}

/// A session as JSON: the fields of ADK's API, and the versions of the session and its events.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    #[serde(flatten)]
    session: Listed<'a>,
    events: Vec<&'a sessile_session::Event>,
    event_versions: Vec<u64>,
}

impl<'a> From<&'a Session> for Shown<'a> {
    fn from(session: &'a Session) -> Self {
        Self {
            session: Listed::from(session),
            events: session.events().iter().map(|event| &*event.event).collect(),
            event_versions: session.events().iter().map(|event| event.version).collect(),
        }
    }
}
