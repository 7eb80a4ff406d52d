//! `history`: who changed a key of shared state, when, and what it held before.

use clap::Args;
use sessile_session::{ChangeRecord, ChangedBy, HistoryPage, KeyChange, SessionService};
use sessile_state::Scope;

use super::target::{Owner, Target};
use crate::args::OutputArgs;
use crate::event_text::cut;
use crate::exit::Failure;
use crate::output::Output;
use crate::store_url::{Need, with_sessions};
use crate::times::shown;

/// The arguments of `state history`.
#[derive(Debug, Args)]
pub(crate) struct History {
    #[command(flatten)]
    owner: Owner,
    /// The key with its prefix, `app:` or `user:`.
    #[arg(value_name = "KEY")]
    key: String,
    /// How many changes at most, the newest first.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    /// Only changes before this version.
    #[arg(long, value_name = "VERSION")]
    before: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

impl History {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let url = &self.owner.store.store;
        with_sessions(url, Need::Existing, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let key = &self.key;
        let Target::Shared(scope) = self.owner.target(key)? else {
            let text = format!(
                "{key:?} is a key of a session, whose events are its history; `sessile sessions show` shows them"
            );
            return Err(Failure::Usage(text).into());
        };
        let name = Scope::of(key).1;
        let (mut changes, mut before) = (Vec::new(), self.before);
        // A page of the changes of one key may be short without being the last.
        while changes.len() < self.limit {
            let page = HistoryPage { before, limit: self.limit - changes.len() };
            let page = service.scope_history(&scope, Some(name), page).await?;
            changes.extend(page.changes);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        let mut output = Output::new(&self.output);
        let mut rows = Vec::new();
        for change in &changes {
            let mut record = change.record();
            record.keys.retain(|changed, _| *changed == name);
            match output.is_json() {
                true => output.json(&record)?,
                false => rows.extend(record.keys.get(name).map(|key| row(&record, key))),
            }
        }
        if !output.is_json() {
            output.table(["TIME", "VERSION", "CHANGE", "SESSION", "EVENT", "WHO"], &rows)?;
        }
        output.finish()
    }
}

fn row(record: &ChangeRecord<'_>, key: &KeyChange<'_>) -> [String; 6] {
    let (session, event, who) = record.by.map_or_else(Default::default, who);
    [shown(record.time), record.version.to_string(), change(key), session, event, who]
}

/// `before -> after`, or the operation if the history does not hold the whole values.
fn change(key: &KeyChange<'_>) -> String {
    let text = |value: &Option<sessile_state::SharedValue>| match value {
        Some(value) => cut(&value.to_string(), 60),
        None => "(absent)".to_owned(),
    };
    match key.ops {
        Some(operations) if key.partial => {
            cut(&serde_json::to_string(operations).unwrap_or_else(|_| "…".to_owned()), 120)
        }
        _ if key.partial => format!("(unknown) -> {}", text(&key.after)),
        _ => format!("{} -> {}", text(&key.before), text(&key.after)),
    }
}

/// The session, the event, and the author or principal.
fn who(by: &ChangedBy) -> (String, String, String) {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    match by {
        ChangedBy::Event { user, session, event, author } => {
            let event = if event.is_empty() { "(created)" } else { event };
            (format!("{user}/{session}"), event.to_owned(), text(author))
        }
        ChangedBy::Request { request, principal } => (String::new(), request.clone(), text(principal)),
        ChangedBy::External { external, user, session, event, author } => {
            let session = match (user, session) {
                (Some(user), Some(session)) => format!("{user}/{session}"),
                _ => String::new(),
            };
            let writer = [author.as_deref(), Some(external.as_str()).filter(|external| !external.is_empty())];
            let writer: Vec<&str> = writer.into_iter().flatten().collect();
            let who = match writer.is_empty() {
                true => "external".to_owned(),
                false => format!("external: {}", writer.join(", ")),
            };
            (session, text(event), who)
        }
    }
}
