//! A consistency checker for the server, in the manner of Jepsen and Elle.
//!
//! Clients send random writes and reads to several servers that share one store, while servers are
//! killed and frozen. Every request is recorded with its times and its answer (`history.rs`); a
//! pure function then judges the record (`judge/`). The trick that makes judging exact: every write
//! carries a unique token, which it appends to the list `log` of each scope that it changes, in the
//! same commit as everything else that it does. A log that is read therefore tells which writes
//! were applied and in which order, and all other keys of that scope must be what these writes,
//! applied in that order, make of it.
//!
//! | file | its one idea |
//! |---|---|
//! | `run.rs` `coverage.rs` | rounds on a store until the time is up and everything was exercised |
//! | `arena.rs` | a fresh application for each round |
//! | `workload.rs` `fill.rs` | which request a client sends next, and what a write changes |
//! | `client.rs` `request.rs` `http.rs` | sending, retrying, recording |
//! | `servers.rs` `faults.rs` | the processes, and what is done to them |
//! | `change.rs` `model.rs` | what a write asks for, and what it must do to a scope |
//! | `history.rs` `target.rs` `view.rs` | what is recorded, of whose state, and what an answer shows of it |
//! | `judge/` | finds in a history what no correct server could have answered; `cases/` tests that it does |
//!
//! `SESSILE_CHECK_SEED` and `SESSILE_CHECK_SECONDS` change the seed and the time that each store
//! gets. The seed fixes what clients ask for; how their requests interleave is up to the machine.

mod arena;
mod chance;
mod change;
mod client;
mod coverage;
mod faults;
mod fill;
mod history;
mod http;
mod judge;
mod model;
mod request;
mod run;
mod servers;
mod target;
mod view;
mod workload;

use faults::Fault;

#[test]
fn one_server_in_memory_is_consistent() {
    run::check("memory://", 1, &[Fault::Freeze]);
}

#[test]
fn three_servers_on_one_file_are_consistent() {
    run::check("sqlite:///check.db", 3, &[Fault::Kill, Fault::Freeze]);
}

#[test]
fn three_servers_on_one_database_are_consistent_on_postgres() {
    run::check(&servers::new_schema(), 3, &[Fault::Kill, Fault::Freeze]);
}
