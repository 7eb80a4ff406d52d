//! Whether the order of writes agrees with the time at which they were sent, answered and read.

use std::collections::BTreeMap;

use super::facts::{Facts, Seen};
use super::log::Log;
use super::{Anomaly, Findings};
use crate::target::LogKey;

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    let mut reads: BTreeMap<&LogKey, Vec<(usize, &Seen<'_>)>> = BTreeMap::new();
    for seen in &facts.views {
        for (log_key, length) in &seen.lengths {
            reads.entry(log_key).or_default().push((*length, seen));
        }
    }
    for (log_key, reads) in reads {
        let log = &facts.logs[log_key];
        check_writes(facts, findings, log_key, log);
        for (length, seen) in &reads {
            check_read(findings, log_key, log, *length, seen);
        }
        check_pairs(findings, log_key, reads);
    }
}

fn check_writes(facts: &Facts<'_>, findings: &mut Findings, log_key: &LogKey, log: &Log) {
    for (position, token) in log.tokens.iter().enumerate() {
        let Some(fate) = facts.fates.get(token.as_str()) else { continue };
        if log.acknowledged_from(position + 1) < log.start(position) {
            let text = format!("in {log_key:?} it is before a write that was acknowledged before it began");
            findings.say(Anomaly::Order, fate.record, text);
        }
    }
}

fn check_read(findings: &mut Findings, log_key: &LogKey, log: &Log, length: usize, seen: &Seen<'_>) {
    if log.acknowledged_from(length) < seen.record.start {
        let text = format!("{log_key:?} has {length} writes; one of the rest was acknowledged before");
        findings.say(Anomaly::StaleRead, seen.record, text);
    }
    if log.started_before(length) > seen.record.end {
        let text = format!("{log_key:?} has {length} writes; one of them began later");
        findings.say(Anomaly::Future, seen.record, text);
    }
}

fn check_pairs(findings: &mut Findings, log_key: &LogKey, reads: Vec<(usize, &Seen<'_>)>) {
    let mut by_end: Vec<(u64, usize)> =
        reads.iter().map(|(length, seen)| (seen.record.end, *length)).collect();
    by_end.sort_unstable();
    let mut by_start = reads;
    by_start.sort_by_key(|(_, seen)| seen.record.start);
    let (mut ended, mut longest) = (by_end.into_iter().peekable(), 0);
    for (length, seen) in by_start {
        while let Some((_, before)) = ended.next_if(|(end, _)| *end < seen.record.start) {
            longest = longest.max(before);
        }
        if length < longest {
            let text = format!("{log_key:?} has {length} writes, and had {longest} in a read before");
            findings.say(Anomaly::NonMonotonic, seen.record, text);
        }
    }
}
