//! Whether writes that went through found what they required.

use super::facts::{Facts, Fate};
use super::{Anomaly, Findings};
use crate::model::same_or_absent;

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    for (token, spots) in &facts.spots {
        let Some(fate) = facts.fates.get(token.as_str()) else { continue };
        for (place, position) in spots {
            let log = &facts.logs[place];
            let Some(part) = fate.write.change.parts.get(&place.scope) else { continue };
            for (name, read) in part.guards().filter(|_| !fate.write.change.report) {
                let found = log.value(*position, name);
                if !same_or_absent(read, found.as_ref()) {
                    let text =
                        format!("it requires {read:?} of {}, and found {found:?}", place.scope.key(name));
                    findings.say(Anomaly::Guard, fate.record, text);
                }
            }
            if let Some(condition) =
                fate.write.condition.as_ref().filter(|one| one.place.scope == place.scope)
            {
                let before = (place, *position);
                if condition.place != *place {
                    let text = format!("its ETag is of {:?}, it is in {place:?}", condition.place);
                    findings.say(Anomaly::OldEtag, fate.record, text);
                } else if condition.length != *position {
                    let text =
                        format!("its ETag is of {} writes, it came after {before:?}", condition.length);
                    findings.say(Anomaly::IfMatch, fate.record, text);
                }
            }
        }
    }
    for (place, log) in &facts.logs {
        for (position, why) in &log.impossible {
            let fate: &Fate<'_> = &facts.fates[log.tokens[*position].as_str()];
            findings.say(Anomaly::Bound, fate.record, format!("it cannot be applied in {place:?}: {why}"));
        }
    }
}
