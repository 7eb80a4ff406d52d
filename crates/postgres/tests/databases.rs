//! Databases in every condition: used before, foreign, newer, corrupt, unreachable.

mod support;

use serde_json::{Value, json};
use sessile_conformance::tables;
use sessile_postgres::{PostgresOptions, PostgresSchema, PostgresStore};
use sessile_session::{
    ChangeWindow, CreateSession, Event, EventActions, EventWindow, ScopeKey, Session, SessionError,
    SessionKey, SessionService,
};
use support::{connect, new_schema, server, sql};

async fn service(url: &str) -> SessionService {
    SessionService::new(connect(url).await)
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("shop", "ada", id).expect("a valid key")
}

fn setting(delta: Value) -> Event {
    let Value::Object(delta) = delta else { panic!("a delta is an object") };
    Event { actions: EventActions::from_delta(delta), ..Event::new("agent") }
}

async fn stored(service: &SessionService, id: &str) -> Session {
    let found = service.get(&key(id), EventWindow::ALL).await.expect("the session is read");
    found.expect("the session exists")
}

async fn refusal(url: &str) -> String {
    match PostgresStore::connect_url(url).await {
        Err(SessionError::Unusable { reason }) => reason,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("the database is used"),
    }
}

#[tokio::test]
async fn another_connection_sees_everything() {
    let url = new_schema().await;
    let first = service(&url).await;
    let new =
        CreateSession::new("shop", "ada").with_id("s").with_state([("a", json!(1)), ("app:x", json!(2))]);
    let mut session = first.create(new).await.unwrap();
    first.append(&mut session, setting(json!({"a": 2, "user:u": [1]}))).await.unwrap();
    drop(first);
    let second = service(&url).await;
    let read = stored(&second, "s").await;
    assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&session).unwrap());
    assert_eq!(serde_json::to_value(second.state_at(&key("s"), 0).await.unwrap()).unwrap(), json!({"a": 1}));
}

/// A database as an earlier version of Sessile left it, with a session that has two events.
async fn old_database(migration: u32) -> String {
    let url = new_schema().await;
    for (number, statements) in [
        (1, include_str!("../migrations/0001_adk.sql")),
        (1, include_str!("../migrations/0001_versions.sql")),
        (1, include_str!("../migrations/0001_functions.sql")),
        (3, include_str!("../migrations/0003_append.sql")),
        (4, include_str!("../migrations/0004_list.sql")),
        (5, include_str!("../migrations/0005_history.sql")),
        (5, include_str!("../migrations/0005_evaluate.sql")),
        (5, include_str!("../migrations/0005_write.sql")),
        (5, include_str!("../migrations/0005_commit.sql")),
        (6, include_str!("../migrations/0006_foreign.sql")),
        (6, include_str!("../migrations/0006_write.sql")),
        (7, include_str!("../migrations/0007_size.sql")),
    ] {
        if number <= migration {
            sql(&url, statements).await;
        }
    }
    let meta = format!(
        "CREATE TABLE sessile_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
         INSERT INTO sessile_meta VALUES ('migration', '{migration}')"
    );
    sql(&url, &meta).await;
    sql(
        &url,
        r#"INSERT INTO sessions VALUES ('shop', 'ada', 'old', '{"b": 2}', '2026-01-01', '2026-01-02', 2, '{"a": 1}');
           INSERT INTO app_states VALUES ('shop', '{"n": 5}', '2026-01-01', 7);
           INSERT INTO user_states VALUES ('shop', 'ada', '{}', '2026-01-01', 1);
           INSERT INTO events VALUES
               ('e1', 'shop', 'ada', 'old', 'i', '2026-01-01',
                '{"author": "x", "timestamp": 1767225600, "actions": {"state_delta": {"b": 2}}}', 1),
               ('e2', 'shop', 'ada', 'old', 'i', '2026-01-02',
                '{"author": "x", "timestamp": 1767312000, "actions": {"state_delta": {"a": null}},
                  "custom_metadata": {"sessile:removed": ["a"]}}', 2);"#,
    )
    .await;
    url
}

