//! Files that an earlier version made.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use serde_json::{Value, json};
use sessile_session::{
    Append, ChangeWindow, CreateSession, EventWindow, Incarnation, OnConflict, ScopeKey, SessionError,
};
use sessile_sqlite::{SqliteOptions, SqliteSchema, SqliteStore};

use crate::support::{new_file, new_v1_file, open, sql};
use crate::version_1::make_version_1;
use crate::{key, service, setting, stored, value};

/// Both layouts, as version 1 left them, with data.
fn old_files() -> [PathBuf; 2] {
    let (adk, v1) = (new_file(), new_v1_file());
    make_version_1(&adk, true);
    make_version_1(&v1, false);
    for (path, time) in [(&adk, "1767225600.0"), (&v1, "'2026-01-01 00:00:00.000000'")] {
        sql(
            path,
            &format!(
                r#"INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time, sessile_version, sessile_initial)
                   VALUES ('shop', 'ada', 's', '{{"a": 1.50}}', {time}, {time}, 2, '{{"gone": 1}}');
                   INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data, sessile_seq) VALUES
                   ('e1', 'shop', 'ada', 's', 'i', {time}, '{{"author": "é", "timestamp": 5.0, "actions": {{"state_delta": {{"a": 1.50}}}}}}', 1),
                   ('e2', 'shop', 'ada', 's', 'i', {time}, '{{"author": "x", "timestamp": 6.0, "custom_metadata": {{"sessile:removed": ["gone"]}}, "actions": {{"state_delta": {{"gone": null}}}}}}', 2);
                   INSERT INTO app_states VALUES ('shop', '{{"x": 1}}', {time}, 7);
                   INSERT INTO user_states VALUES ('shop', 'ada', '{{"u": 1}}', {time}, 4);"#
            ),
        );
    }
    [adk, v1]
}

/// Makes a file of version 1 what migration 2 made of it.
fn make_version_2(path: &Path) {
    let history = include_str!("../../migrations/0002_history.sql");
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    let made = connection.execute_batch(&format!("{history} UPDATE sessile_meta SET value = '2'"));
    made.expect("the statements run");
}

/// Both layouts, as migration 2 left them, with data and a history.
fn files_with_history() -> [PathBuf; 2] {
    let files = old_files();
    for path in &files {
        make_version_2(path);
        sql(
            path,
            r#"INSERT INTO sessile_app_changes VALUES ('shop', 7, NULL,
                   '[{"version":7,"time":5.0,"by":{"request":"r"},"change":{"set":{"x":1}},"undo":{"before":{"x":0}}}]')"#,
        );
    }
    files
}

