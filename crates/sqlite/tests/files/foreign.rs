//! What other programs write into the file, with the statements of google-adk.

use std::path::Path;

use serde_json::{Value, json};
use sessile_conformance::tables;
use sessile_session::{
    Append, ChangeWindow, CreateSession, EventWindow, ListSessions, OnConflict, ScopeKey, SessionError,
};

use crate::support::{new_file, new_v1_file, sql};
use crate::{key, service, setting, stored, value};

#[tokio::test]
async fn what_others_write_gets_its_place() {
    let path = new_file();
    let service = service(&path).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let mut stale = stored(&service, "s").await;
    sql(
        &path,
        r#"INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time) VALUES ('shop', 'ada', 'theirs', '{"a": 1}', 5, 5);
           INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
           VALUES ('z', 'shop', 'ada', 's', 'i', 9, '{"author": "python", "timestamp": 9}'),
                  ('a', 'shop', 'ada', 's', 'i', 9, '{"author": "python", "timestamp": 9}');
           INSERT INTO app_states (app_name, state, update_time) VALUES ('shop', '{"x": 1, "app:y": 2}', 5);"#,
    );
    let read = stored(&service, "s").await;
    assert_eq!(
        read.events().iter().map(|e| (e.version, e.id.as_str())).collect::<Vec<_>>(),
        [(1, "z"), (2, "a")]
    );
    assert_eq!(read.version(), 2);
    assert_eq!(
        Value::from(read.state().to_map()),
        json!({"app:x": 1, "app:y": 2}),
        "a prefix in the row is not doubled"
    );
    assert!(matches!(
        service.append(&mut stale, setting(json!({"a": 1}))).await,
        Err(SessionError::Conflict { .. })
    ));
    assert_eq!(
        serde_json::to_value(service.state_at(&key("theirs"), 0).await.unwrap()).unwrap(),
        json!({"a": 1})
    );
}

#[tokio::test]
async fn a_key_stored_with_its_prefix_is_the_same_key_when_it_is_read_set_or_removed() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        let write = async {
            sql(
                &path,
                r#"UPDATE app_states SET state = '{"app:y": 2, "app:z": 1, "z": 3, "keep": 1.0, "user:k": 9}';
                   UPDATE user_states SET state = '{"user:u": 1, "user:v": 2}';"#,
            );
        };
        tables::keys_stored_with_their_prefix(&service, write).await;
        let state: String = value(&path, "SELECT state FROM app_states");
        assert_eq!(serde_json::from_str::<Value>(&state).unwrap(), json!({"y": 5, "keep": 1.0, "user:k": 9}));
    }
}