#[tokio::test]
async fn a_database_of_any_earlier_migration_is_brought_up_to_date() {
    for migration in 1..=7 {
        let url = old_database(migration).await;
        let service = service(&url).await;
        let mut session = stored(&service, "old").await;
        assert_eq!(session.version(), 2);
        assert_eq!(session.incarnation().0 == 0, migration < 5, "what was there has no incarnation");
        assert_eq!(service.state_at(&key("old"), 1).await.unwrap().len(), 2);
        let own = service.state_at(&key("old"), 2).await.unwrap();
        assert_eq!(json!(own), json!({"b": 2}), "an old removal is still one");

        let mut delta = sessile_state::Delta::new();
        delta.add("app:n", 1);
        let event = Event::new("agent").with_actions(EventActions::from_delta(delta)).with_timestamp(2.5e11);
        service.append(&mut session, event.clone()).await.unwrap();
        let before = session.last_update_time();
        service.append(&mut session, event).await.unwrap();
        assert!(session.last_update_time() > before, "a changed session has a changed time in every year");
        assert_eq!(stored(&service, "old").await.state().get::<u64>("app:n"), Some(7));
        let changes = service
            .store()
            .scope_changes(&ScopeKey::App("shop".to_owned()), ChangeWindow::newest(10))
            .await
            .unwrap();
        assert_eq!(
            changes.iter().map(|change| change.version).collect::<Vec<_>>(),
            [9, 8],
            "its version goes on"
        );

        let schema = PostgresSchema::of(&PostgresOptions::from_url(&url).unwrap()).await.unwrap();
        assert_eq!(schema.migration, schema.latest);
        drop(connect(&url).await); // and again, there is nothing left to do
        let new = service.create(CreateSession::new("shop", "ada")).await.unwrap();
        assert_ne!(new.incarnation().0, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_is_migrated_while_others_write_to_it() {
    for migration in [4, 5, 7] {
        let url = old_database(migration).await;
        // As google-adk writes: sessions first, then shared state, then the event, in one
        // transaction.
        let writers: Vec<_> = (0..3)
        .map(|writer| {
            let url = url.clone();
            tokio::spawn(async move {
                for n in 0..40 {
                    sql(
                        &url,
                        &format!(
                            "BEGIN;
                             UPDATE sessions SET update_time = now() WHERE id = 'old';
                             UPDATE app_states SET state = state || '{{\"w{writer}\": {n}}}' WHERE app_name = 'shop';
                             INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
                             VALUES ('w{writer}-{n}', 'shop', 'ada', 'old', 'i', now(), '{{}}');
                             COMMIT"
                        ),
                    )
                    .await;
                }
            })
        })
        .collect();
        let starts: Vec<_> = (0..4)
            .map(|_| {
                let url = url.clone();
                tokio::spawn(async move { PostgresStore::connect_url(&url).await.map(drop) })
            })
            .collect();
        for start in starts {
            start.await.unwrap().unwrap();
        }
        for writer in writers {
            writer.await.unwrap();
        }
        let service = service(&url).await;
        let read = stored(&service, "old").await;
        assert_eq!((read.version(), read.events().len()), (122, 122));
        let versions: Vec<u64> = read.events().iter().map(|event| event.version).collect();
        assert_eq!(versions, (1..=122).collect::<Vec<_>>());
        for writer in 0..3 {
            assert_eq!(read.state().get::<u64>(&format!("app:w{writer}")), Some(39));
        }
        // Everything that was written since the migration is in the history, without a gap.
        sql(&url, "UPDATE app_states SET state = state || '{\"app:w0\": 40}'").await;
        let app = ScopeKey::App("shop".to_owned());
        let newest = service.scope_state(&app).await.unwrap().version;
        let history = service.store().scope_changes(&app, ChangeWindow::ALL).await.unwrap();
        let versions: Vec<u64> = history.iter().map(|change| change.version).collect();
        let oldest = *versions.last().expect("there is a history");
        assert_eq!(versions, (oldest..=newest).rev().collect::<Vec<_>>());
        assert_eq!(service.scope_state_at(&app, newest - 1).await.unwrap()["w0"].as_u64(), Some(39));
    }
}

#[tokio::test]
async fn a_role_without_rights_on_our_tables_writes_to_google_adks() {
    let url = new_schema().await;
    let service = service(&url).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let schema = url.rsplit("%3D").next().unwrap().to_owned();
    sql(
        &url,
        &format!(
            "CREATE ROLE foreign_{schema};
             GRANT USAGE ON SCHEMA {schema} TO foreign_{schema};
             GRANT SELECT, INSERT, UPDATE ON sessions, events, app_states, user_states TO foreign_{schema};
             SET ROLE foreign_{schema};
             INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time)
                 VALUES ('shop', 'eve', 'theirs', '{{}}', now(), now());
             INSERT INTO user_states (app_name, user_id, state, update_time) VALUES ('shop', 'eve', '{{}}', now());
             INSERT INTO app_states (app_name, state, update_time) VALUES ('other', '{{}}', now());
             INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
                 VALUES ('e', 'shop', 'eve', 'theirs', 'i', now(), '{{}}');
             UPDATE app_states SET state = '{{\"x\": 1}}' WHERE app_name = 'shop';
             RESET ROLE;
             DROP OWNED BY foreign_{schema};
             DROP ROLE foreign_{schema};"
        ),
    )
    .await;
    let read = service.get(&SessionKey::new("shop", "eve", "theirs").unwrap(), EventWindow::ALL).await;
    let read = read.unwrap().unwrap();
    assert_eq!((read.version(), read.state().get::<u32>("app:x")), (1, Some(1)));
    assert_ne!(read.incarnation().0, 0);
}

#[tokio::test]
async fn many_may_start_on_an_empty_database_at_once() {
    let url = new_schema().await;
    let starts: Vec<_> = (0..6)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { PostgresStore::connect_url(&url).await.map(drop) })
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let url = new_schema().await;
    drop(connect(&url).await);
    sql(&url, "UPDATE sessile_meta SET value = '99' WHERE key = 'migration'").await;
    assert!(refusal(&url).await.contains("newer Sessile (migration 99"));
}

#[tokio::test]
async fn old_and_foreign_tables_are_refused() {
    let url = new_schema().await;
    sql(&url, "CREATE TABLE sessions (create_time timestamp); CREATE TABLE events (id text, actions bytea)")
        .await;
    assert!(refusal(&url).await.contains("adk migrate session"));
    let url = new_schema().await;
    sql(&url, "CREATE TABLE sessions (token text)").await;
    assert!(refusal(&url).await.contains("not google-adk's"));
    let url = new_schema().await;
    drop(connect(&url).await);
    sql(&url, "UPDATE adk_internal_metadata SET value = '7'").await;
    assert!(refusal(&url).await.contains("schema version is not 1"));
}

#[tokio::test]
async fn what_others_write_gets_its_place() {
    let url = new_schema().await;
    let service = service(&url).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let mut stale = stored(&service, "s").await;
    sql(
        &url,
        r#"INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time)
           VALUES ('shop', 'ada', 'theirs', '{"a": 1}', '2026-01-01', '2026-01-01');
           INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
           VALUES ('z', 'shop', 'ada', 's', 'i', '2026-01-01', '{"author": "python"}');
           INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
           VALUES ('a', 'shop', 'ada', 's', 'i', '2026-01-01', NULL);
           UPDATE app_states SET state = '{"x": 1, "app:y": 2}';"#,
    )
    .await;
    let read = stored(&service, "s").await;
    assert_eq!(
        read.events().iter().map(|e| (e.version, e.id.as_str())).collect::<Vec<_>>(),
        [(1, "z"), (2, "a")]
    );
    assert_eq!((read.version(), read.events()[0].time()), (2, 1_767_225_600.0));
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
async fn a_corrupt_row_names_its_place_and_leaves_others_readable() {
    let url = new_schema().await;
    let service = service(&url).await;
    for id in ["good", "bad_state", "bad_event"] {
        service.create(CreateSession::new("shop", "ada").with_id(id)).await.unwrap();
        let event = Event { id: "e1".to_owned(), ..setting(json!({"a": 1})) };
        service.append_to(&key(id), event).await.unwrap();
    }
    for (app, user) in [("bad_app", "ada"), ("shop", "bad_user")] {
        service.create(CreateSession::new(app, user).with_id("s")).await.unwrap();
    }
    sql(
        &url,
        "UPDATE sessions SET state = '[1]' WHERE id = 'bad_state';
         UPDATE events SET event_data = '5' WHERE session_id = 'bad_event';
         UPDATE app_states SET state = '\"text\"' WHERE app_name = 'bad_app';
         UPDATE user_states SET state = 'null' WHERE user_id = 'bad_user';",
    )
    .await;
    let bad = |app: &str, user: &str, id: &str| SessionKey::new(app, user, id).unwrap();
    for (key, place) in [
        (key("bad_state"), "column state of table sessions, row shop/ada/bad_state"),
        (key("bad_event"), "column event_data of table events, row shop/ada/bad_event/e1"),
        (bad("bad_app", "ada", "s"), "column state of table app_states, row bad_app:"),
        (bad("shop", "bad_user", "s"), "column state of table user_states, row shop/bad_user:"),
    ] {
        let error = service.get(&key, EventWindow::ALL).await.unwrap_err();
        assert!(matches!(error, SessionError::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains(place), "{error}");
    }
    let error = service.app_state("bad_app").await.unwrap_err().to_string();
    assert!(error.contains("column state of table app_states, row bad_app:"), "{error}");
    let delta = sessile_state::Delta::from_iter([("x", json!(1))]);
    let new = CreateSession::new("bad_app", "ada").with_state([("app:x", json!(1))]);
    for (refused, place) in [
        (
            service.append_to(&key("bad_state"), setting(json!({"b": 1}))).await.map(drop),
            "sessions, row shop/ada/bad_state",
        ),
        (service.write_app_state("bad_app", &delta).await.map(drop), "app_states, row bad_app"),
        (
            service.write_user_state("shop", "bad_user", &delta).await.map(drop),
            "user_states, row shop/bad_user",
        ),
        (service.create(new).await.map(drop), "app_states, row bad_app"),
    ] {
        let error = refused.expect_err("nothing is written over what is corrupt");
        assert!(matches!(error, SessionError::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains(place), "{error}");
    }
    assert_eq!(service.append_to(&key("good"), setting(json!({"b": 1}))).await.unwrap(), Some(2));
    assert_eq!(stored(&service, "good").await.version(), 2);
}

#[tokio::test]
async fn ids_that_only_google_adk_takes_do_not_hide_other_sessions() {
    use sessile_session::ListSessions;
    let url = new_schema().await;
    let service = service(&url).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    sql(
        &url,
        "INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time)
         VALUES ('shop', 'ada', '', '{}', '2020-01-01', '2020-01-01'),
                ('shop', 'ada', ' pad ', '{}', '2020-01-02', '2020-01-02')",
    )
    .await;
    let all = ListSessions { app: "shop".to_owned(), ..ListSessions::default() };
    let all = service.list(&all).await.unwrap().sessions;
    assert_eq!(all.iter().map(|session| session.key().id()).collect::<Vec<_>>(), ["", " pad ", "s"]);
    for session in &all[..2] {
        let read = service.get(session.key(), EventWindow::ALL).await.unwrap().unwrap();
        assert_eq!(read.key(), session.key());
        assert!(service.delete(session.key()).await.unwrap());
    }
}

#[tokio::test]
async fn a_key_stored_with_its_prefix_is_the_same_key_when_it_is_read_set_or_removed() {
    let url = new_schema().await;
    let service = service(&url).await;
    let write = sql(
        &url,
        r#"UPDATE app_states SET state = '{"app:y": 2, "app:z": 1, "z": 3, "keep": 1.0, "user:k": 9}';
           UPDATE user_states SET state = '{"user:u": 1, "user:v": 2}';"#,
    );
    tables::keys_stored_with_their_prefix(&service, write).await;

    let odd = ["", " ", "a,b", "\"", "\\", "{}", "null", "é\n"];
    let twins = serde_json::Map::from_iter(odd.map(|name| (format!("user:{name}"), json!("twin"))));
    let twins = Value::from(twins).to_string().replace('\'', "''");
    sql(&url, &format!("UPDATE user_states SET state = '{twins}'")).await;
    assert_eq!(service.user_state("shop", "ada").await.unwrap().len(), odd.len());
    let mut delta = sessile_state::Delta::new();
    odd.iter().for_each(|name| delta.remove(*name));
    service.write_user_state("shop", "ada", &delta).await.unwrap();
    assert_eq!(json!(service.user_state("shop", "ada").await.unwrap()), json!({}));
}

#[tokio::test]
async fn a_lost_connection_loses_no_append() {
    let url = new_schema().await;
    let service = service(&format!("{url}&application_name=sessile_cut&pool_size=3")).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let cutter = tokio::spawn(async {
        for _ in 0..20 {
            sql(&server(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sessile_cut'").await;
            tokio::time::sleep(std::time::Duration::from_millis(15)).await;
        }
    });
    let mut done = 0;
    while !cutter.is_finished() {
        service.append_to(&key("s"), setting(json!({format!("k{done}"): done}))).await.unwrap();
        done += 1;
    }
    cutter.await.unwrap();
    let service = self::service(&url).await;
    let read = stored(&service, "s").await;
    assert_eq!((read.version(), read.state().keys().count() as u64), (done, done), "each once");
}

#[tokio::test]
async fn reads_survive_a_lost_connection() {
    use sessile_session::ListSessions;
    let url = new_schema().await;
    let service = service(&format!("{url}&application_name=sessile_cut_reads&pool_size=3")).await;
    let new = CreateSession::new("shop", "ada").with_id("s").with_state([("app:x", json!(1))]);
    service.create(new).await.unwrap();
    let cutter = tokio::spawn(async {
        for _ in 0..20 {
            sql(&server(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sessile_cut_reads'").await;
            tokio::time::sleep(std::time::Duration::from_millis(15)).await;
        }
    });
    let all = ListSessions { app: "shop".to_owned(), ..ListSessions::default() };
    while !cutter.is_finished() {
        assert_eq!(stored(&service, "s").await.version(), 0);
        assert_eq!(service.list(&all).await.unwrap().sessions.len(), 1);
        assert_eq!(service.app_state("shop").await.unwrap().len(), 1);
    }
    cutter.await.unwrap();
}

#[tokio::test]
async fn a_nul_is_refused_wherever_it_is() {
    let url = new_schema().await;
    let service = service(&url).await;
    let initial =
        CreateSession::new("shop", "ada").with_id("s").with_state([("k", json!({"deep": ["\u{0}"]}))]);
    assert!(
        matches!(service.create(initial).await, Err(SessionError::InvalidState { key, .. }) if key == "k")
    );
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let refused = service.append_to(&key("s"), setting(json!({"user:k": "\u{0}"}))).await;
    assert!(matches!(refused, Err(SessionError::InvalidState { key, .. }) if key == "user:k"));
    let event = Event::new("agent").with_content(sessile_session::Content::text("model", "a\u{0}b"));
    let refused = service.append_to(&key("s"), event).await.unwrap_err().to_string();
    assert!(refused.contains("U+0000"), "{refused}");
    let mut delta = sessile_state::Delta::from_iter([("x", json!("\u{0}"))]);
    assert!(matches!(service.write_app_state("shop", &delta).await, Err(SessionError::InvalidState { .. })));
    delta.remove("x");
    delta.remove("y\u{0}");
    assert!(matches!(service.write_app_state("shop", &delta).await, Err(SessionError::InvalidState { .. })));
    assert_eq!(stored(&service, "s").await.version(), 0);
}

#[tokio::test]
async fn times_keep_their_microseconds() {
    let service = service(&new_schema().await).await;
    let mut session = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let time = 1_994_764_954.284_554;
    service.append(&mut session, Event::new("user").with_timestamp(time)).await.unwrap();
    assert_eq!(stored(&service, "s").await.last_update_time(), time);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_not_a_hang() {
    let options = PostgresOptions::from_url("postgresql://nobody@127.0.0.1:1/none?pool_timeout=2").unwrap();
    let error = PostgresStore::connect(&options).await.expect_err("no server listens there");
    assert!(matches!(error, SessionError::Unavailable { .. }), "{error:?}");
    assert!(error.to_string().contains("is it running, and are host and port right?"), "{error}");
}

#[tokio::test]
async fn a_database_that_is_not_there_is_refused_by_name() {
    let server = server();
    let (before, _) = server.rsplit_once('/').unwrap();
    let reason = refusal(&format!("{before}/no_such_database")).await;
    assert!(reason.contains("no_such_database") && reason.contains("create the database"), "{reason}");
}

#[tokio::test]
async fn a_pool_without_a_free_connection_says_so_after_its_timeout() {
    let url = format!("{}&pool_size=2&pool_timeout=1", new_schema().await);
    let pool = PostgresOptions::from_url(&url).unwrap().pool().unwrap();
    let service = SessionService::new(PostgresStore::with_pool(pool.clone()).await.unwrap());
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let held = [pool.get().await.unwrap(), pool.get().await.unwrap()];
    let read = service.get(&key("s"), EventWindow::ALL).await.unwrap_err();
    let append = service.append_to(&key("s"), setting(json!({"a": 1}))).await.unwrap_err();
    let create = service.create(CreateSession::new("shop", "ada")).await.unwrap_err();
    for error in [read, append, create] {
        assert!(matches!(error, SessionError::Unavailable { .. }), "{error:?}");
        let message = error.to_string();
        assert!(
            message.contains("all 2 connections are in use") && message.contains("pool_size"),
            "{message}"
        );
    }
    drop(held);
    assert_eq!(service.append_to(&key("s"), setting(json!({"a": 1}))).await.unwrap(), Some(1));
}

#[test]
fn urls_are_those_of_google_adk() {
    for url in [
        "postgresql://u:p@h:5433/d",
        "postgres://u:p@h:5433/d",
        "postgresql+asyncpg://u:p@h:5433/d?pool_size=3&pool_timeout=7&connect_timeout=2",
    ] {
        let options = PostgresOptions::from_url(url).unwrap();
        assert_eq!((options.config.get_user(), options.config.get_dbname()), (Some("u"), Some("d")));
        assert_eq!(options.config.get_ports(), [5433]);
    }
    let options = PostgresOptions::from_url("postgresql://h/d?pool_size=3&pool_timeout=7").unwrap();
    assert_eq!((options.pool_size, options.pool_timeout.as_secs()), (3, 7));
    for url in [
        "mysql://u:s3cret@h/d",
        "postgresql://u:s3cret@h/d?pool_size=0",
        "postgresql://u:s3cret@h/d?nonsense=1",
        "postgresql://u:s3cret@h:port/d",
    ] {
        let error = PostgresOptions::from_url(url).unwrap_err().to_string();
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn looking_at_a_database_changes_nothing() {
    let url = new_schema().await;
    let options = PostgresOptions::from_url(&url).expect("the URL is understood");
    for _ in 0..2 {
        let schema = PostgresSchema::of(&options).await.expect("the server is reached");
        assert_eq!((schema.layout, schema.migration), (None, 0));
    }
    drop(connect(&url).await);
    let ours = PostgresSchema::of(&options).await.expect("the server is reached");
    assert_eq!((ours.layout.is_some(), ours.migration), (true, ours.latest));
}

#[tokio::test]
async fn a_list_names_its_corrupt_sessions_and_shows_the_others() {
    let url = new_schema().await;
    let corrupt = sql(
        &url,
        "UPDATE sessions SET state = '[1]' WHERE id = 'bad_state';
         UPDATE user_states SET state = 'null' WHERE user_id = 'bad_user';
         UPDATE app_states SET state = '5' WHERE app_name = 'bad_app'",
    );
    tables::a_list_beside_corrupt_rows(&service(&url).await, corrupt).await;
}

#[tokio::test]
async fn the_version_of_shared_state_never_goes_back() {
    let url = new_schema().await;
    let service = service(&url).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    service.write_user_state("shop", "ada", json!({"a": 1})).await.unwrap();
    sql(&url, r#"UPDATE user_states SET state = '{"a": 2}'"#).await; // as google-adk writes
    let user = ScopeKey::User("shop".to_owned(), "ada".to_owned());
    let before = service.scope_state(&user).await.unwrap().version;
    assert_eq!(before, 2);
    sql(&url, "DELETE FROM user_states").await;
    sql(
        &url,
        "INSERT INTO user_states (app_name, user_id, state, update_time) VALUES ('shop', 'ada', '{}', now())",
    )
    .await;
    let after = service.scope_state(&user).await.unwrap().version;
    assert!(after > before, "{after} comes after {before}");
    sql(&url, "DELETE FROM user_states").await;
    let written = service.write_user_state("shop", "ada", json!({"a": 3})).await.unwrap();
    assert!(written.version > after, "{} comes after {after}", written.version);
}
