//! Writes that are committed together.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use sessile_session::{
    Append, CreateSession, Event, EventActions, Expect, Guards, Incarnation, OnConflict, OnOverwrite,
    SessionError, SessionService,
};
use sessile_sqlite::{SqliteOptions, SqliteStore};
use sessile_state::{Delta, Operation};

use crate::support::{new_file, new_v1_file, open, sql};
use crate::{key, service, setting, stored, together};

#[tokio::test]
async fn a_bad_write_does_not_fail_its_neighbours() {
    let path = new_file();
    let service = service(&path).await;
    for id in ["good", "bad"] {
        service.create(CreateSession::new("shop", "ada").with_id(id)).await.unwrap();
    }
    sql(
        &path,
        "CREATE TRIGGER refuse BEFORE INSERT ON events WHEN NEW.session_id = 'bad' BEGIN SELECT raise(ABORT, 'no'); END",
    );
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let service = service.clone();
            let id = if n % 4 == 0 { "bad" } else { "good" };
            tokio::spawn(
                async move { service.append_to(&key(id), setting(json!({"app:n": n}))).await.is_ok() },
            )
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += usize::from(task.await.unwrap());
    }
    assert_eq!(done, 30);
    assert_eq!(stored(&service, "good").await.version(), 30);
    assert_eq!(stored(&service, "bad").await.version(), 0);
}

#[tokio::test]
async fn writes_behind_a_foreign_lock_fail_together_and_in_time() {
    let path = new_file();
    let options = SqliteOptions { busy_timeout: Duration::from_millis(100), ..SqliteOptions::new(&path) };
    let service = SessionService::new(SqliteStore::open(options).await.unwrap());
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writes: Vec<_> = (0..1000)
        .map(|n| {
            let service = service.clone();
            tokio::spawn(async move { service.append_to(&key("s"), setting(json!({"n": n}))).await })
        })
        .collect();
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        for write in writes {
            let refused = write.await.unwrap().unwrap_err().to_string();
            assert!(refused.contains("locked"), "{refused}");
        }
    });
    waited.await.expect("a thousand writes wait together, not one after the other");
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(service.append_to(&key("s"), setting(json!({"n": 1}))).await.unwrap(), Some(1));
}

/// The number of transactions in the write-ahead log: a frame that ends one has the size of the
/// file, and other frames have 0.
fn commits(path: &Path) -> usize {
    let companion = std::fs::read(path.with_extension("db-wal")).expect("there is a companion");
    let page = u32::from_be_bytes(companion[8..12].try_into().expect("four bytes")) as usize;
    companion[32..].chunks_exact(24 + page).filter(|frame| frame[4..8] != [0; 4]).count()
}

fn operating(operate: impl FnOnce(&mut Delta)) -> Event {
    let mut delta = Delta::new();
    operate(&mut delta);
    Event::new("agent").with_actions(EventActions::from_delta(delta))
}

/// Commits that are refused for every reason there is, by the name of the error.
fn refused() -> Vec<(&'static str, &'static str, Append)> {
    let stale = Expect { session: Some(99), ..Expect::default() };
    let stale_user = Expect { user: Some(99), ..Expect::default() };
    let replaced = Expect { incarnation: Some(Incarnation(99)), ..Expect::default() };
    let guards = Guards::new(OnOverwrite::Refuse).with_read("app:limit", json!("another"));
    let set = || setting(json!({"own": "refused", "user:refused": 1, "app:refused": 1}));
    let large = setting(json!({"own": "refused", "user:refused": 1, "app:refused": "x".repeat(20_000)}));
    let bound = operating(|delta| {
        delta.set("own", json!("refused"));
        delta.set("user:refused", json!(1));
        delta.operate("app:limit", Operation::add(1).at_most(0));
    });
    vec![
        ("Conflict", "s", Append::new(set()).expecting(stale)),
        ("Conflict", "s", Append::new(set()).expecting(stale_user)),
        ("Replaced", "s", Append::new(set()).expecting(replaced)),
        ("Overwritten", "s", Append::new(set()).guarded(guards)),
        ("Operation", "s", Append::new(bound)),
        ("TooLarge", "s", Append::new(large)),
        ("NotFound", "nowhere", Append::new(set())),
        ("Corrupt", "corrupt", Append::new(set())),
    ]
}

