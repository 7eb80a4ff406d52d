//! Whether every answer shows one moment: all scopes as the writes in their logs left them.

use std::collections::BTreeMap;

use super::facts::{Facts, Seen};
use super::{Anomaly, Findings};
use crate::change::LOG;
use crate::history::short;
use crate::model::same;
use crate::target::LogKey;

pub(crate) fn check(facts: &Facts<'_>, findings: &mut Findings) {
    for seen in &facts.views {
        check_values(facts, findings, seen);
        check_halves(facts, findings, seen);
    }
    check_forks(facts, findings);
}

fn check_values(facts: &Facts<'_>, findings: &mut Findings, seen: &Seen<'_>) {
    for (scope, state) in &seen.view.states {
        let log_key = seen.view.log_key(*scope);
        let expected = &facts.logs[&log_key].states[seen.lengths[&log_key]];
        let mut state = state.clone();
        state.remove(LOG);
        let (state, expected) = (state.into(), expected.clone().into());
        if !same(&state, &expected) {
            let text = format!("{log_key:?} is {}, its log makes {}", short(&state), short(&expected));
            findings.say(Anomaly::Value, seen.record, text);
        }
    }
}

/// A commit is in all the scopes that it changes, or in none.
fn check_halves(facts: &Facts<'_>, findings: &mut Findings, seen: &Seen<'_>) {
    for log_key in seen.lengths.keys() {
        for token in &facts.logs[log_key].tokens {
            let spots = facts.spots[token].iter();
            let mut shown =
                spots.filter_map(|(log_key, position)| Some(position < seen.lengths.get(log_key)?));
            let first = shown.next();
            if shown.any(|other| Some(other) != first) {
                findings.say(
                    Anomaly::Half,
                    seen.record,
                    format!("{token} is in one scope and not in another"),
                );
                return;
            }
        }
    }
}

/// A view, and the lengths of two logs in it.
type Snapshot<'a> = (usize, usize, &'a Seen<'a>);

/// Of two snapshots of the same two logs, one is later in both.
fn check_forks(facts: &Facts<'_>, findings: &mut Findings) {
    let mut pairs: BTreeMap<(&LogKey, &LogKey), Vec<Snapshot<'_>>> = BTreeMap::new();
    for seen in &facts.views {
        for (one, length) in &seen.lengths {
            for (other, other_length) in seen.lengths.range(one..).skip(1) {
                pairs.entry((one, other)).or_default().push((*length, *other_length, seen));
            }
        }
    }
    for ((one, other), mut snapshots) in pairs {
        snapshots.sort_by_key(|(length, other_length, _)| (*length, *other_length));
        for pair in snapshots.windows(2) {
            let [(a, b, _), (c, d, seen)] = pair else { unreachable!("windows are of two") };
            if d < b {
                let text = format!("{one:?} and {other:?} have {c} and {d} writes, elsewhere {a} and {b}");
                findings.say(Anomaly::Fork, seen.record, text);
            }
        }
    }
}
