//! Rounds on a store until the time is up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::coverage::Coverage;
use crate::faults::Fault;
use crate::judge::{Found, judge};
use crate::servers::Servers;

/// More rounds than fit in the time are played only while something has not been exercised yet.
const MOST_ROUNDS: u64 = 100;

/// Checks servers on a store; panics at the first round with anomalies.
pub(crate) fn check(store: &str, servers: usize, faults: &[Fault]) {
    let seed = setting("SESSILE_CHECK_SEED", 1);
    let time = Duration::from_secs(setting("SESSILE_CHECK_SECONDS", 15));
    let servers = Servers::start(store, servers);
    let (began, mut coverage) = (Instant::now(), Coverage::default());
    for round in 0.. {
        let history = Arena::new(&servers, round).play(&[seed, round], faults);
        coverage.add(&history);
        let found = judge(&history);
        assert!(
            found.is_empty(),
            "{} anomalies in round {round}, with SESSILE_CHECK_SEED={seed}:\n{}\n{}",
            found.len(),
            summary(&found),
            servers.logs()
        );
        let complete = coverage.missing().is_empty() || round + 1 >= MOST_ROUNDS;
        if complete && began.elapsed() >= time {
            break;
        }
    }
    eprintln!("{store}, SESSILE_CHECK_SEED={seed}: {coverage:?}");
    assert_eq!(coverage.missing(), [""; 0], "never happened");
}

/// How often each anomaly was found, and the first of each.
fn summary(found: &[Found]) -> String {
    let mut kinds: BTreeMap<_, Vec<&Found>> = BTreeMap::new();
    for one in found {
        kinds.entry(one.anomaly).or_default().push(one);
    }
    let lines = kinds.values().map(|all| {
        let shown: Vec<String> = all.iter().take(3).map(ToString::to_string).collect();
        format!("{} times {}", all.len(), shown.join("\n"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}"))
}
