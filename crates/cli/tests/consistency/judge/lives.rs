//! Whether the incarnations of a session that is deleted and created again follow one another.

use std::collections::BTreeMap;

use super::facts::Facts;
use super::{Anomaly, Findings};
use crate::change::Scope;
use crate::history::{Kind, Record, Verdict};
use crate::target::{LogKey, Target};

/// When an incarnation was there for sure: from the first end to the last start of all that saw it.
struct Life<'h> {
    target: Target,
    first_end: u64,
    last_start: u64,
    record: &'h Record,
}

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    let mut lives: BTreeMap<LogKey, Life<'_>> = BTreeMap::new();
    for seen in facts.views.iter().filter(|seen| seen.record.call.target.scope() == Scope::Session) {
        let record = seen.record;
        let life = lives.entry(seen.view.log_key(Scope::Session)).or_insert_with(|| Life {
            target: record.call.target,
            first_end: record.end,
            last_start: record.start,
            record,
        });
        life.first_end = life.first_end.min(record.end);
        life.last_start = life.last_start.max(record.start);
    }
    check_overlaps(findings, lives.values().collect());
    for record in &facts.history.records {
        if let Kind::Delete { condition } = &record.call.kind
            && record.verdict() == Verdict::Done
        {
            check_deletion(findings, &lives, record);
            if let Some(condition) = condition {
                check_condition(facts, findings, record, &condition.log_key);
            }
        }
    }
}

fn check_overlaps(findings: &mut Findings, mut lives: Vec<&Life<'_>>) {
    lives.retain(|life| life.first_end < life.last_start);
    lives.sort_by_key(|life| (life.target, life.first_end));
    for pair in lives.windows(2) {
        if pair[0].target == pair[1].target && pair[1].first_end < pair[0].last_start {
            findings.say(Anomaly::Incarnation, pair[1].record, format!("at once with: {}", pair[0].record));
        }
    }
}

/// No incarnation is there both before and after a deletion, unless the deletion is of another one.
fn check_deletion(findings: &mut Findings, lives: &BTreeMap<LogKey, Life<'_>>, deletion: &Record) {
    for life in lives.values().filter(|life| life.target == deletion.call.target) {
        if life.first_end < deletion.start && deletion.end < life.last_start {
            findings.say(
                Anomaly::Incarnation,
                deletion,
                format!("it outlived its deletion: {}", life.record),
            );
        }
    }
}

/// A deletion that requires a former incarnation is refused while its successor is there.
fn check_condition(facts: &Facts<'_>, findings: &mut Findings, deletion: &Record, required: &LogKey) {
    let same_target = |record: &&Record| record.call.target == deletion.call.target;
    let records = || facts.history.records.iter().filter(same_target);
    for successor in facts.views.iter().filter(|seen| same_target(&seen.record)) {
        let seen = successor.record;
        let log_key = successor.view.log_key(Scope::Session);
        let required_was_before = facts
            .views
            .iter()
            .any(|other| other.view.log_key(Scope::Session) == *required && other.record.end < seen.start);
        // No other deletion can have taken the successor away between its read and this deletion.
        let others = records().any(|other| {
            let deletes =
                matches!(other.call.kind, Kind::Delete { .. }) && other.verdict() != Verdict::Refused;
            // A deletion without an answer may happen at any time after it was sent.
            let end = if other.verdict() == Verdict::Unknown { u64::MAX } else { other.end };
            deletes && !std::ptr::eq(other, deletion) && end >= seen.start && other.start <= deletion.end
        });
        if log_key != *required && required_was_before && seen.end < deletion.start && !others {
            let text = format!("it requires {required:?}, and {log_key:?} was there");
            findings.say(Anomaly::OldEtag, deletion, text);
            return;
        }
    }
}
