//! Eight processes change the same keys 200 times each, on every store that processes can share;
//! every change must be there in the end, and every answer must have been exact.
//!
//! This program is its own child: with `SESSILE_TEST_CHILD` set it is not a list of tests but one
//! of the eight processes, see `child.rs`. To add work, add a function there and a line to `WORK`.

mod check;
mod child;
#[path = "../consistency/http.rs"]
#[expect(dead_code, reason = "the consistency checker looks at more of an answer")]
mod http;
#[path = "../consistency/servers.rs"]
#[expect(dead_code, reason = "the consistency checker kills and freezes its servers")]
mod servers;
mod test_store;
mod tools;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use child::{CHILD, Child};
use servers::Servers;
use test_store::{STORES, TestStore};

/// How many processes there are, and how many changes each of them makes.
const PROCESSES: u32 = 8;
const EACH: u32 = 200;
const ALL: u32 = PROCESSES * EACH;

/// The prefixes of all stored scopes.
const PREFIXES: [&str; 3] = ["", "user:", "app:"];

/// How many servers share the store when the processes are clients.
const SERVERS: usize = 3;

/// A test: it panics if something is lost on this store.
type Test = fn(&TestStore);

const WORK: [(&str, Test); 4] = [
    ("operations_of_eight_processes_are_all_there", operations),
    ("transactions_of_eight_processes_are_all_there", transactions),
    ("tools_and_callbacks_of_eight_processes_lose_nothing_in_silence", tools_and_callbacks),
    ("operations_of_eight_clients_of_three_servers_are_all_there", operations_over_http),
];

fn main() -> ExitCode {
    if let Some(role) = std::env::var_os(CHILD) {
        child::run(&role);
        return ExitCode::SUCCESS;
    }
    let trials = STORES.iter().flat_map(|(store, new)| {
        WORK.iter().map(move |(work, test)| {
            Trial::test(format!("{store}::{work}"), move || {
                test(&new());
                Ok(())
            })
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn operations(store: &TestStore) {
    store.create_session();
    let seen = work_of_eight("operate", |_| store.url.clone());
    check::each_result_was_seen_once(&seen);
    check::everything_is_there(store);
}

fn transactions(store: &TestStore) {
    store.create_session();
    let seen = work_of_eight("transact", |_| store.url.clone());
    check::each_result_was_seen_once(&seen);
    check::counters_are_complete(store);
}

fn tools_and_callbacks(store: &TestStore) {
    store.create_session();
    let seen = work_of_eight("tools", |_| store.url.clone());
    check::each_result_was_seen_once(&seen);
    tools::counts_are_there_or_reported(store);
}

fn operations_over_http(store: &TestStore) {
    store.create_session();
    let servers = Servers::start(&store.url, SERVERS);
    let address = |process| servers.address(process as usize % SERVERS).expect("no server is stopped");
    let seen = work_of_eight("request", address);
    check::each_result_was_seen_once(&seen);
    check::everything_is_there(store);
}

/// Runs eight processes in one role, each with an argument of its own, and returns what they saw.
fn work_of_eight(role: &str, argument: impl Fn(u32) -> String) -> Vec<[u32; 3]> {
    let children: Vec<_> =
        (0..PROCESSES).map(|process| Child::start(role, process, &argument(process))).collect();
    // None begins before all are ready, so that they work at the same time.
    let children: Vec<_> = children.into_iter().map(Child::wait_until_ready).collect();
    let children: Vec<_> = children.into_iter().map(Child::begin).collect();
    children.into_iter().flat_map(Child::finish).collect()
}
