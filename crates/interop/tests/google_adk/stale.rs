//! Each finds out that the other changed the session in hand.

use serde_json::json;
use sessile_session::{CreateSession, Event, SessionError};

use crate::python::place;
use crate::{Both, Outcome, in_every_database, key, python_setting, setting};

in_every_database!(
    python_is_not_stale_when_nothing_changed,
    python_is_stale_when_rust_appended,
    python_is_stale_whatever_the_time_of_the_event,
    python_is_stale_when_times_differ_by_less_than_a_microsecond,
    python_is_not_stale_when_only_shared_state_changed,
    python_is_stale_after_a_transaction_and_after_a_rewind,
    rust_is_stale_when_python_appended,
);

const STALE: &str = "StaleSessionError";

fn at(timestamp: f64, id: &str) -> Event {
    setting(id, json!({"rust": id})).with_timestamp(timestamp)
}

async fn python_is_not_stale_when_nothing_changed(mut both: Both) -> Outcome {
    both.rust.create(CreateSession::new("shop", "ada").with_id("s")).await?;
    both.rust.create(CreateSession::new("shop", "ada").with_id("other")).await?;
    both.python.hold("s", "created");
    both.rust.append_to(&key("other"), setting("r", json!({"app:x": 1, "user:x": 1}))).await?;
    both.python.append_held("s", "created", python_setting("p1", json!({"a": 1})))?;
    both.python.append_held("s", "created", python_setting("p2", json!({"a": 2})))?;
    both.rust.append_to(&key("s"), setting("r3", json!({"a": 3}))).await?;
    both.python.hold("s", "appended");
    both.session().await;
    both.another_rust().await;
    both.python.append_held("s", "appended", python_setting("p4", json!({"a": 4})))?;
    assert_eq!(both.session().await.version(), 4);
    Ok(())
}

async fn python_is_stale_when_rust_appended(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.python.hold("s", "before");
    both.rust.append_to(&key("s"), setting("r", json!({}))).await?;
    let event = python_setting("p", json!({"lost": 1}));
    assert_eq!(both.python.append_held("s", "before", event.clone()), Err(STALE.to_owned()));
    assert_eq!(both.session().await.version(), 1, "nothing of the refused event is stored");
    both.python.hold("s", "after");
    both.python.append_held("s", "after", event)?;
    Ok(())
}

async fn python_is_stale_whatever_the_time_of_the_event(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.python.append("s", python_setting("p0", json!({})));
    let now = both.session().await.last_update_time();
    for (n, time) in [now, now, now - 1e-6, now - 3600.0, 5.0, now + 3600.0, now].into_iter().enumerate() {
        both.python.hold("s", "before");
        both.rust.append_to(&key("s"), at(time, &format!("r{n}"))).await?;
        let refused = both.python.append_held("s", "before", python_setting("p", json!({})));
        assert_eq!(refused, Err(STALE.to_owned()), "after an event {} seconds later", time - now);
    }
    Ok(())
}

async fn python_is_stale_when_times_differ_by_less_than_a_microsecond(mut both: Both) -> Outcome {
    both.rust.create(CreateSession::new("shop", "ada").with_id("s")).await?;
    let time = both.session().await.last_update_time().ceil() + 10.0;
    // The times round to the same microsecond, some of them up and some down.
    for (n, part) in [0.0, 0.25, 0.25, 0.4, 0.4, -0.4, 0.0, 0.7, 0.7, 1.4].into_iter().enumerate() {
        both.python.hold("s", "before");
        both.rust.append_to(&key("s"), at(time + part * 1e-6, &format!("r{n}"))).await?;
        let refused = both.python.append_held("s", "before", python_setting("p", json!({})));
        assert_eq!(refused, Err(STALE.to_owned()), "after event {n}");
    }
    Ok(())
}

async fn python_is_not_stale_when_only_shared_state_changed(mut both: Both) -> Outcome {
    both.rust.create(CreateSession::new("shop", "ada").with_id("s")).await?;
    both.python.hold("s", "before");
    both.rust.write_app_state("shop", json!({"x": 1})).await?;
    both.rust.write_user_state("shop", "ada", json!({"x": 1})).await?;
    both.python.append_held("s", "before", python_setting("p", json!({"app:y": 2})))?;
    let state = both.python.get("s")["state"].clone();
    assert_eq!(state, json!({"app:x": 1, "app:y": 2, "user:x": 1}));
    Ok(())
}

async fn python_is_stale_after_a_transaction_and_after_a_rewind(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.python.append("s", python_setting("p1", json!({"a": 1})));
    both.python.hold("s", "before");
    let session = key("s");
    both.rust.transact(&session, |state| Ok(state.try_set("a", 2)?)).await?;
    let event = python_setting("p", json!({"a": 9}));
    assert_eq!(both.python.append_held("s", "before", event.clone()), Err(STALE.to_owned()));
    both.python.hold("s", "between");
    both.rust.rewind(&session, "i").await?;
    assert_eq!(both.python.append_held("s", "between", event), Err(STALE.to_owned()));
    assert_eq!(both.session().await.version(), 3);
    Ok(())
}

async fn rust_is_stale_when_python_appended(mut both: Both) -> Outcome {
    both.rust.create(CreateSession::new("shop", "ada").with_id("s")).await?;
    let mut session = both.session().await;
    both.python.append("s", python_setting("p1", json!({})));
    let refused = both.rust.append(&mut session, setting("r", json!({"a": 1}))).await;
    assert!(matches!(refused, Err(SessionError::Conflict { expected: 0, actual: 1, .. })), "{refused:?}");
    let mut session = both.session().await;
    both.rust.append(&mut session, setting("r", json!({"a": 1}))).await?;
    assert_eq!(session.version(), 2);
    Ok(())
}
