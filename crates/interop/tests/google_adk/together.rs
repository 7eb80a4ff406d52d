//! Both write at the same time.
//!
//! Keys of Rust's are not looked for where `DatabaseSessionService` writes to SQLite: there it
//! reads a row, and writes it back whole in a later transaction, so what anyone else wrote in
//! between is lost, also when all of them are google-adk. Their events are all there.

use std::collections::BTreeSet;

use serde_json::json;

use crate::python::place;
use crate::{Both, Kind, Outcome, key, setting};

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_both_write_at_once_on_sqlite() -> Outcome {
    race(Both::new(Kind::Sqlite).await, &["p", "r"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_both_write_at_once_on_postgres() -> Outcome {
    race(Both::new(Kind::Postgres).await, &["p", "r"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_and_no_key_of_python_is_lost_beside_database_session_service_on_sqlite() -> Outcome {
    race(Both::new(Kind::SqliteV1).await, &["p"]).await
}

const EACH: usize = 100;

/// Lets both append; then looks for all events, and for the keys that begin like this.
async fn race(mut both: Both, whose: &[&str]) -> Outcome {
    both.python.ask("create", place("s"));
    let mut python = both.another_python();
    python.ask("get", place("s")); // so that it has started before the race does
    let looping = std::thread::spawn(move || {
        let mut arguments = place("s");
        arguments["count"] = EACH.into();
        arguments["key_prefix"] = "p".into();
        python.ask("loop", arguments)
    });
    let mut expected = BTreeSet::new();
    for n in 0..EACH {
        let delta = json!({format!("r{n}"): n, format!("app:r{n}"): n, format!("user:r{n}"): n});
        both.rust.append_to(&key("s"), setting(&format!("rust-{n}"), delta)).await?;
        expected.insert(format!("rust-{n}"));
        // Python reads, then writes: it gets through only if there is time between two writes.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let looped = looping.join().expect("the loop ends");
    assert_eq!(looped["appended"], EACH);
    let ids: Vec<String> = serde_json::from_value(looped["ids"].clone())?;
    expected.extend(ids);

    let session = both.session().await;
    let read: Vec<String> = session.events().iter().map(|event| event.id.clone()).collect();
    assert_eq!(read.len(), 2 * EACH, "every event once");
    assert_eq!(BTreeSet::from_iter(read), expected);
    let places: Vec<u64> = session.events().iter().map(|event| event.version).collect();
    assert_eq!(places, Vec::from_iter(1..=2 * EACH as u64));

    let names =
        ["", "app:", "user:"].iter().flat_map(|scope| whose.iter().map(move |who| format!("{scope}{who}")));
    let lost: Vec<String> = names
        .flat_map(|name| (0..EACH).map(move |n| format!("{name}{n}")))
        .filter(|name| !session.state().contains(name))
        .collect();
    assert!(lost.is_empty(), "{} keys are lost, after {} retries: {lost:?}", lost.len(), looped["retries"]);
    let seen = both.python.get("s");
    assert_eq!(seen["state"], serde_json::Value::from(session.state().to_map()));
    Ok(())
}
