//! Rust operates on keys while Python sets others of the same session, user and application.
//!
//! A commit of Rust's never overwrites a key that it did not change, so no key of Python's is lost
//! in any database. What Rust wrote is lost only where google-adk writes back a whole row that it
//! read earlier without a lock: always on SQLite with `DatabaseSessionService`, and on PostgreSQL
//! when it creates a session with state of its user or application.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use sessile_session::{Event, EventActions, EventWindow, Session, SessionService};
use sessile_state::Delta;

use crate::python::{Python, place};
use crate::{Both, Kind, Outcome, in_every_database, key, python_setting};

in_every_database!(
    no_key_of_python_is_lost_while_rust_operates,
    no_key_of_python_is_lost_when_it_creates_sessions_while_rust_operates,
    stored_events_fold_to_the_stored_state_in_both,
);

const EACH: usize = 60;
const PREFIXES: [&str; 3] = ["", "user:", "app:"];

/// Each of two sessions is written by a Python and a Rust; all write to the same user and
/// application. Where Python writes back whole rows, two of them would lose each other's keys, so
/// only one session has a Python there.
async fn no_key_of_python_is_lost_while_rust_operates(mut both: Both) -> Outcome {
    let by_python: &[&'static str] = if both.kind() == Kind::SqliteV1 { &["s"] } else { &["s", "q"] };
    for id in ["s", "q"] {
        both.python.ask("create", place(id));
    }
    let writers: Vec<_> = by_python.iter().map(|id| start_python(&mut both, id)).collect();
    let (first, second) = (both.rust.clone(), both.another_rust().await);
    let (first, second) = tokio::join!(operate(&first, "s"), operate(&second, "q"));
    first?;
    second?;
    for writer in writers {
        assert_eq!(writer.join().expect("the loop ends")["appended"], EACH);
    }
    for id in ["s", "q"] {
        let session = stored(&both, id).await;
        let writers = if by_python.contains(&id) { 2 } else { 1 };
        assert_eq!(session.version(), (writers * EACH) as u64, "every event of {id} is there once");
        if by_python.contains(&id) {
            check_python(&session, &[""], &[id]);
        }
        check_python(&session, &PREFIXES[1..], by_python);
        if both.kind() != Kind::SqliteV1 {
            check_rust(&session, "", &[id]);
            check_rust(&session, "user:", &["s", "q"]);
            check_rust(&session, "app:", &["s", "q"]);
            check_fold(&mut both, &session).await?;
        }
        assert_eq!(both.python.get(id)["state"], Value::from(session.state().to_map()));
    }
    Ok(())
}

/// A new session is the one case where google-adk writes back on PostgreSQL what it read without a
/// lock.
async fn no_key_of_python_is_lost_when_it_creates_sessions_while_rust_operates(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    let mut python = both.another_python();
    python.ask("get", place("s")); // so that it has started before the race does
    let creating = std::thread::spawn(move || {
        let arguments = json!({"app": "shop", "user": "ada", "count": EACH, "key_prefix": "p-s-"});
        python.ask("create_loop", arguments)
    });
    operate(&both.rust, "s").await?;
    creating.join().expect("the loop ends");
    let session = stored(&both, "s").await;
    check_python(&session, &PREFIXES[1..], &["s"]);
    check_rust(&session, "", &["s"]);
    if both.kind() == Kind::Sqlite {
        check_rust(&session, "user:", &["s"]);
        check_rust(&session, "app:", &["s"]);
    }
    Ok(())
}

/// Both change the same keys of a session in turns, Rust by operations and removals.
async fn stored_events_fold_to_the_stored_state_in_both(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    for n in 0..5 {
        both.python.append("s", python_setting(&format!("p{n}"), json!({"sum": n * 10, "mine": n})));
        both.rust.append_to(&key("s"), operating("s", n)).await?;
        both.rust.append_to(&key("s"), operating("s", n + 100)).await?;
    }
    let session = stored(&both, "s").await;
    assert_eq!((session.state().get("sum"), session.state().get("mine")), (Some(42), Some(4)));
    check_fold(&mut both, &session).await
}

fn start_python(both: &mut Both, id: &'static str) -> std::thread::JoinHandle<sessile_state::SharedValue> {
    let mut python: Python = both.another_python();
    python.ask("get", place(id)); // so that it has started before the race does
    std::thread::spawn(move || {
        let mut arguments = place(id);
        arguments["count"] = EACH.into();
        arguments["key_prefix"] = format!("p-{id}-").into();
        python.ask("loop", arguments)
    })
}

/// Adds, appends and unites in all scopes.
fn operating(id: &str, n: usize) -> Event {
    let mut delta = Delta::new();
    for prefix in PREFIXES {
        let item = json!(format!("{id}-{n}"));
        delta.add(format!("{prefix}sum"), 1);
        delta.append(format!("{prefix}log"), [item.clone()]);
        delta.union(format!("{prefix}set"), [json!("common"), item]);
    }
    Event::new("rust").with_actions(EventActions::from_delta(delta))
}

async fn operate(rust: &SessionService, id: &str) -> Outcome {
    for n in 0..EACH {
        rust.append_to(&key(id), operating(id, n)).await?;
        // Python reads, then writes: it gets through only if there is time between two writes.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

async fn stored(both: &Both, id: &str) -> Session {
    let found = both.rust.get(&key(id), EventWindow::ALL).await.expect("the session is read");
    found.expect("the session exists")
}

/// The keys that Python set from these sessions are there.
fn check_python(session: &Session, prefixes: &[&str], sessions: &[&str]) {
    let names = prefixes.iter().flat_map(|prefix| sessions.iter().map(move |id| format!("{prefix}p-{id}-")));
    let lost: Vec<String> = names
        .flat_map(|name| (0..EACH).map(move |n| format!("{name}{n}")))
        .filter(|name| !session.state().contains(name))
        .collect();
    assert!(lost.is_empty(), "{} keys of Python's are lost: {lost:?}", lost.len());
}

/// What Rust did from these sessions is there.
fn check_rust(session: &Session, prefix: &str, sessions: &[&str]) {
    let state = session.state();
    let items: BTreeSet<String> =
        sessions.iter().flat_map(|id| (0..EACH).map(move |n| format!("{id}-{n}"))).collect();
    assert_eq!(state.get(&format!("{prefix}sum")), Some(items.len()), "{prefix}sum");
    let log: Vec<String> = state.get(&format!("{prefix}log")).expect("a list");
    assert_eq!((log.len(), BTreeSet::from_iter(log)), (items.len(), items.clone()), "{prefix}log");
    let set: Vec<String> = state.get(&format!("{prefix}set")).expect("a list");
    let expected: BTreeSet<String> = items.into_iter().chain(["common".to_owned()]).collect();
    assert_eq!((set.len(), BTreeSet::from_iter(set)), (expected.len(), expected), "{prefix}set");
}

/// The session's own keys are what its stored events come to, in Rust and in google-adk.
async fn check_fold(both: &mut Both, session: &Session) -> Outcome {
    let is_own = |key: &str| !key.starts_with("user:") && !key.starts_with("app:");
    let mut own = session.state().to_map();
    own.retain(|key, _| is_own(key));
    let own = Value::from(own);
    assert_eq!(serde_json::to_value(both.rust.state_at(session.key(), session.version()).await?)?, own);
    let mut replayed: serde_json::Map<String, Value> =
        serde_json::from_value(both.python.ask("replay", place(session.key().id()))["state"].clone())?;
    replayed.retain(|key, _| is_own(key));
    assert_eq!(Value::from(replayed), own, "google-adk folds the stored events to the stored state");
    Ok(())
}
