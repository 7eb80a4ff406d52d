//! The history of shared state, as its rows have it.

use std::path::Path;

use serde_json::{Value, json};
use sessile_session::{
    ChangeWindow, ChangedBy, CreateSession, Event, EventActions, ScopeChange, ScopeKey, SessionService,
    StateMap, StateWrite,
};
use sessile_state::{Delta, Operation};

use crate::support::{new_file, new_v1_file};
use crate::{key, service, setting, stored, together};

/// A row of the history.
#[derive(Debug, PartialEq)]
struct Row {
    version: u64,
    request: Option<String>,
    changes: Vec<ScopeChange>,
}

/// The history of the user `ada`, oldest first, as another program reads it.
fn rows(path: &Path, table: &str) -> Vec<Row> {
    let connection = rusqlite::Connection::open(path).expect("the file opens");
    let query =
        format!("SELECT version, request_id, changes FROM {table} WHERE app_name = 'shop' ORDER BY version");
    let mut statement = connection.prepare(&query).expect("there is such a table");
    let rows = statement.query_map([], |row| {
        let changes: String = row.get(2)?;
        let changes = serde_json::from_str(&changes).expect("a list of changes");
        Ok(Row { version: row.get(0)?, request: row.get(1)?, changes })
    });
    rows.and_then(Iterator::collect).expect("the rows are read")
}

fn app() -> ScopeKey {
    ScopeKey::App("shop".to_owned())
}

fn user() -> ScopeKey {
    ScopeKey::User("shop".to_owned(), "ada".to_owned())
}

/// The history as the store returns it, oldest first.
async fn history_of(service: &SessionService, scope: &ScopeKey) -> Vec<ScopeChange> {
    let mut changes =
        service.store().scope_changes(scope, ChangeWindow::ALL).await.expect("the history is read");
    changes.reverse();
    changes
}

#[tokio::test]
async fn a_batch_is_one_row_for_each_scope_and_a_direct_write_has_its_own() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        let calls = (0..9).map(|n| {
            let service = service.clone();
            async move {
                if n == 4 {
                    let request = Some("direct".to_owned());
                    let write = StateWrite { request, ..StateWrite::new(user(), json!({"direct": n})) };
                    return service.write_state(write).await.map(drop).unwrap();
                }
                let event = Event { id: format!("e{n}"), ..setting(json!({"user:n": n, "app:n": n})) };
                service.append_to(&key("s"), event).await.map(drop).unwrap();
            }
        });
        together(&path, calls).await;

        let rows_of_user = rows(&path, "sessile_user_changes");
        for row in &rows_of_user {
            assert_eq!(Some(row.version), row.changes.last().map(|change| change.version), "{row:?}");
        }
        let direct: Vec<_> = rows_of_user.iter().filter(|row| row.request.is_some()).collect();
        assert_eq!(direct.len(), 1);
        assert_eq!((direct[0].request.as_deref(), direct[0].changes.len()), (Some("direct"), 1));
        // The first write may be committed alone, before the others wait.
        assert!((3..=4).contains(&rows_of_user.len()), "{rows_of_user:?}");
        assert!(rows(&path, "sessile_app_changes").len() <= 2);

        let changes: Vec<_> = rows_of_user.into_iter().flat_map(|row| row.changes).collect();
        assert!(changes.iter().map(|change| change.version).eq(1..=9));
        assert_eq!(history_of(&service, &user()).await, changes);
        let own: Vec<_> =
            rows(&path, "sessile_app_changes").into_iter().flat_map(|row| row.changes).collect();
        assert_eq!(history_of(&service, &app()).await, own);
        let by: Vec<_> = own.iter().map(|change| change.by.clone()).collect();
        assert!(
            by.iter().all(|by| matches!(by, ChangedBy::Event { session, .. } if session == "s")),
            "{by:?}"
        );
        assert_eq!(service.scope_state(&user()).await.unwrap().version, 9);
    }
}

