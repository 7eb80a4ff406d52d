//! Each reads all that the other wrote, field by field.

use std::collections::BTreeMap;

use serde_json::json;
use sessile_session::{CreateSession, Event, EventActions};
use sessile_state::{Delta, SharedValue};

use crate::exact::lines;
use crate::python::place;
use crate::{Both, Outcome, in_every_database, key, python_setting, setting};

in_every_database!(
    an_event_of_rust_reads_the_same_in_python,
    an_event_of_python_reads_the_same_in_rust,
    initial_state_reads_the_same_in_both,
    operations_of_rust_read_as_their_results_in_python,
);

/// An event with every field that google-adk accepts, as it sends it.
fn every_field() -> SharedValue {
    SharedValue::from_json(include_str!("../../event.json")).expect("the event is JSON")
}

/// The keys that an event sets.
fn state_delta(event: &Event) -> BTreeMap<String, SharedValue> {
    event.actions.state_delta.values().map(|(key, value)| (key.to_owned(), value.clone())).collect()
}

async fn an_event_of_rust_reads_the_same_in_python(mut both: Both) -> Outcome {
    both.rust.create(CreateSession::new("shop", "ada").with_id("s")).await?;
    let event: Event = every_field().read()?;
    assert!(event.unknown.is_empty(), "an unknown field: {:?}", event.unknown.keys());
    both.rust.append_to(&key("s"), event.clone()).await?;
    let session = both.python.get("s");
    let events: Vec<SharedValue> = session["events"].read()?;
    assert_eq!(lines(&events[0]), lines(&every_field()));
    assert_eq!(lines(&session["state"]), lines(&state_delta(&event)));
    Ok(())
}

async fn an_event_of_python_reads_the_same_in_rust(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.python.append("s", every_field());
    let session = both.session().await;
    assert_eq!(lines(&*session.events()[0].event), lines(&every_field()));
    let state: BTreeMap<_, _> = session.state().iter().collect();
    assert_eq!(lines(&state), lines(&state_delta(&session.events()[0])));
    Ok(())
}

async fn initial_state_reads_the_same_in_both(mut both: Both) -> Outcome {
    let event: Event = every_field().read()?;
    let state = state_delta(&event);
    let theirs = CreateSession::new("shop", "ada").with_id("rust").with_state(state.clone());
    both.rust.create(theirs).await?;
    assert_eq!(lines(&both.python.get("rust")["state"]), lines(&state));

    let initial = json!({"a": null, "b": {"deep_key": [0.1, "é", {}]}, "user:u": 1.0, "app:a": [null]});
    let mut arguments = place("s");
    arguments["state"] = initial.clone();
    both.python.ask("create", arguments);
    let session = both.session().await;
    for (name, value) in initial.as_object().expect("it is an object") {
        assert_eq!(session.state().get_raw(name).map(lines), Some(lines(value)), "{name}");
    }
    Ok(())
}

/// Python knows no operations. It reads absolute values, folds a session's events to the state that
/// is stored, and goes on from there; Rust operates on what Python set.
async fn operations_of_rust_read_as_their_results_in_python(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.python.append("s", python_setting("p1", json!({"n": 1, "log": ["p"], "gone": 1, "user:n": 1})));
    let mut delta = Delta::new();
    delta.add("n", 2);
    delta.append("log", [json!("r")]);
    delta.union("tags", [json!("a"), json!("b")]);
    delta.remove("gone");
    delta.add("user:n", 0.5);
    delta.add("app:n", 1);
    let mut event = setting("r1", json!({}));
    event.actions.state_delta = delta;
    both.rust.append_to(&key("s"), event).await?;
    both.python.append("s", python_setting("p2", json!({"n": 10})));
    let mut delta = Delta::new();
    delta.add("n", 1);
    both.rust
        .append_to(&key("s"), setting("r2", json!({})).with_actions(EventActions::from_delta(delta)))
        .await?;

    let session = both.python.get("s");
    let state = json!({"n": 11, "log": ["p", "r"], "tags": ["a", "b"], "user:n": 1.5, "app:n": 1});
    assert_eq!(session["state"], state);
    assert_eq!(serde_json::to_value(both.session().await)?["state"], state);
    let events: Vec<serde_json::Value> = session["events"].read()?;
    let changed = |place: usize| events[place]["actions"]["stateDelta"].clone();
    let results =
        json!({"n": 3, "log": ["p", "r"], "tags": ["a", "b"], "gone": null, "user:n": 1.5, "app:n": 1});
    assert_eq!((changed(1), changed(3)), (results, json!({"n": 11})));
    Ok(())
}
