//! The history of what other programs write, and keys that they write with their prefix.

use std::path::Path;

use serde_json::{Value, json};
use sessile_conformance::histories::{self, ForeignWrite};
use sessile_session::{
    ChangeWindow, ChangedBy, CreateSession, HistoryPage, ScopeChange, ScopeKey, SessionError, SessionService,
};

use crate::support::{new_file, new_v1_file, sql};
use crate::{key, service, setting, stored, value};

fn user() -> ScopeKey {
    ScopeKey::User("shop".to_owned(), "ada".to_owned())
}

fn app() -> ScopeKey {
    ScopeKey::App("shop".to_owned())
}

/// A time as the layout of the file has it.
fn time(path: &Path) -> &'static str {
    let kind: String =
        value(path, "SELECT type FROM pragma_table_info('app_states') WHERE name = 'update_time'");
    if kind == "REAL" { "5.0" } else { "'2026-01-01 00:00:00.000000'" }
}

async fn newest(service: &SessionService, scope: &ScopeKey) -> ScopeChange {
    let changes =
        service.store().scope_changes(scope, ChangeWindow::newest(1)).await.expect("the history is read");
    changes.into_iter().next().expect("there is a change")
}

/// The change as JSON, without its time.
fn without_time(change: &ScopeChange) -> Value {
    let mut json = serde_json::to_value(change).expect("a change is JSON");
    json.as_object_mut().expect("a change is an object").remove("time");
    json
}

/// The statement of a team that seeds its application by SQL, with the prefixes that it sees in
/// code.
fn upsert(path: &Path, state: &str) {
    let time = time(path);
    sql(
        path,
        &format!(
            "INSERT INTO app_states (app_name, state, update_time) VALUES ('shop', '{state}', {time})
             ON CONFLICT (app_name) DO UPDATE SET state = json_patch(app_states.state, excluded.state),
                 update_time = excluded.update_time"
        ),
    );
}