#[tokio::test]
async fn a_row_says_what_changed_by_whom_and_what_undoes_it() {
    let path = new_file();
    let service = service(&path).await;
    let list: Vec<u32> = (0..1000).collect();
    let initial = json!({"user:points": 10, "user:log": list, "user:theme": "dark"});
    service.create(CreateSession::new("shop", "ada").with_id("s").with_state(initial)).await.unwrap();
    let mut delta = Delta::new();
    delta.operate("user:points", Operation::add(5).at_most(100));
    delta.append("user:log", [json!("x"), json!("y")]);
    delta.set("user:theme", json!("light"));
    delta.set("user:new", json!(null));
    let event = Event { id: "e1".to_owned(), ..Event::new("agent") };
    let event = event.with_actions(EventActions::from_delta(delta)).with_timestamp(1_700_000_000.5);
    service.append_to(&key("s"), event).await.unwrap();
    let mut removal = Delta::new();
    removal.remove("theme");
    let write = StateWrite {
        request: Some("r1".to_owned()),
        principal: Some("operator".to_owned()),
        ..StateWrite::new(user(), removal)
    };
    service.write_state(write).await.unwrap();

    let [created, appended, written] = &rows(&path, "sessile_user_changes")[..] else { panic!("three rows") };
    assert_eq!(created.changes[0].by, ChangedBy::creation(&key("s")));
    let text: String = crate::value(
        &path,
        "SELECT json_remove(changes, '$[0].time') FROM sessile_user_changes WHERE request_id = 'r1'",
    );
    let expected = json!([{
        "version": 3,
        "by": {"request": "r1", "principal": "operator"},
        "change": {"remove": ["theme"]},
        "undo": {"before": {"theme": "light"}},
    }]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert_eq!(written.version, 3);
    let text: String = crate::value(&path, "SELECT changes FROM sessile_user_changes WHERE version = 2");
    let expected = json!([{
        "version": 2,
        "time": 1_700_000_000.5,
        "by": {"user": "ada", "session": "s", "event": "e1", "author": "agent"},
        "change": {
            "set": {"theme": "light", "new": null},
            "ops": {"points": {"add": 5, "max": 100}, "log": {"append": ["x", "y"]}},
        },
        "undo": {"before": {"points": 10, "theme": "dark"}, "added": {"log": 2}},
    }]);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    assert!(text.len() < 500, "its size follows the change, and not the list: {text}");
    assert_eq!(appended.request, None);
}

#[tokio::test]
async fn undoing_it_leads_back_to_every_state() {
    let path = new_v1_file();
    let service = service(&path).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let mut states = vec![StateMap::new()];
    for n in 0..20 {
        let mut delta = Delta::new();
        delta.add("user:sum", n);
        delta.union("user:thirds", [json!(n % 3)]);
        delta.operate("user:fields", Operation::union_fields([(format!("f{}", n % 4), json!(n))]));
        match n % 3 {
            0 => delta.set("user:sometimes", json!({"deep": [n]})),
            1 => delta.remove("user:sometimes"),
            _ => delta.append("user:log", [json!(n)]),
        }
        let event = Event::new("agent").with_actions(EventActions::from_delta(delta));
        service.append_to(&key("s"), event).await.unwrap();
        states.push(service.user_state("shop", "ada").await.unwrap());
    }
    let mut state = states.pop().unwrap();
    for change in history_of(&service, &user()).await.iter().rev() {
        change.undo(&mut state).unwrap();
        assert_eq!(json!(state), json!(states.pop().unwrap()), "before version {}", change.version);
    }
    assert!(states.is_empty());
}

#[tokio::test]
async fn a_request_is_found_after_the_file_was_opened_again() {
    for path in [new_file(), new_v1_file()] {
        let write = |n: u32| {
            let mut delta = Delta::new();
            delta.add("points", n);
            StateWrite { request: Some("r".to_owned()), ..StateWrite::new(user(), delta) }
        };
        let first = {
            let service = service(&path).await;
            let first = service.write_state(write(1)).await.unwrap();
            for n in 0..3 {
                service
                    .write_user_state("shop", "ada", json!({"points": 100 + n, "later": n}))
                    .await
                    .unwrap();
            }
            service.close().await.unwrap();
            first
        };
        let service = service(&path).await;
        let again = service.write_state(write(1)).await.unwrap();
        assert_eq!((again.version, &again.state), (first.version, &first.state), "as of the first time");
        assert!(again.known.is_some());
        assert!(service.write_state(write(2)).await.is_err(), "another change under this id");
        assert_eq!(
            json!(service.user_state("shop", "ada").await.unwrap()),
            json!({"points": 102, "later": 2})
        );
        assert_eq!(rows(&path, "sessile_user_changes").len(), 4);
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_understood_is_named() {
    let path = new_file();
    let service = service(&path).await;
    service.write_user_state("shop", "ada", json!({"a": 1})).await.unwrap();
    service.write_user_state("shop", "ada", json!({"a": 2})).await.unwrap();
    crate::support::sql(&path, "UPDATE sessile_user_changes SET changes = '{' WHERE version = 1");
    let error =
        service.store().scope_changes(&user(), ChangeWindow::newest(9)).await.unwrap_err().to_string();
    assert!(error.contains("column changes of table sessile_user_changes, row shop/ada/1"), "{error}");
    assert_eq!(
        service
            .store()
            .scope_changes(&user(), ChangeWindow { after: 1, ..ChangeWindow::newest(9) })
            .await
            .unwrap()
            .len(),
        1,
        "others are readable"
    );
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    service.append_to(&key("s"), setting(json!({"user:a": 3}))).await.unwrap();
    assert_eq!(stored(&service, "s").await.state().get("user:a"), Some(3));
}
