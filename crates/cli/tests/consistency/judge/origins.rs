//! Whether what is in the logs was written, once, and whether what was written is there.

use std::collections::BTreeSet;

use super::facts::{Facts, Seen};
use super::{Anomaly, Findings};
use crate::change::Scope;
use crate::history::Via;
use crate::target::LogKey;

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    for seen in &facts.views {
        for scope in seen.view.states.keys() {
            check_log(facts, findings, seen, *scope);
        }
    }
    for (token, fate) in facts.fates.iter().filter(|(_, fate)| fate.acknowledged < u64::MAX) {
        for scope in fate.write.change.parts.keys() {
            // A session may be gone together with its writes; a creation leaves no token in its
            // session.
            let may_be_gone =
                *scope == Scope::Session && (fate.call.target.is_churn() || fate.write.via == Via::Create);
            if !may_be_gone && facts.spot(token, *scope).is_none() {
                findings.say(Anomaly::Lost, fate.record, format!("{token} is in no log of {scope:?}"));
            }
        }
    }
}

fn check_log(facts: &Facts<'_>, findings: &mut Findings, seen: &Seen<'_>, scope: Scope) {
    let (log_key, tokens) = (seen.view.log_key(scope), seen.view.log(scope));
    let known = &facts.logs[&log_key].tokens;
    if known.iter().zip(&tokens).any(|(one, other)| one != other) {
        let text = format!("{log_key:?} is {tokens:?}, in another read {known:?}");
        findings.say(Anomaly::TwoHistories, seen.record, text);
    }
    let mut before = BTreeSet::new();
    for token in &tokens {
        if !before.insert(token) {
            findings.say(Anomaly::Twice, seen.record, format!("{token} is twice in {log_key:?}"));
        }
        if let Some(anomaly) = origin(facts, token, &log_key) {
            findings.say(anomaly, seen.record, format!("{token} is in {log_key:?}"));
        }
    }
    if scope == Scope::Session && !facts.fates.contains_key(seen.view.born()) {
        findings.say(Anomaly::ThinAir, seen.record, "no write created this session");
    }
}

/// What is wrong with a token in a log.
fn origin(facts: &Facts<'_>, token: &str, log_key: &LogKey) -> Option<Anomaly> {
    let Some(fate) = facts.fates.get(token) else { return Some(Anomaly::ThinAir) };
    let born = log_key.owner.split_once('#').map_or("", |(_, born)| born);
    let wrote_here = fate.call.target.log_key(log_key.scope, born) == *log_key
        && fate.write.change.parts.contains_key(&log_key.scope)
        && !(log_key.scope == Scope::Session && fate.write.via == Via::Create);
    if !wrote_here {
        Some(Anomaly::ThinAir)
    } else if fate.unknown || fate.acknowledged < u64::MAX {
        None
    } else if fate.denied {
        Some(Anomaly::DeniedYetDone)
    } else {
        Some(Anomaly::FromFailed)
    }
}
