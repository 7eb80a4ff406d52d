//! Whether writes that went through found what they required.

use super::facts::{Facts, Fate};
use super::{Anomaly, Findings};
use crate::model::same_or_absent;

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    for (token, spots) in &facts.spots {
        let Some(fate) = facts.fates.get(token.as_str()) else { continue };
        for (log_key, position) in spots {
            let log = &facts.logs[log_key];
            let Some(part) = fate.write.change.parts.get(&log_key.scope) else { continue };
            for (name, read) in part.guards().filter(|_| !fate.write.change.report) {
                let found = log.value(*position, name);
                if !same_or_absent(read, found.as_ref()) {
                    let text =
                        format!("it requires {read:?} of {}, and found {found:?}", log_key.scope.key(name));
                    findings.say(Anomaly::Guard, fate.record, text);
                }
            }
            if let Some(condition) =
                fate.write.condition.as_ref().filter(|one| one.log_key.scope == log_key.scope)
            {
                let before = (log_key, *position);
                if condition.log_key != *log_key {
                    let text = format!("its ETag is of {:?}, it is in {log_key:?}", condition.log_key);
                    findings.say(Anomaly::OldEtag, fate.record, text);
                } else if condition.length != *position {
                    let text =
                        format!("its ETag is of {} writes, it came after {before:?}", condition.length);
                    findings.say(Anomaly::IfMatch, fate.record, text);
                }
            }
        }
    }
    for (log_key, log) in &facts.logs {
        for (position, why) in &log.impossible {
            let fate: &Fate<'_> = &facts.fates[log.tokens[*position].as_str()];
            findings.say(Anomaly::Bound, fate.record, format!("it cannot be applied in {log_key:?}: {why}"));
        }
    }
}
