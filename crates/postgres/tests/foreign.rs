//! The history of what other programs write, and keys that they write with their prefix.

#[path = "support/partitioned.rs"]
mod partitioned;
mod support;

use serde_json::{Value, json};
use sessile_conformance::histories::{self, ForeignWrite};
use sessile_session::{
    ChangeWindow, ChangedBy, CreateSession, Event, EventActions, HistoryPage, ScopeChange, ScopeKey,
    SessionKey, SessionService,
};
use support::{connect, new_schema, sql};
use tokio_postgres::NoTls;

fn user() -> ScopeKey {
    ScopeKey::User("shop".to_owned(), "ada".to_owned())
}

fn app() -> ScopeKey {
    ScopeKey::App("shop".to_owned())
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("shop", "ada", id).expect("a valid key")
}

fn setting(delta: Value) -> Event {
    Event::new("agent").with_actions(EventActions::from_delta(delta))
}

async fn newest(service: &SessionService, scope: &ScopeKey) -> ScopeChange {
    let changes =
        service.store().scope_changes(scope, ChangeWindow::newest(1)).await.expect("the history is read");
    changes.into_iter().next().expect("there is a change")
}

/// The change as JSON, without its time and its writer.
fn without_time_and_writer(change: &ScopeChange) -> Value {
    let mut json = serde_json::to_value(change).expect("a change is JSON");
    json.as_object_mut().expect("a change is an object").retain(|name, _| name != "time" && name != "by");
    json
}

