//! Files in every condition: reopened, foreign, corrupt, read-only. The operations on them are
//! tested in `files/`.

#[path = "files/batches.rs"]
mod batches;
#[path = "files/close.rs"]
mod close;
#[path = "files/foreign.rs"]
mod foreign;
#[path = "files/foreign_history.rs"]
mod foreign_history;
#[path = "files/history.rs"]
mod history;
#[path = "files/migration.rs"]
mod migration;
mod support;
#[path = "support/version_1.rs"]
mod version_1;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use sessile_conformance::tables;
use sessile_session::{
    CreateSession, Event, EventActions, EventWindow, Session, SessionError, SessionKey, SessionService,
};
use sessile_sqlite::{SqliteOptions, SqliteSchema, SqliteStore};
use support::{new_file, new_v1_file, open, sql};

async fn service(path: &Path) -> SessionService {
    SessionService::new(open(path).await)
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("shop", "ada", id).expect("a valid key")
}

fn setting(delta: Value) -> Event {
    Event::new("agent").with_actions(EventActions::from_delta(delta))
}

async fn stored(service: &SessionService, id: &str) -> Session {
    let found = service.get(&key(id), EventWindow::ALL).await.expect("the session is read");
    found.expect("the session exists")
}

/// Asks the file for one value, as another program would.
fn value<T: rusqlite::types::FromSql>(path: &Path, query: &str) -> T {
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    connection.query_row(query, [], |row| row.get(0)).expect("there is a value")
}

/// Makes calls while another program holds the lock of the file, so that they are committed
/// together; then lets go and returns their results. It must run on a runtime of one thread.
async fn together<F>(path: &Path, calls: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let other = rusqlite::Connection::open(path).expect("the file opens");
    other.execute_batch("BEGIN IMMEDIATE").expect("the lock is free");
    let calls: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    for _ in 0..10 {
        tokio::task::yield_now().await; // until all of them wait for the writing thread
    }
    other.execute_batch("ROLLBACK").expect("the lock is released");
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.expect("no call panics"));
    }
    results
}

async fn refusal(path: &Path) -> String {
    match SqliteStore::open(SqliteOptions::new(path)).await {
        Err(SessionError::Unusable { reason }) => reason,
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("the file is opened"),
    }
}

#[tokio::test]
async fn reopen_sees_everything() {
    for path in [new_file(), new_v1_file()] {
        let first = service(&path).await;
        let new =
            CreateSession::new("shop", "ada").with_id("s").with_state([("a", json!(1)), ("app:x", json!(2))]);
        let mut session = first.create(new).await.unwrap();
        first.append(&mut session, setting(json!({"a": 2, "user:u": [1]}))).await.unwrap();
        drop(first);
        let second = service(&path).await;
        let read = stored(&second, "s").await;
        assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&session).unwrap());
        assert_eq!(
            serde_json::to_value(second.state_at(&key("s"), 0).await.unwrap()).unwrap(),
            json!({"a": 1})
        );
    }
}

#[tokio::test]
async fn many_may_open_a_new_file_at_once() {
    let path = new_file();
    let openers: Vec<_> =
        (0..8).map(|_| tokio::spawn(SqliteStore::open(SqliteOptions::new(&path)))).collect();
    for opener in openers {
        opener.await.unwrap().unwrap();
    }
    drop(open(&path).await);
}

#[tokio::test]
async fn a_file_that_another_program_writes_is_waited_for() {
    let path = new_v1_file();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let impatient = SqliteOptions { busy_timeout: Duration::from_millis(20), ..SqliteOptions::new(&path) };
    let error = SqliteStore::open(impatient).await.expect_err("the file is busy").to_string();
    assert!(error.contains("database is locked"), "{error}");
    let opening = tokio::spawn(SqliteStore::open(SqliteOptions::new(&path)));
    tokio::time::sleep(Duration::from_millis(50)).await;
    other.execute_batch("COMMIT").unwrap();
    opening.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let path = new_file();
    drop(open(&path).await);
    sql(&path, "UPDATE sessile_meta SET value = '99' WHERE key = 'migration'");
    assert!(refusal(&path).await.contains("newer Sessile (migration 99"));
}

