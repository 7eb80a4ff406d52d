//! What follows from a history before anything is judged.

use std::collections::BTreeMap;

use super::log::Log;
use crate::change::Scope;
use crate::history::{Call, History, Kind, Record, Verdict, Via, Write};
use crate::target::LogKey;
use crate::view::View;

pub(crate) struct Facts<'h> {
    pub(crate) history: &'h History,
    /// By token.
    pub(crate) fates: BTreeMap<&'h str, Fate<'h>>,
    /// What reads and the first answers to writes show.
    pub(crate) views: Vec<Seen<'h>>,
    pub(crate) logs: BTreeMap<LogKey, Log>,
    /// Where a token is: in which logs, at which positions.
    pub(crate) spots: BTreeMap<String, Vec<(LogKey, usize)>>,
}

/// What came of a write, over all the times that it was sent.
pub(crate) struct Fate<'h> {
    /// The first request with it.
    pub(crate) record: &'h Record,
    pub(crate) call: &'h Call,
    pub(crate) write: &'h Write,
    pub(crate) start: u64,
    /// When it was first known to be done; `u64::MAX` if never.
    pub(crate) acknowledged: u64,
    /// At least one outcome leaves open whether it was done.
    pub(crate) unknown: bool,
    /// A 503 said that nothing was done.
    pub(crate) denied: bool,
}

/// A state that was answered.
pub(crate) struct Seen<'h> {
    pub(crate) record: &'h Record,
    pub(crate) view: View,
    /// The lengths of the logs in it.
    pub(crate) lengths: BTreeMap<LogKey, usize>,
}

impl<'h> Facts<'h> {
    pub(crate) fn of(history: &'h History) -> Self {
        let fates = fates(history);
        let views: Vec<Seen<'_>> = history.records.iter().filter_map(Seen::of).collect();
        let mut longest: BTreeMap<LogKey, Vec<&str>> = BTreeMap::new();
        for seen in &views {
            for scope in seen.view.states.keys() {
                let (log, known) =
                    (seen.view.log(*scope), longest.entry(seen.view.log_key(*scope)).or_default());
                if log.len() > known.len() {
                    *known = log;
                }
            }
        }
        let mut logs = BTreeMap::new();
        for (log_key, tokens) in longest {
            let log = Log::new(&log_key, tokens.into_iter().map(str::to_owned).collect(), &fates);
            logs.insert(log_key, log);
        }
        let mut spots: BTreeMap<String, Vec<(LogKey, usize)>> = BTreeMap::new();
        for (log_key, log) in &logs {
            for (position, token) in log.tokens.iter().enumerate() {
                spots.entry(token.clone()).or_default().push((log_key.clone(), position));
            }
        }
        Self { history, fates, views, logs, spots }
    }

    /// The log of a scope in which a token is, and its position there.
    pub(crate) fn spot(&self, token: &str, scope: Scope) -> Option<(&LogKey, &Log, usize)> {
        let spots = self.spots.get(token)?;
        let (log_key, position) = spots.iter().find(|(log_key, _)| log_key.scope == scope)?;
        Some((log_key, &self.logs[log_key], *position))
    }

    /// The log of a scope that a call is about, if the session is one that is never deleted.
    pub(crate) fn log_of(&self, call: &Call, scope: Scope) -> Option<&Log> {
        let owner = call.target.log_key(scope, "").owner;
        let here = |log_key: &&LogKey| {
            log_key.scope == scope
                && (log_key.owner == owner || scope == Scope::Session && log_key.owner.starts_with(&owner))
        };
        self.logs.keys().find(here).map(|log_key| &self.logs[log_key])
    }
}

impl<'h> Seen<'h> {
    fn of(record: &'h Record) -> Option<Self> {
        let shows = match &record.call.kind {
            Kind::Read { .. } => true,
            Kind::Write(write) => record.fresh && write.via != Via::Event,
            Kind::Delete { .. } => false,
        };
        let view = View::of(record.call.target, record.done().filter(|_| shows)?)?;
        let lengths =
            view.states.keys().map(|scope| (view.log_key(*scope), view.log(*scope).len())).collect();
        Some(Self { record, view, lengths })
    }
}

fn fates(history: &History) -> BTreeMap<&str, Fate<'_>> {
    let mut fates: BTreeMap<&str, Fate<'_>> = BTreeMap::new();
    for record in &history.records {
        let Some(write) = record.call.write() else { continue };
        let fate = fates.entry(&write.token).or_insert_with(|| Fate {
            record,
            call: &record.call,
            write,
            start: record.start,
            acknowledged: u64::MAX,
            unknown: false,
            denied: false,
        });
        fate.start = fate.start.min(record.start);
        match record.verdict() {
            Verdict::Done => fate.acknowledged = fate.acknowledged.min(record.end),
            Verdict::Unknown => fate.unknown = true,
            Verdict::Denied => fate.denied = true,
            Verdict::Refused => {}
        }
    }
    fates
}
