//! What google-adk and plain SQL write to shared state is in its history, and every reader sees it.

use std::process::Command;

use serde_json::{Value, json};
use sessile_session::{ChangedBy, HistoryPage, ScopeChange, ScopeKey, SessionService};
use tokio_postgres::NoTls;

use crate::python::{interpreter, place};
use crate::{Both, Kind, Outcome, in_every_database, setting};

in_every_database!(
    names_the_event_of_google_adk_also_after_its_session_was_deleted,
    every_reader_sees_a_key_that_sql_writes_with_its_prefix,
    states_are_computed_backwards_over_what_google_adk_wrote,
);

fn user() -> ScopeKey {
    ScopeKey::User("shop".to_owned(), "ada".to_owned())
}

fn app() -> ScopeKey {
    ScopeKey::App("shop".to_owned())
}

async fn newest(rust: &SessionService, scope: &ScopeKey, key: &str) -> ScopeChange {
    let history =
        rust.scope_history(scope, Some(key), HistoryPage::default()).await.expect("the history is read");
    history.changes.into_iter().next().expect("there is a change")
}

/// "Who set `user:points` to 1000?"
async fn names_the_event_of_google_adk_also_after_its_session_was_deleted(mut both: Both) -> Outcome {
    let mut new = place("s");
    new["state"] = json!({"user:points": 5, "app:best": 5});
    both.python.ask("create", new);
    both.python.append(
        "s",
        json!({"id": "e1", "author": "clerk", "actions": {"stateDelta": {"user:points": 1000, "app:best": 1000, "own": 1}}})
            .into(),
    );
    both.python.ask("delete", place("s"));
    for (scope, key) in [(user(), "points"), (app(), "best")] {
        let change = newest(&both.rust, &scope, key).await;
        let ChangedBy::External { external, user, session, event, author } = &change.by else {
            panic!("{change:?}")
        };
        let named = [user, session, event, author].map(|part| part.as_deref().unwrap_or("?"));
        assert_eq!(named, ["ada", "s", "e1", "clerk"], "{change:?}");
        assert_eq!(external.is_empty(), both.database.kind != Kind::Postgres);
        assert_eq!(json!(change.record().keys), json!({key: {"before": 5, "after": 1000}}));
    }
    Ok(())
}

/// The statement of ADK's users who seed their application by SQL.
async fn every_reader_sees_a_key_that_sql_writes_with_its_prefix(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    both.rust.write_app_state("shop", json!({"version": "0.9"})).await?;
    let state = r#"{"app:version": "1.0.0", "app:tax_rate": 0.08}"#;
    let location = &both.database.location;
    match both.database.kind {
        Kind::Postgres => {
            let (client, connection) = tokio_postgres::connect(location, NoTls).await?;
            tokio::spawn(connection);
            let statement = format!(
                "INSERT INTO app_states (app_name, state, update_time) VALUES ('shop', '{state}'::jsonb, now())
                 ON CONFLICT (app_name) DO UPDATE SET state = app_states.state || EXCLUDED.state, update_time = now()"
            );
            client.batch_execute(&statement).await?;
        }
        _ => {
            // With Python's own SQLite, which may be another version than ours.
            let statement = format!(
                "INSERT INTO app_states (app_name, state, update_time)
                 SELECT 'shop', '{state}', update_time FROM app_states WHERE true
                 ON CONFLICT (app_name) DO UPDATE SET state = json_patch(app_states.state, excluded.state)"
            );
            let program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
            let ran = Command::new(interpreter()).args(["-c", program, location, &statement]).output()?;
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        }
    }
    let expected = json!({"app:version": "1.0.0", "app:tax_rate": 0.08});
    assert_eq!(Value::from(both.session().await.state().to_map()), expected);
    assert_eq!(json!(both.python.get("s")["state"]), expected, "google-adk reads the same");
    let change = newest(&both.rust, &app(), "version").await;
    assert!(matches!(change.by, ChangedBy::External { event: None, .. }), "{change:?}");
    assert_eq!(json!(change.record().keys["version"]), json!({"before": "0.9", "after": "1.0.0"}));
    Ok(())
}

async fn states_are_computed_backwards_over_what_google_adk_wrote(mut both: Both) -> Outcome {
    both.python.ask("create", place("s"));
    let mut seen = Vec::new();
    for n in 0..6 {
        let delta = json!({"user:n": n, format!("user:ключ {n}"): {"a": [n, 1.5, null]}});
        match n % 2 {
            0 => {
                both.python.append("s", json!({"author": "python", "actions": {"stateDelta": delta}}).into())
            }
            _ => drop(both.rust.append_to(&crate::key("s"), setting(&format!("e{n}"), delta)).await?),
        }
        let state = both.rust.scope_state(&user()).await?;
        seen.push((state.version, json!(*state.state)));
    }
    for (version, expected) in seen {
        assert_eq!(json!(both.rust.scope_state_at(&user(), version).await?), expected, "at {version}");
    }
    Ok(())
}
