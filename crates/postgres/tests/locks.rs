//! Rows that another transaction has locked: only events that need them wait.

mod support;

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use sessile_session::{CreateSession, Event, EventActions, EventWindow, SessionKey, SessionService};
use support::{connect, new_schema, sql};
use tokio::time::timeout;
use tokio_postgres::NoTls;

/// Only reached when something hangs.
const FOREVER: Duration = Duration::from_secs(60);

/// A transaction that holds its locks until the test ends it.
struct Idle {
    client: tokio_postgres::Client,
}

impl Idle {
    async fn holding(url: &str, statements: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the server is reached");
        tokio::spawn(connection);
        client.batch_execute(&format!("BEGIN; {statements}")).await.expect("the statements run");
        Self { client }
    }

    async fn end(self) {
        self.client.batch_execute("COMMIT").await.expect("the transaction ends");
    }
}

fn key(app: &str, user: &str, id: &str) -> SessionKey {
    SessionKey::new(app, user, id).expect("a valid key")
}

fn event(id: &str, delta: Value) -> Event {
    let Value::Object(delta) = delta else { panic!("a delta is an object") };
    Event {
        id: id.to_owned(),
        actions: EventActions::from_delta(delta),
        timestamp: Some(5.0),
        ..Event::new("agent")
    }
}

async fn create(service: &SessionService, app: &str, user: &str, id: &str) {
    service.create(CreateSession::new(app, user).with_id(id)).await.expect("it is created");
}

/// Appends to a session, in the background, in this order.
fn appending(
    service: &SessionService,
    key: &SessionKey,
    events: Vec<Event>,
) -> tokio::task::JoinHandle<Vec<u64>> {
    let (service, key) = (service.clone(), key.clone());
    tokio::spawn(async move {
        let appended = join_all(events.into_iter().map(|event| service.append_to(&key, event))).await;
        appended.into_iter().map(|version| version.expect("it is appended").expect("a version")).collect()
    })
}

/// The ids of a session's events.
async fn ids(service: &SessionService, key: &SessionKey) -> Vec<String> {
    let session = service.get(key, EventWindow::ALL).await.expect("it is read").expect("it is there");
    session.events().iter().map(|event| event.id.clone()).collect()
}

async fn service(url: &str) -> SessionService {
    SessionService::new(connect(url).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_session_delays_no_other() {
    for pool_size in [1, 16] {
        let url = format!("{}&pool_size={pool_size}", new_schema().await);
        let service = service(&url).await;
        for n in 0..12 {
            create(&service, "shop", "ada", &format!("s{n}")).await;
        }
        let plain = url.replace(&format!("&pool_size={pool_size}"), "");
        let idle =
            Idle::holding(&plain, "SELECT FROM sessions WHERE id IN ('s0', 's1', 's2') FOR UPDATE").await;
        let locked: Vec<SessionKey> = (0..3).map(|n| key("shop", "ada", &format!("s{n}"))).collect();
        let first: Vec<_> = locked
            .iter()
            .map(|key| {
                appending(&service, key, (0..5).map(|n| event(&format!("e{n}"), json!({"n": n}))).collect())
            })
            .collect();
        let others = (3..12).map(|n| {
            let (service, key) = (service.clone(), key("shop", "ada", &format!("s{n}")));
            async move {
                for n in 0..5 {
                    let delta = json!({"n": n, "user:n": n, "app:n": n});
                    service.append_to(&key, event(&format!("e{n}"), delta)).await.expect("it is appended");
                }
            }
        });
        timeout(FOREVER, join_all(others)).await.expect("events of other sessions do not wait");
        // Later events are queued behind those that wait, even the same event a second time.
        let mut later: Vec<Event> = (5..8).map(|n| event(&format!("e{n}"), json!({"n": n}))).collect();
        later.push(event("e0", json!({"n": 0})));
        let later: Vec<_> = locked.iter().map(|key| appending(&service, key, later.clone())).collect();
        assert!(first.iter().chain(&later).all(|waiting| !waiting.is_finished()));
        assert!(ids(&service, &locked[0]).await.is_empty());
        idle.end().await;
        for waiting in first {
            assert_eq!(timeout(FOREVER, waiting).await.expect("it goes on").unwrap(), [1, 2, 3, 4, 5]);
        }
        for key in &locked {
            service.append_to(key, event("e8", json!({"n": 8}))).await.unwrap();
        }
        for (key, waiting) in locked.iter().zip(later) {
            let versions = timeout(FOREVER, waiting).await.expect("it goes on").unwrap();
            assert_eq!(versions, [6, 7, 8, 1], "the same event again is answered as the first");
            assert_eq!(ids(&service, key).await, ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_shared_state_delays_only_events_that_change_it() {
    let url = new_schema().await;
    let service = service(&url).await;
    for (app, user) in [("shop", "ada"), ("shop", "bob"), ("game", "ada")] {
        create(&service, app, user, "s").await;
    }
    let idle = Idle::holding(
        &url,
        "SELECT FROM app_states WHERE app_name = 'shop' FOR UPDATE;
         SELECT FROM user_states WHERE app_name = 'game' FOR UPDATE",
    )
    .await;
    let waiting = [
        appending(&service, &key("shop", "ada", "s"), vec![event("a", json!({"app:n": 1}))]),
        appending(&service, &key("game", "ada", "s"), vec![event("a", json!({"user:n": 1}))]),
    ];
    let free = [
        appending(&service, &key("shop", "bob", "s"), vec![event("a", json!({"user:n": 1}))]),
        appending(&service, &key("shop", "bob", "s"), vec![event("b", json!({"n": 1}))]),
    ];
    timeout(FOREVER, join_all(free)).await.expect("they do not need what is held");
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()));
    idle.end().await;
    timeout(FOREVER, join_all(waiting)).await.expect("they go on");
    assert_eq!(service.app_state("shop").await.unwrap()["n"], json!(1));
    assert_eq!(service.user_state("game", "ada").await.unwrap()["n"], json!(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_another_transaction_is_inserting_delays_only_events_that_change_it() {
    let url = new_schema().await;
    let service = service(&url).await;
    create(&service, "shop", "ada", "s").await;
    create(&service, "game", "ada", "s").await;
    sql(&url, "DELETE FROM app_states WHERE app_name = 'shop'").await;
    let idle = Idle::holding(
        &url,
        "INSERT INTO app_states (app_name, state, update_time) VALUES ('shop', '{\"theirs\": 1}', now())",
    )
    .await;
    let waiting = appending(&service, &key("shop", "ada", "s"), vec![event("a", json!({"app:ours": 2}))]);
    let free = appending(&service, &key("game", "ada", "s"), vec![event("a", json!({"app:n": 1}))]);
    timeout(FOREVER, free).await.expect("it does not need what is held").unwrap();
    assert!(!waiting.is_finished());
    idle.end().await;
    timeout(FOREVER, waiting).await.expect("it goes on").unwrap();
    let state = service.app_state("shop").await.unwrap();
    assert_eq!((&*state["theirs"], &*state["ours"]), (&json!(1), &json!(2)));
}