#[tokio::test]
async fn events_from_before_keep_the_order_of_google_adk() {
    let path = new_v1_file();
    sql(
        &path,
        r#"INSERT INTO sessions VALUES ('shop', 'ada', 's', '{"late": 1}', '2026-01-01 00:00:00.000000', '2026-01-01 00:00:00.000000');
           INSERT INTO events VALUES
             ('c', 'shop', 'ada', 's', 'i', '2026-01-01 00:00:02.000000', '{"actions": {"state_delta": {"late": 1}}}'),
             ('b', 'shop', 'ada', 's', 'i', '2026-01-01 00:00:01.000000', '{}'),
             ('a', 'shop', 'ada', 's', 'i', '2026-01-01 00:00:01.000000', NULL);"#,
    );
    let service = service(&path).await;
    let read = stored(&service, "s").await;
    assert_eq!(read.events().iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(read.events()[0].timestamp, Some(1_767_225_601.0));
    assert_eq!(read.version(), 3);
    assert!(service.state_at(&key("s"), 2).await.unwrap().is_empty());
    assert_eq!(service.append_to(&key("s"), setting(json!({"a": 1}))).await.unwrap(), Some(4));
}

#[tokio::test]
async fn ids_that_only_google_adk_takes_do_not_hide_other_sessions() {
    let path = new_file();
    let service = service(&path).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    sql(
        &path,
        "INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time)
         VALUES ('shop', 'ada', '', '{}', 1, 1), ('shop', 'ada', ' pad ', '{}', 2, 2)",
    );
    let all =
        service.list(&ListSessions { app: "shop".to_owned(), ..ListSessions::default() }).await.unwrap();
    assert_eq!(all.sessions.iter().map(|session| session.key().id()).collect::<Vec<_>>(), ["", " pad ", "s"]);
    for session in &all.sessions[..2] {
        let read = service.get(session.key(), EventWindow::ALL).await.unwrap().unwrap();
        assert_eq!(read.key(), session.key());
        assert!(service.delete(session.key()).await.unwrap());
    }
}

#[tokio::test]
async fn untouched_values_are_not_rewritten() {
    let path = new_file();
    let service = service(&path).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let odd = r#"{"odd": [1.50, 1e2, 123456789012345678901234567890, "é"], "b": 1}"#;
    sql(&path, &format!("UPDATE sessions SET state = '{odd}'"));
    service.append_to(&key("s"), setting(json!({"b": 2}))).await.unwrap();
    let state: String = value(&path, "SELECT state FROM sessions");
    assert!(state.contains(r#"[1.50, 1e2, 123456789012345678901234567890, "é"]"#), "{state}");
}

/// A time, as the layout of the file has it.
fn time(path: &Path) -> &'static str {
    let kind: String =
        value(path, "SELECT type FROM pragma_table_info('sessions') WHERE name = 'create_time'");
    if kind == "REAL" { "5.0" } else { "'2026-01-01 00:00:00.000000'" }
}

/// Inserts a session as google-adk does.
fn insert_session(path: &Path, id: &str, state: &str) {
    let time = time(path);
    let columns = "app_name, user_id, id, state, create_time, update_time";
    sql(
        path,
        &format!(
            "INSERT INTO sessions ({columns}) VALUES ('shop', 'ada', '{id}', '{state}', {time}, {time})"
        ),
    );
}

/// Inserts an event as google-adk does.
fn insert_event(path: &Path, session: &str, id: &str, data: &str) {
    let time = time(path);
    let columns = "id, app_name, user_id, session_id, invocation_id, timestamp, event_data";
    sql(
        path,
        &format!(
            "INSERT INTO events ({columns}) VALUES ('{id}', 'shop', 'ada', '{session}', 'i', {time}, {data})"
        ),
    );
}

/// Inserts or changes shared state as google-adk does.
fn write_shared(path: &Path, state: &str) {
    let time = time(path);
    sql(
        path,
        &format!(
            "INSERT INTO app_states (app_name, state, update_time) VALUES ('shop', '{state}', {time})
             ON CONFLICT (app_name) DO UPDATE SET state = excluded.state, update_time = excluded.update_time;
             INSERT INTO user_states (app_name, user_id, state, update_time) VALUES ('shop', 'ada', '{state}', {time})
             ON CONFLICT (app_name, user_id) DO UPDATE SET state = excluded.state, update_time = excluded.update_time;"
        ),
    );
}

#[tokio::test]
async fn a_session_of_others_gets_its_incarnation_version_and_size() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        let data = r#"{"author": "python", "content": {"parts": [{"text": "é€😀"}]}}"#;
        for id in ["one", "two"] {
            insert_session(&path, id, "{}");
        }
        insert_event(&path, "one", "e1", &format!("'{data}'"));
        insert_event(&path, "one", "e2", "'{}'");
        let (one, two) = (stored(&service, "one").await, stored(&service, "two").await);
        assert_ne!((one.incarnation().0, two.incarnation().0), (0, 0));
        assert_ne!(one.incarnation(), two.incarnation());
        assert_eq!((one.version(), two.version()), (2, 0));
        let size =
            |id: &str| value::<i64>(&path, &format!("SELECT sessile_bytes FROM sessions WHERE id = '{id}'"));
        assert_eq!((size("one"), size("two")), (data.len() as i64 + 2, 0));

        service.append_to(&key("one"), setting(json!({"a": 1}))).await.unwrap();
        let all: i64 =
            value(&path, "SELECT sum(octet_length(event_data)) FROM events WHERE session_id = 'one'");
        assert_eq!(size("one"), all, "Sessile goes on counting");
    }
}

