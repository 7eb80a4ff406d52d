//! A client: sends requests to any of the servers, again if it has to, and records what came of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::arena::Arena;
use crate::chance::Chance;
use crate::history::{Call, Kind, Record, Verdict, Via, Write};
use crate::http::{Answer, Connection, Failure};
use crate::request::request_of;
use crate::target::{Condition, Target};
use crate::view::View;

/// Longer than any fault: it ends a test that hangs, and judges nothing.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client<'a> {
    arena: &'a Arena<'a>,
    id: usize,
    pub(crate) chance: Chance,
    pub(crate) records: Vec<Record>,
    /// The one server to ask, if there is a choice.
    pub(crate) only: Option<usize>,
    /// What the client has seen last of each target.
    pub(crate) seen: BTreeMap<Target, View>,
    /// What it has seen of sessions that may be deleted by now.
    pub(crate) former: Vec<Condition>,
    connections: BTreeMap<usize, Connection>,
    /// The server that was asked last; repeats go to another.
    last: Option<usize>,
    written: usize,
}

impl<'a> Client<'a> {
    pub(crate) fn new(arena: &'a Arena<'a>, id: usize, chance: Chance) -> Self {
        let (records, seen, former, connections) = Default::default();
        Self { arena, id, chance, records, only: None, seen, former, connections, last: None, written: 0 }
    }

    /// A token that no other write of the round has.
    pub(crate) fn next_token(&mut self) -> String {
        self.written += 1;
        format!("{}.{}", self.id, self.written)
    }

    /// Sends a request once, while no server is harmed: its status.
    pub(crate) fn must(&mut self, target: Target, kind: Kind) -> u16 {
        let record = self.send(&Arc::new(Call { target, kind }), true, PATIENCE);
        record.outcome.as_ref().unwrap_or_else(|failure| panic!("{failure:?}: {record}")).status
    }

    pub(crate) fn read(&mut self, target: Target, window: Option<usize>) {
        self.send(&Arc::new(Call { target, kind: Kind::Read { window } }), true, PATIENCE);
    }

    pub(crate) fn delete(&mut self, target: Target, condition: Option<Condition>) {
        self.send(&Arc::new(Call { target, kind: Kind::Delete { condition } }), true, PATIENCE);
    }

    /// Sends a write; one with an idempotency key again while its outcome is unknown, and sometimes
    /// although it is known. Whether it was done, as far as the client knows.
    pub(crate) fn write(&mut self, target: Target, write: Write) -> bool {
        let (repeatable, call) = (write.key.is_some(), Arc::new(Call { target, kind: Kind::Write(write) }));
        if repeatable && self.chance.percent(8) {
            return self.send_twice_at_once(&call);
        }
        for attempt in 0..4 {
            let patience = match self.chance.below(30) {
                0 => Duration::ZERO,
                1 => Duration::from_millis(20),
                _ => PATIENCE,
            };
            let verdict = self.send(&call, attempt == 0, patience).verdict();
            match verdict {
                Verdict::Done if repeatable && attempt < 3 && self.chance.percent(12) => {}
                Verdict::Done => return true,
                Verdict::Unknown | Verdict::Denied if repeatable => {}
                _ => return false,
            }
        }
        false
    }

    /// Two clients send the same write at the same moment.
    fn send_twice_at_once(&mut self, call: &Arc<Call>) -> bool {
        let first = self.pick(None);
        let servers = [first, self.pick(Some(first))];
        let (arena, client) = (self.arena, self.id);
        let records = std::thread::scope(|scope| {
            let twins = servers.map(|server| {
                let call = Arc::clone(call);
                scope.spawn(move || exchange(arena, client, server, &mut None, &call, false, PATIENCE))
            });
            twins.map(|twin| twin.join().expect("the twin does not panic"))
        });
        let done = records.iter().any(|record| record.verdict() == Verdict::Done);
        self.records.extend(records);
        done
    }

    /// A server that is up, another than this one if there is a choice.
    fn pick(&mut self, but: Option<usize>) -> usize {
        let mut up: Vec<usize> = (0..self.arena.servers.count()).collect();
        up.retain(|server| self.arena.servers.address(*server).is_some());
        if up.len() > 1 {
            up.retain(|server| Some(*server) != but);
        }
        if up.is_empty() { 0 } else { *self.chance.pick(&up) }
    }

    fn send(&mut self, call: &Arc<Call>, fresh: bool, patience: Duration) -> &Record {
        let but = self.last.filter(|_| !fresh);
        let server = self.only.unwrap_or_else(|| self.pick(but));
        self.last = Some(server);
        let mut connection = self.connections.remove(&server);
        let record = exchange(self.arena, self.id, server, &mut connection, call, fresh, patience);
        self.connections.extend(connection.map(|connection| (server, connection)));
        if matches!(record.outcome, Err(Failure::NotSent)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let shows = call.write().is_none_or(|write| fresh && write.via != Via::Event);
        if let Some(view) = record.done().filter(|_| shows).and_then(|answer| View::of(call.target, answer)) {
            if call.target.is_churn() {
                self.former.push(view.condition());
            }
            self.seen.insert(call.target, view);
        }
        self.records.push(record);
        self.records.last().expect("it was just recorded")
    }
}

/// One request to a server, on a connection that is open or is opened, and stays open after an
/// answer.
fn exchange(
    arena: &Arena<'_>,
    client: usize,
    server: usize,
    connection: &mut Option<Connection>,
    call: &Arc<Call>,
    fresh: bool,
    patience: Duration,
) -> Record {
    let start = arena.now();
    let outcome = ask(arena, server, connection, call, patience);
    if outcome.as_ref().map_or(true, |answer| answer.status >= 500) {
        *connection = None;
    }
    Record { client, server, start, end: arena.now(), call: Arc::clone(call), fresh, outcome }
}

fn ask(
    arena: &Arena<'_>,
    server: usize,
    connection: &mut Option<Connection>,
    call: &Call,
    patience: Duration,
) -> Result<Answer, Failure> {
    let address = arena.servers.address(server).ok_or(Failure::NotSent)?;
    let open = match connection.take().filter(|connection| connection.address == address) {
        Some(open) => open,
        None => Connection::open(&address)?,
    };
    connection.insert(open).send(&request_of(&arena.app, call), patience)
}
