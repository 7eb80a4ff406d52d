//! Closing a store.

use std::path::{Path, PathBuf};
use std::pin::Pin;

use serde_json::json;
use sessile_session::{
    ChangeWindow, CreateSession, EventWindow, ListSessions, ScopeKey, SessionError, SessionService, Store,
};

use crate::support::{new_file, new_v1_file, open, sql};
use crate::{key, service, setting, stored, together};

/// A copy of the file alone, without its companions.
fn copy_of(path: &Path) -> PathBuf {
    let copy = new_file();
    std::fs::copy(path, &copy).expect("the file is copied");
    copy
}

fn companion_is_empty(path: &Path) -> bool {
    std::fs::metadata(path.with_extension("db-wal")).map_or(true, |companion| companion.len() == 0)
}

#[tokio::test]
async fn a_closed_file_is_whole_without_its_companion() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        let new = CreateSession::new("shop", "ada").with_id("s").with_state(json!({"a": 1, "app:x": 2}));
        service.create(new).await.unwrap();
        for n in 0..5 {
            service.append_to(&key("s"), setting(json!({"a": n, "user:n": n}))).await.unwrap();
        }
        let session = stored(&service, "s").await; // a connection that reads is open too
        assert!(!companion_is_empty(&path), "there is something to fold");
        service.close().await.unwrap();
        assert!(companion_is_empty(&path));
        let copy = crate::service(&copy_of(&path)).await;
        let found = stored(&copy, "s").await;
        assert_eq!(serde_json::to_value(&found).unwrap(), serde_json::to_value(&session).unwrap());
        let user = ScopeKey::User("shop".to_owned(), "ada".to_owned());
        assert_eq!(copy.store().scope_changes(&user, ChangeWindow::newest(9)).await.unwrap().len(), 5);
    }
}

#[tokio::test]
async fn what_was_handed_over_before_is_committed() {
    let path = new_file();
    let service = service(&path).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let appends = (0..100).map(|n| {
        let service = service.clone();
        async move { service.append_to(&key("s"), setting(json!({format!("n{n}"): n}))).await.map(drop) }
    });
    let closing = {
        let service = service.clone();
        async move { service.close().await }
    };
    type Call = Pin<Box<dyn Future<Output = Result<(), SessionError>> + Send>>;
    let calls: Vec<Call> =
        appends.map(|append| Box::pin(append) as _).chain([Box::pin(closing) as _]).collect();
    for result in together(&path, calls).await {
        result.unwrap();
    }
    let copy = crate::service(&copy_of(&path)).await;
    assert_eq!(stored(&copy, "s").await.version(), 100);
}

#[tokio::test]
async fn every_call_after_it_says_that_the_store_is_closed() {
    let service = service(&new_file()).await;
    let mut session = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    service.close().await.unwrap();
    let scope = ScopeKey::App("shop".to_owned());
    let list = ListSessions { app: "shop".to_owned(), ..ListSessions::default() };
    let refused = [
        service.create(CreateSession::new("shop", "ada")).await.map(drop),
        service.get(&key("s"), EventWindow::ALL).await.map(drop),
        service.list(&list).await.map(drop),
        service.delete(&key("s")).await.map(drop),
        service.append(&mut session, setting(json!({"a": 1}))).await.map(drop),
        service.scope_state(&scope).await.map(drop),
        service.write_app_state("shop", json!({"a": 1})).await.map(drop),
        service.store().scope_changes(&scope, ChangeWindow::newest(1)).await.map(drop),
        service.store().addresses(None, 1).await.map(drop),
    ];
    for call in refused {
        let error = call.expect_err("the store is closed");
        assert!(matches!(error, SessionError::Unavailable { .. }), "{error:?}");
        assert_eq!(error.to_string(), "cannot use the store now: it is closed; open the file again");
    }
    service.close().await.expect("it is closed already");
}

#[tokio::test]
async fn a_store_can_be_closed_by_several_callers_at_once() {
    let path = new_file();
    let service = service(&path).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let closing: Vec<_> = (0..4)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move { service.close().await })
        })
        .collect();
    for close in closing {
        close.await.unwrap().unwrap();
    }
    assert!(companion_is_empty(&path));
    assert_eq!(stored(&crate::service(&copy_of(&path)).await, "s").await.version(), 0);
}

#[tokio::test]
async fn closing_does_not_disturb_another_reader_of_the_file() {
    let path = new_file();
    let first = service(&path).await;
    first.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM sessions;").unwrap();
    first.append_to(&key("s"), setting(json!({"a": 1}))).await.unwrap();
    first.close().await.expect("the file is folded later");
    let version: i64 =
        reader.query_row("SELECT sessile_version FROM sessions", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 0, "it reads what it began to read");
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(stored(&service(&path).await, "s").await.version(), 1);
}

#[tokio::test]
async fn a_store_that_is_dropped_loses_nothing_either() {
    let path = new_file();
    let store = open(&path).await;
    let service = SessionService::new(store);
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    drop(service);
    sql(&path, "PRAGMA wal_checkpoint(PASSIVE)");
    let store = open(&path).await;
    assert!(store.get(&key("s"), EventWindow::ALL).await.unwrap().is_some());
}
