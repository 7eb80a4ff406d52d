//! A fresh application for each round, so that logs stay short and stocks are full again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::chance::Chance;
use crate::client::Client;
use crate::faults::{Fault, harm};
use crate::fill;
use crate::history::{History, Kind};
use crate::servers::Servers;
use crate::target::{CHURN, Target};

/// The sessions that are never deleted.
pub(crate) const KEPT: [Target; 3] =
    [Target::Session("ada", "one"), Target::Session("ada", "two"), Target::Session("bob", "one")];
pub(crate) const DELETED: Target = Target::Session("ada", CHURN);
/// What has state of its own, without a session.
pub(crate) const SHARED: [Target; 3] = [Target::User("ada"), Target::User("bob"), Target::App];

/// Bounds of a round: so many requests by each client, and not longer than this.
const STEPS: usize = 160;
const ROUND: Duration = Duration::from_millis(2500);
const CLIENTS: usize = 6;

pub(crate) struct Arena<'a> {
    pub(crate) servers: &'a Servers,
    pub(crate) app: String,
    began: Instant,
}

impl<'a> Arena<'a> {
    pub(crate) fn new(servers: &'a Servers, round: u64) -> Self {
        Self { servers, app: format!("round-{round}"), began: Instant::now() }
    }

    /// Microseconds since the round began.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).expect("a round is short")
    }

    /// Sets up, lets clients work while servers are harmed, and reads everything through every
    /// server.
    pub(crate) fn play(&self, seed: &[u64; 2], faults: &[Fault]) -> History {
        let chance = |label| Chance::new(seed[0], &[seed[1], label]);
        let mut keeper = Client::new(self, CLIENTS, chance(1000));
        self.set_up(&mut keeper);
        let over = AtomicBool::new(false);
        let (mut records, kills) = std::thread::scope(|scope| {
            let harmed = scope.spawn(|| harm(self, faults, chance(1001), &over));
            let clients: Vec<_> = (0..CLIENTS)
                .map(|id| {
                    let mut client = Client::new(self, id, chance(id as u64));
                    scope.spawn(move || {
                        for _ in 0..STEPS {
                            if self.began.elapsed() > ROUND {
                                break;
                            }
                            client.step();
                        }
                        client.records
                    })
                })
                .collect();
            let records: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            over.store(true, Ordering::Relaxed);
            let records = records.into_iter().flat_map(|records| records.expect("the client does not panic"));
            (records.collect::<Vec<_>>(), harmed.join().expect("the faults do not panic"))
        });
        self.read_everything(&mut keeper);
        records.append(&mut keeper.records);
        History { records, kills }
    }

    fn set_up(&self, keeper: &mut Client<'_>) {
        for target in KEPT.into_iter().chain([DELETED]) {
            let write = fill::creation(&keeper.next_token());
            assert_eq!(keeper.must(target, Kind::Write(write)), 200, "{target:?} is created");
        }
        for target in SHARED {
            let write = fill::stocking(&keeper.next_token(), target.scope());
            assert_eq!(keeper.must(target, Kind::Write(write)), 200, "{target:?} gets its stock");
        }
    }

    /// At the end no server is harmed, so every one must answer.
    fn read_everything(&self, keeper: &mut Client<'_>) {
        for server in 0..self.servers.count() {
            keeper.only = Some(server);
            for target in KEPT.into_iter().chain(SHARED).chain([DELETED]) {
                keeper.must(target, Kind::Read { window: None });
            }
        }
    }
}
