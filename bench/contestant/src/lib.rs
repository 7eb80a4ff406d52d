//! One contestant of the comparison of stores: a process that reads requests, does them with one
//! library on one store, and answers how long they took.
//!
//! A request is a line of JSON on standard input, an answer a line on standard output; `do` names
//! the operation, see [`Contestant`]. `bench/stores/google_adk.py` speaks the same language.
#![expect(clippy::print_stdout, reason = "answers go to standard output")]

mod memory;
mod operations;

use std::any::Any;
use std::fmt;
use std::io::BufRead;
use std::sync::Arc;

use serde_json::{Value, json};

/// Why a call failed, for people.
pub type Failure = String;

/// What was read; kept until its cost in memory is known.
pub struct Reading {
    /// How many events came with the session.
    pub events: usize,
    /// The session itself.
    pub held: Box<dyn Any + Send>,
    /// Its size as JSON, computed only if it is asked for.
    pub json_bytes: Box<dyn Fn() -> usize + Send>,
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("events", &self.events).finish_non_exhaustive()
    }
}

/// What an event changes.
#[derive(Debug, Clone, Copy)]
pub enum Changes {
    /// Two keys of the session, one of the user and one of the application.
    AllScopes,
    /// Two keys of the session.
    OwnKeys,
    /// Sets one key of the application.
    SetOne,
    /// Adds one to a key of the application, in the store.
    AddOne,
}

/// How a tool counts.
#[derive(Debug, Clone, Copy)]
pub enum Tool {
    /// It reads the counter, adds one and sets it, as every library allows.
    ReadAndSet,
    /// It adds one by an operation of the store.
    Add,
}

/// A library on a store. Session ids are `s0`, `s1`, …, all of one application and user.
pub trait Contestant: Send + Sync + 'static {
    /// An event, ready to be appended: about 600 bytes as JSON.
    type Event: Send + 'static;

    /// Makes event number `n`, or `None` if the library cannot say such a change. Not part of what
    /// is measured.
    fn event(&self, n: usize, changes: Changes) -> Option<Self::Event>;

    /// Makes a session.
    fn create(&self, id: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Appends one event, durably where the store can.
    fn append(&self, id: &str, event: Self::Event) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Reads a session with its last few events, or with all.
    fn get(&self, id: &str, last: Option<usize>) -> impl Future<Output = Result<Reading, Failure>> + Send;

    /// Reads a page of sessions; returns how many there are on it.
    fn list(&self, size: usize) -> impl Future<Output = Result<usize, Failure>> + Send;

    /// Adds one to `user:counter` in the way that this library offers.
    fn increment(&self, id: &str) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Adds one to `user:counter` by an operation of the store; `None` if the library has none.
    fn add(&self, id: &str) -> Option<impl Future<Output = Result<(), Failure>> + Send>;

    /// Runs an agent in the library's own runner once. The agent's tool adds one to `user:counter`.
    /// Returns how much of the counter the events of the run report as overwritten; `None` if the
    /// library has no such tool.
    fn run_tool(&self, id: &str, tool: Tool) -> Option<impl Future<Output = Result<i64, Failure>> + Send>;

    /// Reads `user:counter`.
    fn counter(&self, id: &str) -> impl Future<Output = Result<i64, Failure>> + Send;
}

/// Answers requests until there are no more.
pub fn serve<C: Contestant>(open: impl Future<Output = C>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a process can start threads");
    let contestant = Arc::new(runtime.block_on(open));
    println!("{}", json!({"ready": true}));
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input is text");
        let request: Value = serde_json::from_str(&line).expect("a request is JSON");
        let answer = runtime.block_on(operations::perform(contestant.clone(), &request));
        println!("{}", answer.unwrap_or_else(|failure| json!({"failure": failure})));
    }
}