#[tokio::test]
async fn a_refused_append_leaves_its_neighbours_as_they_are() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await.with_max_scope_bytes(10_000);
        let limit = [("app:limit", json!(5))];
        service.create(CreateSession::new("shop", "ada").with_id("s").with_state(limit)).await.unwrap();
        service.create(CreateSession::new("shop", "ada").with_id("corrupt")).await.unwrap();
        sql(&path, "UPDATE sessions SET state = '{broken' WHERE id = 'corrupt'");
        let before = commits(&path);

        let mut calls = Vec::new();
        for round in 0..8 {
            for (name, session, append) in refused() {
                let neighbour = operating(|delta| {
                    delta.add("n", 1);
                    delta.add("user:n", 1);
                    delta.append("app:log", [json!(round)]);
                });
                calls.push((None, "s", Append::new(neighbour)));
                calls.push((Some(name), session, append));
            }
        }
        let calls = calls.into_iter().map(|(refused, session, append)| {
            let service = service.clone();
            async move { (refused, service.append_to(&key(session), append).await) }
        });
        let mut versions = Vec::new();
        for (refused, result) in together(&path, calls).await {
            match (refused, result) {
                (None, result) => versions.extend(result.expect("the neighbour is committed")),
                (Some(name), result) => {
                    let error = format!("{:?}", result.expect_err(name));
                    assert!(error.starts_with(name), "{name}: {error}");
                }
            }
        }
        versions.sort_unstable();
        assert!(versions.iter().copied().eq(1..=64), "{versions:?}");
        let transactions = commits(&path) - before;
        assert!(transactions <= 3, "they were committed together, and not redone one by one: {transactions}");

        let session = stored(&service, "s").await;
        let state = session.state();
        assert_eq!(
            (state.get("n"), state.get("user:n"), state.get("app:limit")),
            (Some(64), Some(64), Some(5))
        );
        assert_eq!(state.get::<Vec<u32>>("app:log").unwrap().len(), 64);
        assert!(!state.contains("own") && !state.contains("user:refused") && !state.contains("app:refused"));
        assert_eq!(session.events().len(), 64);
        let history: i64 = crate::value(&path, "SELECT count(*) FROM sessile_user_changes");
        assert!(history <= 3, "a batch has one row in the history: {history}");
    }
}

#[tokio::test]
async fn a_refused_write_of_shared_state_or_creation_leaves_its_neighbours_as_they_are() {
    let path = new_file();
    let service = service(&path).await.with_max_scope_bytes(1_000);
    service.create(CreateSession::new("shop", "ada").with_id("taken")).await.unwrap();
    let before = commits(&path);
    let calls = (0..30).map(|n| {
        let service = service.clone();
        async move {
            let large = "x".repeat(2_000);
            let create = |id: String| CreateSession::new("shop", "ada").with_id(id);
            let result = match n % 6 {
                0 => service.write_user_state("shop", "ada", json!({format!("n{n}"): n})).await.map(drop),
                1 => service.write_user_state("shop", "ada", json!({"large": large})).await.map(drop),
                2 => service.create(create(format!("s{n}")).with_state(json!({"app:n": n}))).await.map(drop),
                3 => {
                    service.create(create("taken".to_owned()).with_state(json!({"app:t": n}))).await.map(drop)
                }
                4 => service
                    .create(create(format!("l{n}")).with_state(json!({"user:l": large})))
                    .await
                    .map(drop),
                _ => service
                    .delete_expecting(&key("taken"), Expect { session: Some(9), ..Expect::default() })
                    .await
                    .map(drop),
            };
            (n, result)
        }
    });
    for (n, result) in together(&path, calls).await {
        let error = result.err().map(|error| format!("{error:?}")).unwrap_or_default();
        let expected = ["", "TooLarge", "", "AlreadyExists", "TooLarge", "Conflict"][n % 6];
        assert!(error.starts_with(expected) && error.is_empty() == expected.is_empty(), "{n}: {error}");
    }
    let transactions = commits(&path) - before;
    assert!(transactions <= 3, "they were committed together, and not redone one by one: {transactions}");
    let user = service.user_state("shop", "ada").await.unwrap();
    assert_eq!(user.keys().collect::<Vec<_>>(), ["n0", "n12", "n18", "n24", "n6"]);
    assert_eq!(json!(service.app_state("shop").await.unwrap()), json!({"n": 26}));
}

