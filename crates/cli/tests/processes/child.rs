//! One of the eight processes: from the parent's side, and what it does itself.
//!
//! It says `ready`, waits for a line, works, and says `saw SESSION USER APP` for each of its
//! changes: what the answer gave as the counter of each scope.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use sessile_session::{
    Append, CreateSession, Event, EventActions, EventWindow, OnConflict, SessionKey, SessionService,
};
use sessile_state::{Delta, Operation};

use crate::http::{Connection, Request};
use crate::test_store::{block_on, service, shared};
use crate::{EACH, PREFIXES};

/// The variable that makes this program one of the eight, and says in which role.
pub(crate) const CHILD: &str = "SESSILE_TEST_CHILD";

/// The item that all processes add to each set, where it must be once.
pub(crate) const COMMON: i64 = -1;

pub(crate) struct Child {
    process: Process,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Child {
    pub(crate) fn start(role: &str, number: u32, argument: &str) -> Self {
        let this = std::env::current_exe().expect("this program has a path");
        let mut process = Command::new(this)
            .args([&number.to_string(), argument])
            .env(CHILD, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child starts");
        let input = process.stdin.take().expect("its input is piped");
        let output = BufReader::new(process.stdout.take().expect("its output is piped")).lines();
        Self { process, input, output }
    }

    pub(crate) fn wait_until_ready(mut self) -> Self {
        let line = self.output.next().expect("the child does not end").expect("its output is read");
        assert_eq!(line, "ready");
        self
    }

    pub(crate) fn begin(mut self) -> Self {
        self.input.write_all(b"begin\n").expect("the child waits for it");
        self
    }

    /// Waits for its end: the counters of the session, the user and the application that it saw.
    pub(crate) fn finish(mut self) -> Vec<[u32; 3]> {
        let lines = self.output.map(|line| line.expect("its output is read"));
        let seen = lines.map(|line| {
            let numbers = line.strip_prefix("saw ").unwrap_or_else(|| panic!("a child says {line:?}"));
            let numbers: Vec<u32> = numbers.split(' ').map(|n| n.parse().expect("a number")).collect();
            numbers.try_into().expect("three scopes")
        });
        let seen = seen.collect();
        let status = self.process.wait().expect("the child has ended");
        assert!(status.success(), "a child ended with {status}");
        seen
    }
}

/// Does what this process was started for.
pub(crate) fn run(role: &OsStr) {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [number, argument] = &*arguments else { panic!("two arguments, not {arguments:?}") };
    let number = number.parse().expect("a number");
    match role.to_str() {
        Some("operate") => block_on(operate(number, argument)),
        Some("transact") => block_on(transact(number, argument)),
        Some("tools") => block_on(crate::tools::run_tools(number, argument)),
        Some("request") => request(number, argument),
        _ => panic!("there is no role {role:?}"),
    }
}

/// Appends events that add in all scopes, and that append and unite in one scope after the other,
/// in each way in which the library appends; and adds to shared state from a session of its own and
/// without one.
async fn operate(process: u32, url: &str) {
    let service = service(url).await;
    let own = create_own_session(&service, process).await;
    let mut session =
        service.get(&shared(), EventWindow::NONE).await.expect("it is read").expect("the session exists");
    wait_for_the_others();
    for n in 0..EACH {
        let (item, [logged, united, mapped]) = turn(process, n);
        let mut delta = Delta::new();
        PREFIXES.iter().for_each(|prefix| delta.add(format!("{prefix}sum"), 1));
        delta.append(format!("{logged}log"), [json!(item)]);
        delta.union(format!("{united}set"), [json!(COMMON), json!(item)]);
        let field = Operation::union_fields([(item.to_string(), json!(item))]);
        delta.operate(format!("{mapped}fields"), field);
        let event = Event::new("agent").with_actions(EventActions::from_delta(delta));
        match n % 3 {
            0 => {
                let append = Append::new(event);
                let appended = service.append_answering(&shared(), append).await.expect("it is appended");
                saw(|key| results(&appended.event, key));
            }
            1 => {
                let appended = service.append_with(&mut session, event, OnConflict::Merge).await;
                let event = appended.expect("it is appended");
                saw(|key| results(&event, key));
            }
            _ => {
                let changed = service.change(&shared(), Append::new(event), EventWindow::NONE).await;
                let state = changed.expect("it is appended");
                saw(|key| state.state().get(key));
            }
        }
        match n % 4 {
            0 => drop(service.write_user_state("shop", "ada", adding("more")).await.expect("it is written")),
            1 => drop(service.write_app_state("shop", adding("more")).await.expect("it is written")),
            _ => {
                let key = if n % 4 == 2 { "user:more" } else { "app:more" };
                let event = Event::new("agent").with_actions(EventActions::from_delta(adding(key)));
                service.append_to(&own, event).await.expect("it is appended");
            }
        }
    }
    service.close().await.expect("the store is closed");
}

/// The item of a process's change, and the prefixes of the list, the set and the object that get
/// it. They take turns, because each event holds the whole value that an operation resulted in.
pub(crate) fn turn(process: u32, n: u32) -> (i64, [&'static str; 3]) {
    let prefix = |n: u32| PREFIXES[n as usize % PREFIXES.len()];
    (i64::from(process * EACH + n), [prefix(n), prefix(n + 1), prefix(n + 2)])
}

fn adding(key: &str) -> Delta {
    let mut delta = Delta::new();
    delta.add(key, 1);
    delta
}

/// What an event came to.
fn results(event: &Event, key: &str) -> Option<u32> {
    event.actions.state_delta.values().find(|(name, _)| *name == key)?.1.read().ok()
}

/// Counts in all scopes by reading, computing and setting: in one transaction, or the shared scopes
/// in one of a session of its own, which no lock of the shared session protects.
async fn transact(process: u32, url: &str) {
    let service = service(url).await;
    let own = create_own_session(&service, process).await;
    let count = async |session: &SessionKey, prefixes: &[&str]| -> Vec<String> {
        let counted = service.transact(session, |state| {
            let count = |prefix| state.try_modify(&format!("{prefix}sum"), 0_u32, |count| count + 1);
            prefixes.iter().map(|prefix| Ok(count(prefix)?.to_string())).collect()
        });
        counted.await.expect("it is counted").0
    };
    wait_for_the_others();
    for n in 0..EACH {
        let mut counted = match n % 2 {
            0 => count(&shared(), &PREFIXES).await,
            _ => count(&shared(), &PREFIXES[..1]).await,
        };
        if n % 2 == 1 {
            counted.extend(count(&own, &PREFIXES[1..]).await);
        }
        say(&format!("saw {}", counted.join(" ")));
    }
    service.close().await.expect("the store is closed");
}

async fn create_own_session(service: &SessionService, process: u32) -> SessionKey {
    let new = CreateSession::new("shop", "ada").with_id(format!("own-{process}"));
    service.create(new).await.expect("the session is created").key().clone()
}

/// The same operations as requests to a server: as events, and as PATCHes of the session, of a
/// session of its own, of the user and of the application.
fn request(process: u32, address: &str) {
    let mut server = Connection::open(address).expect("the server is reached");
    let mut send = |method, path: &str, body: Value| {
        let request =
            Request { method, path: path.to_owned(), headers: String::new(), body: Some(body.to_string()) };
        let answer = server.send(&request, Duration::from_secs(60)).expect("the server answers");
        assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
        answer.body
    };
    send("POST", "/apps/shop/users/ada/sessions", json!({"sessionId": format!("own-{process}")}));
    wait_for_the_others();
    let own = format!("/apps/shop/users/ada/sessions/own-{process}?numRecentEvents=0");
    let session = "/apps/shop/users/ada/sessions/shared";
    for n in 0..EACH {
        let (item, [logged, united, mapped]) = turn(process, n);
        let mut operations: Map<String, Value> =
            PREFIXES.iter().map(|prefix| (format!("{prefix}sum"), json!({"add": 1}))).collect();
        operations.insert(format!("{logged}log"), json!({"append": [item]}));
        operations.insert(format!("{united}set"), json!({"union": [COMMON, item]}));
        operations.insert(format!("{mapped}fields"), json!({"union": {item.to_string(): item}}));
        let state = match n % 2 {
            0 => {
                let path = format!("{session}?numRecentEvents=0");
                send("PATCH", &path, json!({"stateOps": operations}))["state"].take()
            }
            _ => {
                let event = json!({"author": "agent", "actions": {"stateOps": operations}});
                send("POST", &format!("{session}/events"), event)["actions"]["stateDelta"].take()
            }
        };
        saw(|key| u32::try_from(state[key].as_u64()?).ok());
        let adding = |key: &str| json!({"stateOps": {key: {"add": 1}}});
        match n % 4 {
            0 => send("PATCH", "/apps/shop/users/ada/state", adding("more")),
            1 => send("PATCH", "/apps/shop/state", adding("more")),
            2 => send("PATCH", &own, adding("user:more")),
            _ => send("PATCH", &own, adding("app:more")),
        };
    }
}

/// Tells the parent what an answer gave as the counters.
fn saw(counter: impl Fn(&str) -> Option<u32>) {
    let counters = PREFIXES.map(|prefix| {
        let key = format!("{prefix}sum");
        counter(&key).unwrap_or_else(|| panic!("the answer has no {key}")).to_string()
    });
    say(&format!("saw {}", counters.join(" ")));
}

pub(crate) fn wait_for_the_others() {
    say("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the parent says when to begin");
    assert_eq!(line, "begin\n", "the parent has ended");
}

pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).expect("the parent listens");
}