#[tokio::test]
async fn a_key_that_is_written_with_its_prefix_is_folded_over_the_one_that_is_there() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        service.write_app_state("shop", json!({"version": "0.9", "keep": 1.5})).await.unwrap();
        upsert(&path, r#"{"app:version": "1.0.0", "app:tax_rate": 0.08}"#);
        let state: String = value(&path, "SELECT state FROM app_states");
        let expected = json!({"keep": 1.5, "tax_rate": 0.08, "version": "1.0.0"});
        assert_eq!(
            serde_json::from_str::<Value>(&state).unwrap(),
            expected,
            "google-adk reads the row as it is"
        );
        assert_eq!(json!(service.app_state("shop").await.unwrap()), expected);
        let change = without_time(&newest(&service, &app()).await);
        assert_eq!(
            change,
            json!({
                "version": 2, "by": {"external": ""},
                "change": {"set": {"version": "1.0.0", "tax_rate": 0.08}}, "undo": {"before": {"version": "0.9"}},
            })
        );
        // The newer write wins, also the next time and without a prefix.
        upsert(&path, r#"{"version": "1.1.0"}"#);
        upsert(&path, r#"{"app:tax_rate": 0.1}"#);
        service.append_to(&key("s"), setting(json!({"app:keep": 2}))).await.unwrap();
        let state = json!(service.app_state("shop").await.unwrap());
        assert_eq!(state, json!({"keep": 2, "tax_rate": 0.1, "version": "1.1.0"}));
        assert_eq!(
            json!(service.scope_state_at(&app(), 1).await.unwrap()),
            json!({"version": "0.9", "keep": 1.5})
        );
        // A new row.
        sql(&path, "DELETE FROM app_states");
        upsert(&path, r#"{"app:a": 123456789012345678901234567890, "b": 1.50}"#);
        let state: String = value(&path, "SELECT state FROM app_states");
        assert_eq!(state, r#"{"a":123456789012345678901234567890,"b":1.50}"#, "every digit is kept");
    }
}

#[tokio::test]
async fn plain_sql_is_recorded_as_the_difference_and_sessiles_own_writes_once() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        service
            .create(CreateSession::new("shop", "ada").with_id("s").with_state(json!({"user:points": 5})))
            .await
            .unwrap();
        sql(&path, "UPDATE user_states SET state = json_set(state, '$.points', 1000)");
        let change = newest(&service, &user()).await;
        assert!(change.time > 1.6e9);
        assert_eq!(
            without_time(&change),
            json!({
                "version": 2, "by": {"external": ""}, "change": {"set": {"points": 1000}},
                "undo": {"before": {"points": 5}},
            })
        );
        service.append_to(&key("s"), setting(json!({"user:points": 1}))).await.unwrap();
        service.write_user_state("shop", "ada", json!({"points": 2})).await.unwrap();
        sql(
            &path,
            "UPDATE user_states SET state = '{}'; UPDATE user_states SET state = '{}', update_time = update_time",
        );
        sql(&path, "DELETE FROM user_states");
        let history = service.scope_history(&user(), Some("points"), HistoryPage::default()).await.unwrap();
        let versions: Vec<_> = history.changes.iter().map(|change| change.version).collect();
        assert_eq!(versions, [5, 4, 3, 2, 1], "an update that changes nothing is none");
        let external = |change: &ScopeChange| matches!(change.by, ChangedBy::External { .. });
        assert_eq!(
            history.changes.iter().map(external).collect::<Vec<_>>(),
            [true, false, false, true, false]
        );
        for (version, points) in [(1, 5), (2, 1000), (3, 1), (4, 2)] {
            assert_eq!(
                json!(service.scope_state_at(&user(), version).await.unwrap()),
                json!({"points": points})
            );
        }
    }
}

#[tokio::test]
async fn a_row_that_is_replaced_goes_on_after_its_version_and_says_that_the_state_before_is_not_known() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        for n in 1..=3 {
            service.write_app_state("shop", json!({"n": n})).await.unwrap();
        }
        let time = time(&path);
        let replace = format!(
            "INSERT OR REPLACE INTO app_states (app_name, state, update_time) VALUES ('shop', '{{\"n\": 9}}', {time})"
        );
        sql(&path, &replace);
        let state = service.scope_state(&app()).await.unwrap();
        assert_eq!((state.version, json!(*state.state)), (4, json!({"n": 9})));
        let change = newest(&service, &app()).await;
        assert_eq!((change.version, change.undo.unknown), (4, true));
        assert_eq!(json!(change.change), json!({"set": {"n": 9}}));
        let refused = service.scope_state_at(&app(), 3).await.unwrap_err();
        assert!(matches!(refused, SessionError::NotInScopeHistory { oldest: Some(4), .. }), "{refused}");
        // Without any history of the row it is the same.
        sql(&path, "DELETE FROM sessile_app_changes; UPDATE app_states SET sessile_version = 7");
        sql(&path, &replace);
        assert_eq!(service.scope_state(&app()).await.unwrap().version, 8);
        service.write_app_state("shop", json!({"n": 10})).await.unwrap();
        assert_eq!(json!(service.scope_state_at(&app(), 8).await.unwrap()), json!({"n": 9}));
    }
}

#[tokio::test]
async fn what_is_no_json_is_passed_over_and_what_comes_after_it_is_recorded() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        service.write_app_state("shop", json!({"n": 1})).await.unwrap();
        for state in [r#"{"app:n": NaN}"#, "[1]", "", "1", "{"] {
            sql(&path, &format!("UPDATE app_states SET state = '{state}'"));
        }
        sql(&path, r#"UPDATE app_states SET state = '{"app:n": 2}'"#);
        assert_eq!(json!(service.app_state("shop").await.unwrap()), json!({"n": 2}));
        sql(&path, r#"UPDATE app_states SET state = '{"n": 3}'"#);
        let change = newest(&service, &app()).await;
        assert_eq!((change.version, json!(change.undo)), (8, json!({"before": {"n": 2}})));
        assert_eq!(json!(service.scope_state_at(&app(), 7).await.unwrap()), json!({"n": 2}));
        let refused = service.scope_state_at(&app(), 6).await.unwrap_err();
        assert!(matches!(refused, SessionError::NotInScopeHistory { oldest: Some(7), .. }), "{refused}");
    }
}