#[tokio::test]
async fn the_old_pickle_format_is_refused() {
    let path = new_file();
    sql(&path, "CREATE TABLE sessions (create_time DATETIME); CREATE TABLE events (id TEXT, actions BLOB)");
    assert!(refusal(&path).await.contains("adk migrate session"));
}

#[tokio::test]
async fn a_file_that_is_not_a_database_of_ours_is_refused_untouched() {
    let path = new_file();
    std::fs::write(&path, "this is a text, and long enough not to be taken for an empty database file")
        .unwrap();
    assert!(refusal(&path).await.contains("not a SQLite database"));
    let foreign = new_file();
    sql(&foreign, "CREATE TABLE sessions (token TEXT)");
    assert!(refusal(&foreign).await.contains("not google-adk's"));
    let version = new_v1_file();
    sql(&version, "UPDATE adk_internal_metadata SET value = '7'");
    assert!(refusal(&version).await.contains("schema version is not 1"));
    assert!(refusal(Path::new("/nowhere/at/all/sessile.db")).await.contains("does its folder exist"));
}

#[tokio::test]
async fn a_corrupt_row_names_its_place_and_leaves_others_readable() {
    let path = new_file();
    let service = service(&path).await;
    for id in ["good", "bad_state", "bad_event"] {
        let mut session = service.create(CreateSession::new("shop", "ada").with_id(id)).await.unwrap();
        service
            .append(&mut session, Event { id: "e1".to_owned(), ..setting(json!({"a": 1})) })
            .await
            .unwrap();
    }
    sql(&path, "UPDATE sessions SET state = '{broken' WHERE id = 'bad_state'");
    sql(&path, "UPDATE events SET event_data = '[1]' WHERE session_id = 'bad_event'");
    let error = service.get(&key("bad_state"), EventWindow::ALL).await.unwrap_err().to_string();
    assert!(error.contains("column state of table sessions, row shop/ada/bad_state"), "{error}");
    let error = service.append_to(&key("bad_state"), setting(json!({"b": 1}))).await.unwrap_err().to_string();
    assert!(error.contains("column state of table sessions, row shop/ada/bad_state"), "{error}");
    let error = service.get(&key("bad_event"), EventWindow::ALL).await.unwrap_err().to_string();
    assert!(error.contains("column event_data of table events, row shop/ada/bad_event/e1"), "{error}");
    assert_eq!(stored(&service, "good").await.version(), 1);
    assert_eq!(service.append_to(&key("good"), setting(json!({"b": 1}))).await.unwrap(), Some(2));
    for (app, user, spoil, place) in [
        (
            "bad_app",
            "ada",
            "UPDATE app_states SET state = '5'",
            "column state of table app_states, row bad_app:",
        ),
        (
            "shop",
            "bad_user",
            "UPDATE user_states SET state = x'00'",
            "column state of table user_states, row shop/bad_user:",
        ),
        (
            "late",
            "ada",
            "UPDATE sessions SET update_time = 'soon'",
            "column update_time of table sessions, row late/ada/s",
        ),
        (
            "new",
            "ada",
            "UPDATE sessions SET sessile_initial = '{'",
            "column sessile_initial of table sessions, row new/ada/s",
        ),
    ] {
        let shared = [("app:x", json!(1)), ("user:x", json!(1))];
        let made =
            service.create(CreateSession::new(app, user).with_id("s").with_state(shared)).await.unwrap();
        let table = spoil.split(' ').nth(1).unwrap();
        let whose =
            if table == "app_states" { "" } else { " AND user_id = '{user}'" }.replace("{user}", user);
        sql(&path, &format!("{spoil} WHERE app_name = '{app}'{whose}"));
        let error = service.get(made.key(), EventWindow::ALL).await.unwrap_err();
        assert!(matches!(error, SessionError::Corrupt { .. }), "{error:?}");
        assert!(error.to_string().contains(place), "{error}");
    }
    assert_eq!(stored(&service, "good").await.version(), 2);
}

