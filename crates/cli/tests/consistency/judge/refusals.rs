//! Whether writes that were refused had to be.

use super::facts::Facts;
use super::{Anomaly, Findings};
use crate::change::Scope;
use crate::history::{Record, Via, Write};
use crate::model::{applied, same, same_or_absent};

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    for record in &facts.history.records {
        let (Some(write), Ok(answer)) = (record.call.write(), &record.outcome) else { continue };
        // Of a session that comes and goes it is not known which incarnation refused.
        if write.via == Via::Create || record.call.target.is_churn() {
            continue;
        }
        let explained = match answer.status {
            409 => {
                is_taken(facts, record, write)
                    || names_what_it_found(facts, record, write)
                        .unwrap_or_else(|| is_out_of_bounds(facts, record, write))
            }
            412 => had_another_version(facts, record, write),
            _ => true,
        };
        if !explained {
            findings.say(Anomaly::Unexplained, record, format!("{:?}", write.change));
        }
    }
}

/// Another write has the same idempotency key or event id.
fn is_taken(facts: &Facts<'_>, record: &Record, write: &Write) -> bool {
    write.key.is_some()
        && facts.fates.values().any(|other| {
            other.write.key == write.key
                && other.write.token != write.token
                && other.call.target == record.call.target
                && other.start <= record.end
        })
}

/// A bound did not hold at some moment while the request was under way.
fn is_out_of_bounds(facts: &Facts<'_>, record: &Record, write: &Write) -> bool {
    write.change.parts.iter().any(|(scope, part)| {
        facts.log_of(&record.call, *scope).is_some_and(|log| {
            log.lengths_during(record).any(|length| applied(part, &log.states[length]).is_err())
        })
    })
}

/// If the refusal is that of a guard: whether the values that it names were there while the request
/// was under way, and at least one of them is not what the caller had read.
fn names_what_it_found(facts: &Facts<'_>, record: &Record, write: &Write) -> Option<bool> {
    let body = &record.outcome.as_ref().ok()?.body;
    let current = body.get("current")?.as_object()?;
    let absent = body["absent"].as_array().into_iter().flatten().filter_map(|key| key.as_str());
    let named = current.iter().map(|(key, value)| (key.as_str(), Some(value)));
    let mut differs = false;
    for (key, value) in named.chain(absent.map(|key| (key, None))) {
        let target = record.call.target.scope();
        let (scope, name) = if target == Scope::Session { Scope::of(key) } else { (target, key) };
        let read =
            write.change.parts.get(&scope).and_then(|part| part.guards().find(|guard| guard.0 == name));
        let Some((_, read)) = read else { return Some(false) };
        differs |= match (read, value) {
            (Some(read), Some(value)) => !same(read, value),
            (read, value) => read.is_some() || value.is_some(),
        };
        let was_there = facts.log_of(&record.call, scope).is_none_or(|log| {
            let mut lengths = log.lengths_during(record);
            lengths.any(|length| same_or_absent(log.value(length, name).as_ref(), value))
        });
        if !was_there {
            return Some(false);
        }
    }
    Some(differs && !write.change.report)
}

fn had_another_version(facts: &Facts<'_>, record: &Record, write: &Write) -> bool {
    let Some(condition) = &write.condition else { return false };
    let lengths = facts.logs.get(&condition.log_key).map(|log| log.lengths_during(record));
    lengths.is_none_or(|mut lengths| lengths.any(|length| length != condition.length))
}