#[tokio::test]
async fn an_event_of_the_same_transaction_names_the_writer() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        service
            .create(CreateSession::new("shop", "ada").with_id("s").with_state(json!({"user:points": 5})))
            .await
            .unwrap();
        let time = time(&path);
        let event = |id: &str, delta: &str| {
            format!(
                "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
                 VALUES ('{id}', 'shop', 'ada', 's', 'i', {time},
                     '{{\"author\": \"python\", \"actions\": {{\"state_delta\": {delta}}}}}');"
            )
        };
        let named = event("e1", r#"{"user:points": 1000, "other": 1}"#);
        sql(&path, &format!("BEGIN; UPDATE user_states SET state = '{{\"points\": 1000}}'; {named} COMMIT"));
        let expected =
            json!({"external": "", "user": "ada", "session": "s", "event": "e1", "author": "python"});
        assert_eq!(json!(newest(&service, &user()).await.by), expected);
        // The next event does not name the writer, nor does one with another delta.
        sql(&path, &event("e2", r#"{"user:points": 1000}"#));
        assert_eq!(json!(newest(&service, &user()).await.by), expected);
        let other = event("e3", r#"{"user:name": 1}"#);
        sql(&path, &format!("BEGIN; UPDATE user_states SET state = '{{\"points\": 7}}'; {other} COMMIT"));
        assert_eq!(json!(newest(&service, &user()).await.by), json!({"external": ""}));
        assert_eq!(stored(&service, "s").await.version(), 3);
    }
}

#[tokio::test]
async fn states_of_random_histories_with_other_writers_are_computed_backwards() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        let time = time(&path);
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
        connection.execute_batch("PRAGMA synchronous = OFF").unwrap();
        histories::are_computed_backwards(&service, 400, async |user, write| {
            // As google-adk spells JSON, and as others do.
            let text = |state: &Value| match user.len() % 2 {
                0 => state.to_string().replace("ключ", "\\u043a\\u043b\\u044e\\u0447"),
                _ => state.to_string(),
            };
            let (statement, state) = match &write {
                ForeignWrite::Merge(state) => (
                    format!(
                        "INSERT INTO user_states (app_name, user_id, state, update_time) VALUES ('shop', ?1, ?2, {time})
                         ON CONFLICT (app_name, user_id) DO UPDATE SET state = (
                             SELECT json_group_object(key, json(content)) FROM (
                                 SELECT key, CASE WHEN type IN ('object', 'array') THEN value
                                     WHEN type IN ('true', 'false', 'null') THEN type ELSE json_quote(value) END AS content
                                   FROM json_each(user_states.state)
                                  WHERE key NOT IN (SELECT key FROM json_each(excluded.state))
                                 UNION ALL
                                 SELECT key, CASE WHEN type IN ('object', 'array') THEN value
                                     WHEN type IN ('true', 'false', 'null') THEN type ELSE json_quote(value) END
                                   FROM json_each(excluded.state)))"
                    ),
                    Some(text(state)),
                ),
                ForeignWrite::Replace(state) => (
                    "UPDATE user_states SET state = ?2 WHERE app_name = 'shop' AND user_id = ?1".to_owned(),
                    Some(text(state)),
                ),
                ForeignWrite::Delete => {
                    ("DELETE FROM user_states WHERE app_name = 'shop' AND user_id = ?1 AND ?2 IS NULL".to_owned(), None)
                }
            };
            connection.execute(&statement, rusqlite::params![user, state]).unwrap();
        })
        .await;
    }
}
