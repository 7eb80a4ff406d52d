//! Whether the answers to writes tell what was written, also when a write was sent more than once.

use std::collections::BTreeMap;

use super::facts::{Facts, Fate};
use super::{Anomaly, Findings};
use crate::change::Scope;
use crate::history::{Record, Verdict, Via, short};
use crate::model::{same, same_or_absent};
use crate::view::{View, version};

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    let mut answers: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in &facts.history.records {
        if let Some(write) = record.call.write().filter(|write| write.via != Via::Create) {
            answers.entry(&write.token).or_default().push(record);
        }
    }
    for (token, records) in answers {
        let fate = &facts.fates[token];
        let done: Vec<&Record> = records.iter().copied().filter(|record| record.done().is_some()).collect();
        for record in &done {
            check_values(facts, findings, fate, record);
            check_version(facts, findings, fate, record);
        }
        for pair in done.windows(2) {
            check_equal(findings, fate, pair[0], pair[1]);
        }
        for refused in records.iter().filter(|record| record.verdict() == Verdict::Refused) {
            if fate.acknowledged < refused.start {
                findings.say(Anomaly::Repeat, refused, "the write was done, so that its repeat is, too");
            }
        }
    }
    check_etags(facts, findings);
    check_keys(facts, findings);
}

/// All that a write changed has, in every answer to it, the value that its commit gave it.
fn check_values(facts: &Facts<'_>, findings: &mut Findings, fate: &Fate<'_>, record: &Record) {
    let view = record.done().and_then(|answer| View::of(record.call.target, answer));
    let Some(view) = view.filter(|_| fate.write.via == Via::Patch) else { return };
    for (scope, part) in &fate.write.change.parts {
        let Some((_, log, position)) = facts.spot(&fate.write.token, *scope) else { continue };
        for name in part.changed() {
            let (shown, stored) = (view.states[scope].get(name), log.value(position + 1, name));
            if !same_or_absent(shown, stored.as_ref()) {
                let anomaly = if record.fresh { Anomaly::Answer } else { Anomaly::Repeat };
                let [shown, stored] = [shown, stored.as_ref()].map(|value| value.map(short));
                findings.say(
                    anomaly,
                    record,
                    format!("{} is {shown:?}, it wrote {stored:?}", scope.key(name)),
                );
            }
        }
    }
}

/// The version in the answer about a session is that of the event that the write made.
fn check_version(facts: &Facts<'_>, findings: &mut Findings, fate: &Fate<'_>, record: &Record) {
    let etag = record.done().and_then(|answer| answer.etag.as_deref()).unwrap_or_default();
    let spot =
        facts.spot(&fate.write.token, Scope::Session).filter(|_| fate.call.target.scope() == Scope::Session);
    if let Some((_, _, position)) = spot
        && version(etag) != Some(position + 1)
    {
        findings.say(Anomaly::Version, record, format!("its event has version {}", position + 1));
    }
}

fn check_equal(findings: &mut Findings, fate: &Fate<'_>, one: &Record, other: &Record) {
    let (Some(a), Some(b)) = (one.done(), other.done()) else { return };
    if a.etag != b.etag {
        findings.say(Anomaly::Repeat, other, format!("another answer to this write has {:?}", a.etag));
    }
    if fate.write.via == Via::Event && !same(&a.body, &b.body) {
        let text = format!("{}, in another answer {}", short(&b.body), short(&a.body));
        findings.say(Anomaly::Repeat, other, text);
    }
}

/// An ETag is of one state of one incarnation.
fn check_etags(facts: &Facts<'_>, findings: &mut Findings) {
    let mut known = BTreeMap::new();
    for seen in &facts.views {
        let condition = seen.view.condition();
        let state = (condition.log_key, condition.length);
        let first = known.entry((seen.record.call.target, condition.etag)).or_insert_with(|| state.clone());
        if *first != state {
            findings.say(Anomaly::EtagReused, seen.record, format!("it is of {first:?} and of {state:?}"));
        }
    }
}

/// Under one idempotency key or event id one write is done.
fn check_keys(facts: &Facts<'_>, findings: &mut Findings) {
    let mut users = BTreeMap::new();
    for (token, fate) in &facts.fates {
        let Some(key) = &fate.write.key else { continue };
        let done = fate.acknowledged < u64::MAX || facts.spots.contains_key(*token);
        if done && let Some(other) = users.insert((fate.call.target, key), token) {
            findings.say(Anomaly::KeyReused, fate.record, format!("{other} was done under its key, too"));
        }
    }
}
