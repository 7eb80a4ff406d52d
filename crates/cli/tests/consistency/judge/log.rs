//! The one order in which the writes of a log were applied.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use serde_json::Value;

use super::facts::Fate;
use crate::change::{LOG, Scope};
use crate::history::Record;
use crate::model::{State, applied};
use crate::target::LogKey;

pub(crate) struct Log {
    /// The longest log that was read.
    pub(crate) tokens: Vec<String>,
    /// `states[n]` is the state after the first n writes, without the log itself.
    pub(crate) states: Vec<State>,
    /// Writes that could not be applied there, and why.
    pub(crate) impossible: Vec<(usize, String)>,
    starts: Vec<u64>,
    acknowledged: Vec<u64>,
}

impl Log {
    pub(crate) fn new(log_key: &LogKey, tokens: Vec<String>, fates: &BTreeMap<&str, Fate<'_>>) -> Self {
        let fate = |token: &String| fates.get(token.as_str());
        let starts = tokens.iter().map(|token| fate(token).map_or(0, |fate| fate.start)).collect();
        let acknowledged = tokens.iter().map(|token| fate(token).map_or(u64::MAX, |fate| fate.acknowledged));
        let acknowledged = acknowledged.collect();
        let (mut state, mut states, mut impossible) = (initial(log_key, fates), Vec::new(), Vec::new());
        for (position, token) in tokens.iter().enumerate() {
            states.push(state.clone());
            let part = fate(token).and_then(|fate| fate.write.change.parts.get(&log_key.scope));
            match part.map(|part| applied(part, &state)) {
                Some(Ok(after)) => state = after,
                Some(Err(why)) => impossible.push((position, why)),
                None => {} // a token from thin air, which is reported elsewhere
            }
            state.remove(LOG);
        }
        states.push(state);
        Self { tokens, states, impossible, starts, acknowledged }
    }

    /// What a name holds after the first `length` writes.
    pub(crate) fn value(&self, length: usize, name: &str) -> Option<Value> {
        if name == LOG {
            return (length > 0).then(|| self.tokens[..length].to_vec().into());
        }
        self.states[length].get(name).cloned()
    }

    /// When the first of the writes from this position on was acknowledged.
    pub(crate) fn acknowledged_from(&self, position: usize) -> u64 {
        self.acknowledged[position..].iter().copied().min().unwrap_or(u64::MAX)
    }

    /// When the last of the first `length` writes began.
    pub(crate) fn started_before(&self, length: usize) -> u64 {
        self.starts[..length].iter().copied().max().unwrap_or(0)
    }

    pub(crate) fn start(&self, position: usize) -> u64 {
        self.starts[position]
    }

    /// The lengths that the log may have had while a request was under way.
    pub(crate) fn lengths_during(&self, record: &Record) -> RangeInclusive<usize> {
        let least = self.acknowledged.iter().rposition(|end| *end < record.start).map_or(0, |last| last + 1);
        let most = self.starts.iter().position(|start| *start > record.end).unwrap_or(self.tokens.len());
        least..=most
    }
}

/// A session begins with the state of its creation, everything else empty.
fn initial(log_key: &LogKey, fates: &BTreeMap<&str, Fate<'_>>) -> State {
    let born = log_key.owner.split_once('#').map_or("", |(_, born)| born);
    let creation = fates.get(born).filter(|_| log_key.scope == Scope::Session);
    creation
        .and_then(|fate| fate.write.change.parts.get(&Scope::Session))
        .map_or_else(State::new, |part| part.set.clone())
}