#[test]
fn urls_are_those_of_google_adk() {
    for (url, path) in [
        ("sqlite:///relative.db", "relative.db"),
        ("sqlite:////absolute/x.db", "/absolute/x.db"),
        ("sqlite+aiosqlite:///x.db", "x.db"),
        ("plain/path.db", "plain/path.db"),
    ] {
        assert_eq!(SqliteOptions::from_url(url).unwrap(), SqliteOptions::new(path), "{url}");
    }
    let options = SqliteOptions::from_url("sqlite:///x.db?readers=9&busy_timeout=3").unwrap();
    assert_eq!(
        (options.path.to_str(), options.readers, options.busy_timeout.as_secs()),
        (Some("x.db"), 9, 3)
    );
    for url in [
        "sqlite://",
        "sqlite:///",
        "sqlite:///x.db?mode=ro",
        "sqlite:///x.db?readers=many",
        "sqlite:///x.db?readers=0",
        "sqlite:///x.db?readers",
    ] {
        assert!(SqliteOptions::from_url(url).is_err(), "{url}");
    }
}

#[tokio::test]
async fn looking_at_a_file_changes_nothing() {
    let missing = new_file();
    assert!(SqliteSchema::of(SqliteOptions::new(&missing)).await.is_err());
    assert!(!missing.exists());

    let foreign = new_v1_file();
    let schema = SqliteSchema::of(SqliteOptions::new(&foreign)).await.expect("the file is google-adk's");
    assert_eq!((schema.layout, schema.migration), (Some("DatabaseSessionService, version 1"), 0));
    let again = SqliteSchema::of(SqliteOptions::new(&foreign)).await.expect("the file is as before");
    assert_eq!(again, schema);

    drop(open(&foreign).await);
    let ours = SqliteSchema::of(SqliteOptions::new(&foreign)).await.expect("the file is migrated");
    assert_eq!(ours.migration, ours.latest);
}

#[tokio::test]
async fn a_list_names_its_corrupt_sessions_and_shows_the_others() {
    let path = new_file();
    let corrupt = async {
        sql(
            &path,
            "UPDATE sessions SET state = '{broken' WHERE id = 'bad_state';
             UPDATE user_states SET state = x'00' WHERE user_id = 'bad_user';
             UPDATE app_states SET state = '5' WHERE app_name = 'bad_app'",
        );
    };
    tables::a_list_beside_corrupt_rows(&service(&path).await, corrupt).await;
}

#[tokio::test]
async fn a_list_names_a_session_without_a_readable_time() {
    use sessile_session::ListSessions;
    let path = new_file();
    let service = service(&path).await;
    for id in ["a", "b", "c", "late", "later"] {
        service.create(CreateSession::new("shop", "ada").with_id(id)).await.unwrap();
    }
    sql(&path, "UPDATE sessions SET update_time = 'soon' WHERE id LIKE 'late%'");
    for newest_first in [false, true] {
        let whole =
            ListSessions { app: "shop".to_owned(), newest_first, page_size: 3, ..ListSessions::default() };
        let (mut good, mut bad, mut list) = (Vec::new(), BTreeSet::new(), whole.clone());
        loop {
            let page = service.list(&list).await.unwrap();
            good.extend(page.sessions.iter().map(|session| session.key().id().to_owned()));
            bad.extend(page.unreadable.iter().map(|lost| lost.key.id().to_owned()));
            let Some(next) = page.next else { break };
            list.page_token = Some(next);
        }
        good.sort();
        assert_eq!(
            (good, bad),
            (["a", "b", "c"].map(str::to_owned).into(), ["late", "later"].map(str::to_owned).into())
        );
        // Where no page could end, the list fails and names the session, instead of ending early.
        let first = ListSessions { page_size: 1, ..whole };
        match service.list(&first).await {
            Ok(page) => assert!(!newest_first && page.sessions.len() == 1),
            Err(error) => {
                assert!(newest_first && error.to_string().contains("row shop/ada/later"), "{error}")
            }
        }
    }
}