#[tokio::test]
async fn a_session_that_others_made_again_is_another_one() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        let mut session = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        // As a program does that leaves foreign keys off: the events stay.
        service.append(&mut session, setting(json!({"a": 1}))).await.unwrap();
        sql(&path, "PRAGMA foreign_keys = OFF; DELETE FROM sessions WHERE id = 's'");
        insert_session(&path, "s", "{}");
        let merged = service.append_with(&mut session, setting(json!({"a": 2})), OnConflict::Merge).await;
        assert!(matches!(merged, Err(SessionError::Replaced { .. })), "{merged:?}");

        insert_event(&path, "s", "theirs", "'{}'");
        let ours = service.append_to(&key("s"), setting(json!({"a": 3}))).await.unwrap();
        let read = stored(&service, "s").await;
        assert_eq!((read.version(), ours), (3, Some(3)), "it goes on after the event that was left over");
        assert!(read.events().iter().map(|event| event.version).eq(1..=3));
        assert!(service.delete(&key("s")).await.unwrap());
        assert_eq!(value::<i64>(&path, "SELECT count(*) FROM events"), 0);
    }
}

#[tokio::test]
async fn events_that_a_foreign_delete_left_over_are_not_those_of_a_new_session() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        let mut session = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        service.append(&mut session, setting(json!({"a": 1}))).await.unwrap();
        sql(&path, "PRAGMA foreign_keys = OFF; DELETE FROM sessions WHERE id = 's'");
        let again = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        assert_ne!(again.incarnation(), session.incarnation());
        assert_eq!(service.append_to(&key("s"), setting(json!({"a": 1}))).await.unwrap(), Some(1));
        assert_eq!(stored(&service, "s").await.events().len(), 1);
    }
}