#[tokio::test]
async fn a_key_that_is_written_with_its_prefix_is_folded_over_the_one_that_is_there() {
    let url = new_schema().await;
    let service = SessionService::new(connect(&url).await);
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    service.write_app_state("shop", json!({"version": "0.9", "keep": 1.5})).await.unwrap();
    // The statement of a team that seeds its application by SQL, with the prefixes that it sees in
    // code.
    let upsert = async |state: &str| {
        let statement = format!(
            "INSERT INTO app_states (app_name, state, update_time) VALUES ('shop', '{state}'::jsonb, now())
             ON CONFLICT (app_name) DO UPDATE SET state = app_states.state || EXCLUDED.state, update_time = now()"
        );
        sql(&url, &statement).await;
    };
    upsert(r#"{"app:version": "1.0.0", "app:tax_rate": 0.08}"#).await;
    let expected = json!({"keep": 1.5, "tax_rate": 0.08, "version": "1.0.0"});
    assert_eq!(json!(service.app_state("shop").await.unwrap()), expected);
    assert_eq!(json!(*service.store().scope_state(&app()).await.unwrap().state), expected, "as it is stored");
    let change = newest(&service, &app()).await;
    assert_eq!(
        without_time_and_writer(&change),
        json!({
            "version": 2, "change": {"set": {"version": "1.0.0", "tax_rate": 0.08}},
            "undo": {"before": {"version": "0.9"}},
        })
    );
    assert!(
        matches!(&change.by, ChangedBy::External { external, event: None, .. } if external.starts_with("postgres"))
    );
    upsert(r#"{"version": "1.1.0"}"#).await;
    sql(&url, r#"UPDATE app_states SET state = state || '{"app:tax_rate": 0.1}'"#).await;
    service.append_to(&key("s"), setting(json!({"app:keep": 2}))).await.unwrap();
    assert_eq!(
        json!(service.app_state("shop").await.unwrap()),
        json!({"keep": 2, "tax_rate": 0.1, "version": "1.1.0"})
    );
    assert_eq!(
        json!(service.scope_state_at(&app(), 1).await.unwrap()),
        json!({"version": "0.9", "keep": 1.5})
    );
    sql(&url, "DELETE FROM app_states").await;
    upsert(r#"{"app:a": 123456789012345678901234567890, "b": 1.50}"#).await;
    let stored = service.store().scope_state(&app()).await.unwrap();
    assert_eq!(stored.version, 7);
    assert_eq!(
        serde_json::to_string(&*stored.state).unwrap(),
        r#"{"a":123456789012345678901234567890,"b":1.5}"#
    );
}

#[tokio::test]
async fn plain_sql_is_recorded_as_the_difference_and_sessiles_own_writes_once() {
    let url = new_schema().await;
    let service = SessionService::new(connect(&url).await);
    let new = CreateSession::new("shop", "ada").with_id("s").with_state(json!({"user:points": 5}));
    service.create(new).await.unwrap();
    sql(&url, "UPDATE user_states SET state = jsonb_set(state, '{points}', '1000')").await;
    let change = newest(&service, &user()).await;
    assert!(change.time > 1.6e9);
    assert_eq!(
        without_time_and_writer(&change),
        json!({"version": 2, "change": {"set": {"points": 1000}}, "undo": {"before": {"points": 5}}})
    );
    service.append_to(&key("s"), setting(json!({"user:points": 1}))).await.unwrap();
    service.write_user_state("shop", "ada", json!({"points": 2})).await.unwrap();
    sql(
        &url,
        "UPDATE user_states SET state = '{}'; UPDATE user_states SET state = '{}', update_time = now()",
    )
    .await;
    let history = service.scope_history(&user(), Some("points"), HistoryPage::default()).await.unwrap();
    let external = |change: &ScopeChange| matches!(change.by, ChangedBy::External { .. });
    let found: Vec<_> = history.changes.iter().map(|change| (change.version, external(change))).collect();
    assert_eq!(found, [(5, true), (4, false), (3, false), (2, true), (1, false)]);
    for (version, points) in [(1, 5), (2, 1000), (3, 1), (4, 2)] {
        assert_eq!(json!(service.scope_state_at(&user(), version).await.unwrap()), json!({"points": points}));
    }
    // A state that is not an object is left as it is; the history records only that it was written.
    sql(&url, "UPDATE user_states SET state = '[1]'").await;
    sql(&url, r#"UPDATE user_states SET state = '{"user:points": 3}'"#).await;
    let change = newest(&service, &user()).await;
    assert_eq!(
        (change.version, change.undo.unknown, json!(change.change)),
        (7, true, json!({"set": {"points": 3}}))
    );
}

#[tokio::test]
async fn a_role_without_rights_on_our_tables_is_recorded_by_name() {
    let url = new_schema().await;
    let service = SessionService::new(connect(&url).await);
    service.write_app_state("shop", json!({"x": 0})).await.unwrap();
    let schema = url.rsplit("%3D").next().unwrap().to_owned();
    let role = format!("foreign_{schema}");
    sql(
        &url,
        &format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON sessions, events, app_states, user_states TO {role};"
        ),
    )
    .await;
    // With a search path on which none of our tables and functions are.
    let theirs = url.replace("postgres@", &format!("{role}@")).split("options=").next().unwrap().to_owned()
        + "application_name=psql";
    sql(
        &theirs,
        &format!(
            r#"UPDATE {schema}.app_states SET state = '{{"app:x": 1}}';
               INSERT INTO {schema}.user_states VALUES ('shop', 'eve', '{{"user:u": 1}}', now());
               DELETE FROM {schema}.user_states"#
        ),
    )
    .await;
    sql(&url, &format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
    assert_eq!(json!(service.app_state("shop").await.unwrap()), json!({"x": 1}));
    let ChangedBy::External { external, .. } = newest(&service, &app()).await.by else {
        panic!("another writer")
    };
    assert_eq!(external, format!("{role} with psql"));
    let eve = ScopeKey::User("shop".to_owned(), "eve".to_owned());
    let change = newest(&service, &eve).await;
    assert_eq!((change.version, json!(change.change)), (2, json!({"remove": ["u"]})));
}

#[tokio::test]
async fn an_event_of_the_same_transaction_names_the_writer() {
    let url = new_schema().await;
    let service = SessionService::new(connect(&url).await);
    let new = CreateSession::new("shop", "ada").with_id("s").with_state(json!({"user:points": 5}));
    service.create(new).await.unwrap();
    let event = |id: &str, delta: &str| {
        format!(
            "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
             VALUES ('{id}', 'shop', 'ada', 's', 'i', now(),
                 '{{\"author\": \"python\", \"actions\": {{\"state_delta\": {delta}}}}}');"
        )
    };
    let named = event("e1", r#"{"user:points": 1000, "app:best": 1000, "other": 1}"#);
    sql(
        &url,
        &format!(
            "BEGIN; UPDATE app_states SET state = '{{\"best\": 1000}}';
             UPDATE user_states SET state = '{{\"points\": 1000}}'; {named} COMMIT"
        ),
    )
    .await;
    for scope in [user(), app()] {
        let by = json!(newest(&service, &scope).await.by);
        assert_eq!(
            (&by["user"], &by["session"], &by["event"], &by["author"]),
            (&json!("ada"), &json!("s"), &json!("e1"), &json!("python"))
        );
        assert!(by["external"].is_string());
    }
    // An event of another transaction does not name the writer, nor does one with another delta.
    sql(&url, &event("e2", r#"{"user:points": 1000}"#)).await;
    assert_eq!(json!(newest(&service, &user()).await.by)["event"], "e1");
    sql(&url, "UPDATE user_states SET state = '{\"points\": 7}'").await;
    sql(&url, &event("e3", r#"{"user:points": 7}"#)).await;
    assert_eq!(json!(newest(&service, &user()).await.by)["event"], Value::Null);
    let other = event("e4", r#"{"user:name": 1}"#);
    sql(&url, &format!("BEGIN; UPDATE user_states SET state = '{{\"points\": 8}}'; {other} COMMIT")).await;
    assert_eq!(json!(newest(&service, &user()).await.by)["event"], Value::Null);
}

#[tokio::test]
async fn states_of_random_histories_with_other_writers_are_computed_backwards() {
    for is_partitioned in [false, true] {
        let url = match is_partitioned {
            false => new_schema().await,
            true => partitioned::new_partitioned_schema().await,
        };
        let service = SessionService::new(connect(&url).await);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        histories::are_computed_backwards(&service, 100, async |user, write| {
            let (statement, state) = match &write {
                ForeignWrite::Merge(state) => (
                    "INSERT INTO user_states (app_name, user_id, state, update_time)
                     VALUES ('shop', $1, $2::text::jsonb, now())
                     ON CONFLICT (app_name, user_id) DO UPDATE SET state = user_states.state || EXCLUDED.state",
                    Some(state.to_string()),
                ),
                ForeignWrite::Replace(state) => (
                    "UPDATE user_states SET state = $2::text::jsonb WHERE app_name = 'shop' AND user_id = $1",
                    Some(state.to_string()),
                ),
                ForeignWrite::Delete => {
                    ("DELETE FROM user_states WHERE app_name = 'shop' AND user_id = $1 AND $2::text IS NULL", None)
                }
            };
            client.execute(statement, &[&user, &state]).await.unwrap();
        })
        .await;
        drop(client);
        connection.await.unwrap().unwrap();
    }
}