#[tokio::test]
async fn writes_see_earlier_writes_of_the_same_batch() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        let create = CreateSession::new("shop", "ada").with_id("s").with_state(json!({"user:n": 1}));
        let event = || Event { id: "e".to_owned(), ..operating(|delta| delta.add("user:n", 1)) };
        type Call = std::pin::Pin<Box<dyn Future<Output = Result<String, SessionError>> + Send>>;
        let call = |make: fn(SessionService, CreateSession, Event) -> Call| {
            make(service.clone(), create.clone(), event())
        };
        let create_it = |service: SessionService, create: CreateSession, _: Event| -> Call {
            Box::pin(
                async move { service.create(create).await.map(|session| format!("{:?}", session.state())) },
            )
        };
        let append_it = |service: SessionService, _: CreateSession, event: Event| -> Call {
            Box::pin(async move {
                let appended = service.append_answering(&key("s"), Append::new(event)).await?;
                Ok(format!("{} {}", appended.version, appended.is_known))
            })
        };
        let write_it = |service: SessionService, _: CreateSession, _: Event| -> Call {
            Box::pin(async move {
                let written = service.write_user_state("shop", "ada", json!({"m": 1})).await?;
                Ok(format!("{} {:?}", written.version, written.state))
            })
        };
        let delete_it = |service: SessionService, _: CreateSession, _: Event| -> Call {
            Box::pin(async move { Ok(service.delete(&key("s")).await?.to_string()) })
        };
        let calls = vec![
            call(append_it),
            call(create_it),
            call(create_it),
            call(append_it),
            call(append_it),
            call(write_it),
            call(delete_it),
            call(append_it),
            call(create_it),
        ];
        let answers: Vec<_> = together(&path, calls)
            .await
            .into_iter()
            .map(|result| result.unwrap_or_else(|error| format!("{error:?}").chars().take(8).collect()))
            .collect();
        assert_eq!(answers[0], "NotFound");
        assert!(answers[1].contains(r#""user:n": 1"#), "{}", answers[1]);
        assert_eq!(answers[2], "AlreadyE");
        assert_eq!((&*answers[3], &*answers[4]), ("1 false", "1 true"));
        assert_eq!(answers[5], r#"3 {"m": 1, "n": 2}"#);
        assert_eq!((&*answers[6], &*answers[7]), ("true", "NotFound"));
        assert!(
            answers[8].contains(r#""user:n": 1"#) && answers[8].contains(r#""user:m": 1"#),
            "{}",
            answers[8]
        );
        let session = stored(&service, "s").await;
        assert_eq!((session.version(), session.versions().user), (0, Some(4)));
    }
}

#[tokio::test]
async fn a_known_event_is_answered_whatever_else_would_be_refused() {
    let path = new_file();
    let service = service(&path).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let event = || Event {
        id: "e".to_owned(),
        ..operating(|delta| delta.operate("n", Operation::add(1).at_most(1)))
    };
    let first = service.append_answering(&key("s"), Append::new(event())).await.unwrap();
    drop(service);
    // From a file that was opened again: its cache is empty.
    let service = SessionService::new(open(&path).await);
    let stale = Expect { session: Some(77), incarnation: Some(Incarnation(7)), ..Expect::default() };
    let guards = Guards::new(OnOverwrite::Refuse).with_absent("n");
    let again = Append::new(event()).expecting(stale).guarded(guards);
    let known = service.append_answering(&key("s"), again).await.unwrap();
    assert!(known.is_known && !first.is_known);
    assert_eq!((known.version, known.update_time, &known.event), (1, first.update_time, &first.event));
    assert_eq!(stored(&service, "s").await.version(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_one_session_see_everything_that_the_others_append() {
    for path in [new_file(), new_v1_file()] {
        let service = service(&path).await;
        service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let service = service.clone();
                tokio::spawn(async move {
                    let mut session = stored(&service, "s").await;
                    for n in 0..40 {
                        // One of them falls behind by more events than are cached.
                        if writer == 0 && n == 20 {
                            for late in 0..200 {
                                service.append_to(&key("s"), setting(json!({"late": late}))).await.unwrap();
                            }
                        }
                        let event = setting(json!({format!("w{writer}"): n}));
                        service.append_with(&mut session, event, OnConflict::Merge).await.unwrap();
                    }
                    session
                })
            })
            .collect();
        let mut sessions = Vec::new();
        for writer in writers {
            sessions.push(writer.await.unwrap());
        }
        let whole = stored(&service, "s").await;
        assert_eq!(whole.version(), 8 * 40 + 200);
        for session in sessions {
            assert!(session.events().iter().map(|event| event.version).eq(1..=session.version()));
            assert_eq!(session.events(), &whole.events()[..session.events().len()]);
            let then = service.state_at(&key("s"), session.version()).await.unwrap();
            assert_eq!(json!(session.state().to_map()), json!(then));
        }
    }
}