#[tokio::test]
async fn triggers_never_fail_a_foreign_writer() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        // What google-adk stores for NaN is not JSON; in its second layout an event may have no
        // data.
        insert_session(&path, "nan", r#"{"a": NaN}"#);
        insert_event(&path, "nan", "e1", r#"'{"actions": {"state_delta": {"a": NaN}}}'"#);
        if time(&path) != "5.0" {
            insert_event(&path, "nan", "e2", "NULL");
        }
        assert_eq!(value::<i64>(&path, "SELECT count(*) FROM sessions WHERE sessile_bytes IS NULL"), 0);
        write_shared(&path, r#"{"x": NaN}"#);
        write_shared(&path, r#"{"x": Infinity}"#);
        sql(&path, "PRAGMA foreign_keys = OFF; DELETE FROM sessions");
        insert_session(&path, "nan", "{}");
        insert_event(&path, "nan", "e3", "'{}'");
        let time = time(&path);
        sql(
            &path,
            &format!(
                "PRAGMA foreign_keys = OFF;
                 INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
                 VALUES ('e1', 'shop', 'ada', 'no session', 'i', {time}, '{{}}')"
            ),
        );
        sql(&path, "DELETE FROM app_states; DELETE FROM user_states");
        write_shared(&path, r#"{"x": 1}"#);
        sql(
            &path,
            &format!(
                "PRAGMA recursive_triggers = ON;
                 INSERT OR REPLACE INTO app_states (app_name, state, update_time) VALUES ('shop', '{{}}', {time});
                 INSERT OR REPLACE INTO user_states (app_name, user_id, state, update_time)
                 VALUES ('shop', 'ada', '{{}}', {time});
                 INSERT OR REPLACE INTO sessions (app_name, user_id, id, state, create_time, update_time)
                 VALUES ('shop', 'ada', 'nan', '{{}}', {time}, {time});"
            ),
        );
        // What is written afterwards by either is there.
        service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        service.append_to(&key("s"), setting(json!({"app:y": 2, "user:y": 2}))).await.unwrap();
        assert_eq!(
            Value::from(stored(&service, "s").await.state().to_map()),
            json!({"app:y": 2, "user:y": 2})
        );
    }
}

#[tokio::test]
async fn what_others_wrote_that_is_no_json_refuses_a_change_by_name() {
    let path = new_file();
    let service = service(&path).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    write_shared(&path, r#"{"x": NaN}"#);
    let refused = service.append_to(&key("s"), setting(json!({"user:y": 1}))).await.unwrap_err().to_string();
    assert!(refused.contains("column state of table user_states, row shop/ada"), "{refused}");
    assert_eq!(service.append_to(&key("s"), setting(json!({"own": 1}))).await.unwrap(), Some(1));

    // Valid JSON that cannot be represented as a value: a commit whose answer needs it is refused
    // before anything is written.
    write_shared(&path, r#"{"x": "\ud800"}"#);
    let user = ScopeKey::User("shop".to_owned(), "ada".to_owned());
    let refused = service.write_user_state("shop", "ada", json!({"y": 1})).await.unwrap_err().to_string();
    assert!(refused.contains("column state of table user_states, row shop/ada"), "{refused}");
    // The history records that it was written, but not what: neither state can be represented.
    let changes = service.store().scope_changes(&user, ChangeWindow::newest(9)).await.unwrap();
    let recorded =
        changes.iter().map(|change| (change.version, change.change.is_empty(), change.undo.unknown));
    assert_eq!(recorded.collect::<Vec<_>>(), [(2, true, true), (1, true, true)]);
    let patch = service.change(&key("s"), Append::new(setting(json!({"own": 2}))), EventWindow::NONE).await;
    assert!(matches!(patch, Err(SessionError::Corrupt { .. })), "{patch:?}");
    assert_eq!(service.append_to(&key("s"), setting(json!({"user:y": 1}))).await.unwrap(), Some(2));
    let state: String = value(&path, "SELECT state FROM user_states");
    assert_eq!(state, r#"{"x":"\ud800","y":1}"#, "what is not touched stays as it was");
}

#[tokio::test]
async fn the_version_of_shared_state_never_goes_back() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        let scopes = [ScopeKey::App("shop".to_owned()), ScopeKey::User("shop".to_owned(), "ada".to_owned())];
        let mut last = [0, 0];
        let mut rises = async |what: &str| {
            for (scope, last) in scopes.iter().zip(&mut last) {
                let version = service.scope_state(scope).await.unwrap().version;
                assert!(version > *last, "{what}: {version} after {last} in {scope}");
                *last = version;
                let session = stored(&service, "s").await;
                let seen = session.versions();
                let seen = if matches!(scope, ScopeKey::App(_)) { seen.app } else { seen.user };
                assert_eq!(seen, Some(version), "{what}");
            }
        };
        write_shared(&path, r#"{"a": 1}"#);
        rises("others insert").await;
        write_shared(&path, r#"{"a": 2}"#);
        rises("others update").await;
        for n in 0..3 {
            service.append_to(&key("s"), setting(json!({"app:n": n, "user:n": n}))).await.unwrap();
        }
        rises("Sessile changes").await;
        sql(&path, "DELETE FROM app_states; DELETE FROM user_states");
        rises("others delete").await;
        write_shared(&path, r#"{"a": 3}"#);
        rises("others insert again").await;
        sql(&path, "DELETE FROM app_states; DELETE FROM user_states");
        service.append_to(&key("s"), setting(json!({"app:n": 4, "user:n": 4}))).await.unwrap();
        rises("Sessile inserts again").await;
    }
}

#[tokio::test]
async fn the_empty_rows_of_a_session_that_others_create_are_no_change() {
    let path = new_v1_file();
    let service = service(&path).await;
    write_shared(&path, "{}");
    insert_session(&path, "s", "{}");
    let session = stored(&service, "s").await;
    assert_eq!((session.versions().app, session.versions().user), (Some(0), Some(0)));
}

#[tokio::test]
async fn without_the_foreign_key_events_go_with_their_session_all_the_same() {
    let path = new_v1_file();
    // As @google/adk for TypeScript leaves the table.
    sql(
        &path,
        "DROP TABLE events;
         CREATE TABLE events (
             id VARCHAR(128) NOT NULL, app_name VARCHAR(128) NOT NULL, user_id VARCHAR(128) NOT NULL,
             session_id VARCHAR(128) NOT NULL, invocation_id VARCHAR(256) NOT NULL, timestamp DATETIME NOT NULL,
             event_data TEXT, PRIMARY KEY (id, app_name, user_id, session_id)
         );",
    );
    let service = service(&path).await;
    for id in ["s", "other"] {
        service.create(CreateSession::new("shop", "ada").with_id(id)).await.unwrap();
        service.append_to(&key(id), setting(json!({"a": 1}))).await.unwrap();
    }
    assert!(service.delete(&key("s")).await.unwrap());
    let left: String = value(&path, "SELECT group_concat(session_id) FROM events");
    assert_eq!(left, "other");
}