#[tokio::test]
async fn the_history_of_before_goes_on_and_counts_its_days_from_the_migration() {
    for path in files_with_history() {
        let service = service(&path).await;
        sql(&path, r#"UPDATE app_states SET state = '{"app:x": 2}'"#);
        let app = ScopeKey::App("shop".to_owned());
        for (version, x) in [(8, 2), (7, 1), (6, 0)] {
            assert_eq!(json!(service.scope_state_at(&app, version).await.unwrap()), json!({"x": x}));
        }
        let refused = service.scope_state_at(&app, 5).await;
        assert!(
            matches!(refused, Err(SessionError::NotInScopeHistory { oldest: Some(6), .. })),
            "{refused:?}"
        );
        assert_eq!(service.trim_history().await.unwrap(), 0, "its days are counted from the migration on");
        let short = service.clone().with_history_kept(Some(Duration::ZERO));
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!(short.trim_history().await.unwrap(), 1, "the newest change stays");
    }
}

#[tokio::test]
async fn a_file_of_version_1_is_migrated_with_its_data() {
    for path in old_files() {
        let schema = SqliteSchema::of(SqliteOptions::new(&path)).await.unwrap();
        assert_eq!((schema.migration, schema.latest), (1, 3));
        let service = service(&path).await;
        assert_eq!(SqliteSchema::of(SqliteOptions::new(&path)).await.unwrap().migration, 3);

        let mut session = stored(&service, "s").await;
        assert_eq!((session.version(), session.incarnation()), (2, Incarnation(0)));
        assert_eq!(Value::from(session.state().to_map()), json!({"a": 1.50, "app:x": 1, "user:u": 1}));
        assert_eq!(service.state_at(&key("s"), 0).await.unwrap().keys().collect::<Vec<_>>(), ["gone"]);
        assert!(!service.state_at(&key("s"), 2).await.unwrap().contains_key("gone"), "a removal stays one");
        let versions = session.versions();
        assert_eq!((versions.app, versions.user), (Some(7), Some(4)));
        assert_eq!(value::<Option<i64>>(&path, "SELECT sessile_bytes FROM sessions"), None);

        service.append(&mut session, setting(json!({"b": 1, "app:x": 2, "user:u": 2}))).await.unwrap();
        let counted = "SELECT sum(octet_length(event_data)) FROM events";
        assert_eq!(value::<i64>(&path, "SELECT sessile_bytes FROM sessions"), value::<i64>(&path, counted));
        let app = ScopeKey::App("shop".to_owned());
        let changes = service.store().scope_changes(&app, ChangeWindow::newest(9)).await.unwrap();
        assert_eq!(changes.iter().map(|change| change.version).collect::<Vec<_>>(), [8]);

        // One that is made again under the address of a session from before is another one.
        assert!(service.delete_expecting(&key("s"), session.versions()).await.unwrap());
        service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        let replaced = service.append_with(&mut session, setting(json!({"b": 2})), OnConflict::Merge).await;
        assert!(matches!(replaced, Err(SessionError::Replaced { .. })), "{replaced:?}");
    }
}

#[tokio::test]
async fn sessions_from_before_keep_their_incarnation() {
    for path in old_files() {
        let mut session = stored(&service(&path).await, "s").await;
        let again = service(&path).await;
        again.append(&mut session, setting(json!({"b": 1}))).await.expect("it is the same session");
        let answer =
            again.change(&key("s"), Append::new(setting(json!({"c": 1}))), EventWindow::ALL).await.unwrap();
        assert_eq!((answer.incarnation(), answer.version(), answer.events().len()), (Incarnation(0), 4, 4));
    }
}

#[tokio::test]
async fn a_new_file_and_a_migrated_one_are_the_same() {
    let schema = |path: &Path| {
        let connection = rusqlite::Connection::open(path).unwrap();
        let query = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema ORDER BY 1";
        let mut statement = connection.prepare(query).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    let ([adk, v1], [newer_adk, newer_v1]) = (old_files(), files_with_history());
    let layouts =
        [(adk, new_file()), (v1, new_v1_file()), (newer_adk, new_file()), (newer_v1, new_v1_file())];
    for (old, new) in layouts {
        drop((open(&old).await, open(&new).await));
        assert_eq!(schema(&old), schema(&new));
    }
}

#[tokio::test]
async fn opening_it_again_changes_nothing() {
    let path = new_file();
    drop(open(&path).await);
    let version: i64 = value(&path, "PRAGMA schema_version");
    drop(open(&path).await);
    assert_eq!(value::<i64>(&path, "PRAGMA schema_version"), version);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_may_migrate_a_file_at_once_while_others_go_on_writing() {
    for path in old_files().into_iter().chain(files_with_history()) {
        let is_over = Arc::new(AtomicBool::new(false));
        let started = Arc::new(Barrier::new(2));
        let writer = {
            let (path, is_over, started) = (path.clone(), is_over.clone(), started.clone());
            std::thread::spawn(move || write_as_google_adk(&path, &is_over, &started))
        };
        started.wait();
        let openers: Vec<_> =
            (0..8).map(|_| tokio::spawn(SqliteStore::open(SqliteOptions::new(&path)))).collect();
        let mut stores = Vec::new();
        for opener in openers {
            stores.push(opener.await.unwrap().expect("the file is migrated"));
        }
        let service = service(&path).await;
        for n in 0..20 {
            service.append_to(&key("s"), setting(json!({"user:ours": n}))).await.unwrap();
        }
        is_over.store(true, Ordering::Release);
        let written = writer.join().expect("no statement of the other program fails");

        let session = stored(&service, "s").await;
        let theirs = session.events().iter().filter(|event| event.id.starts_with("theirs")).count();
        assert_eq!(
            theirs as u64, written,
            "all that was written before, during and after the migration is there"
        );
        assert_eq!(session.version(), 2 + 20 + written);
        assert!(session.events().iter().map(|event| event.version).eq(1..=session.version()));
        let user = service.scope_state(&ScopeKey::User("shop".to_owned(), "ada".to_owned())).await.unwrap();
        assert_eq!(user.version, 4 + 20 + written, "each write has its version");
        let scope = ScopeKey::User("shop".to_owned(), "ada".to_owned());
        let history = service.store().scope_changes(&scope, ChangeWindow::ALL).await.unwrap();
        let versions: Vec<u64> = history.iter().map(|change| change.version).collect();
        let oldest = *versions.last().expect("there is a history");
        assert!(versions.iter().copied().eq((oldest..=user.version).rev()), "none is left out: {versions:?}");
        let counted: i64 =
            value(&path, "SELECT sum(octet_length(event_data)) FROM events WHERE session_id = 's'");
        assert_eq!(value::<i64>(&path, "SELECT sessile_bytes FROM sessions WHERE id = 's'"), counted);
    }
}

/// Writes events and user state as google-adk does, until it is over and beyond; returns how many
/// of each.
fn write_as_google_adk(path: &Path, is_over: &AtomicBool, started: &Barrier) -> u64 {
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    connection.busy_timeout(Duration::from_secs(30)).expect("it can be set");
    let (mut n, mut rest) = (0, 10);
    while rest > 0 {
        if is_over.load(Ordering::Acquire) {
            rest -= 1;
        }
        connection
            .execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)
                 SELECT 'theirs{n}', app_name, user_id, id, 'i', create_time, '{{\"author\": \"é\"}}' FROM sessions WHERE id = 's';
                 INSERT INTO user_states (app_name, user_id, state, update_time)
                 SELECT app_name, user_id, '{{}}', create_time FROM sessions WHERE id = 's'
                 ON CONFLICT (app_name, user_id) DO UPDATE SET state = json_set(user_states.state, '$.theirs', {n});
                 COMMIT;"
            ))
            .expect("the statement runs");
        n += 1;
        if n == 10 {
            started.wait();
        }
    }
    n
}
