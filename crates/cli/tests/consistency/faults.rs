//! What is done to the servers while clients work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::arena::Arena;
use crate::chance::Chance;
use crate::history::Kill;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL, and another process in its place.
    Kill,
    /// SIGSTOP, and SIGCONT after a while. A frozen server may hold locks of the store meanwhile.
    Freeze,
}

/// Harms one server after the other until the round is over; then all are up again. Returns the
/// kills.
pub(crate) fn harm(arena: &Arena<'_>, kinds: &[Fault], mut chance: Chance, over: &AtomicBool) -> Vec<Kill> {
    let mut kills = Vec::new();
    while sleep_unless(milliseconds(50, 300, &mut chance), over) {
        let (server, pause) = (chance.below(arena.servers.count()), milliseconds(20, 400, &mut chance));
        let start = arena.now();
        match chance.pick(kinds) {
            Fault::Kill => {
                arena.servers.replace(server, pause / 2);
                kills.push(Kill { server, start, end: arena.now() });
            }
            Fault::Freeze => arena.servers.freeze(server, pause),
        }
    }
    kills
}

fn milliseconds(least: usize, range: usize, chance: &mut Chance) -> Duration {
    Duration::from_millis(u64::try_from(least + chance.below(range)).expect("it is short"))
}

/// Sleeps; false if the round ended before the time was up.
fn sleep_unless(time: Duration, over: &AtomicBool) -> bool {
    let slices = 10;
    for _ in 0..slices {
        if over.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(time / slices);
    }
    true
}
