//! A server that is stopped and started, and whose connections are cut while it works.

use std::time::Duration;

use serde_json::{Value, json};
use sessile_postgres::PostgresStore;
use sessile_session::{
    ChangeWindow, CreateSession, Event, EventActions, EventWindow, ScopeKey, Session, SessionError,
    SessionKey, SessionService, StateWrite,
};
use sessile_state::Delta;
use tokio_postgres::NoTls;

use crate::cluster::Cluster;
use crate::proxy::Proxy;

fn key(id: &str) -> SessionKey {
    SessionKey::new("shop", "ada", id).expect("a valid key")
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

async fn service(url: &str) -> SessionService {
    SessionService::new(PostgresStore::connect_url(url).await.expect("the database can be used"))
}

async fn stored(service: &SessionService, id: &str) -> Option<Session> {
    service.get(&key(id), EventWindow::ALL).await.expect("it can be read")
}

fn assert_in_doubt<T: std::fmt::Debug>(done: Result<T, SessionError>, advice: &str) {
    let error = done.expect_err("the answer is lost");
    assert!(matches!(error, SessionError::InDoubt { .. }), "{error:?}");
    assert!(error.to_string().contains(advice), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_went_away_is_used_again_when_it_is_back() {
    let cluster = Cluster::start();
    let service = service(&format!("{}?pool_timeout=5", cluster.url())).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    service.append_to(&key("s"), event("e1", json!({"a": 1}))).await.unwrap();
    cluster.stop();
    for error in [
        service.get(&key("s"), EventWindow::ALL).await.map(drop).unwrap_err(),
        service.append_to(&key("s"), event("e2", json!({}))).await.map(drop).unwrap_err(),
        service.create(CreateSession::new("shop", "ada")).await.map(drop).unwrap_err(),
        service.delete(&key("s")).await.map(drop).unwrap_err(),
        service.app_state("shop").await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, SessionError::Unavailable { .. }), "nothing was done: {error:?}");
        assert!(error.to_string().contains("is it running"), "{error}");
    }
    cluster.restart();
    assert_eq!(stored(&service, "s").await.unwrap().version(), 1);
    assert_eq!(service.append_to(&key("s"), event("e2", json!({}))).await.unwrap(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_the_server_took_with_it_is_in_doubt_and_can_be_repeated() {
    let cluster = Cluster::start();
    let service = service(&format!("{}?pool_timeout=5", cluster.url())).await;
    service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    // Another transaction locks the session, so that the append is waiting when the server is
    // killed.
    let (holder, connection) = tokio_postgres::connect(&cluster.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    holder.batch_execute("BEGIN; SELECT 1 FROM sessions FOR UPDATE").await.unwrap();
    let appending = {
        let service = service.clone();
        tokio::spawn(async move { service.append_to(&key("s"), event("e1", json!({"user:a": 1}))).await })
    };
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sessile_commit%' AND wait_event_type = 'Lock'";
    while holder.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    cluster.kill();
    assert_in_doubt(appending.await.unwrap(), "append the same event again");
    cluster.restart();
    assert_eq!(stored(&service, "s").await.unwrap().version(), 0, "it was not done");
    assert_eq!(service.append_to(&key("s"), event("e1", json!({"user:a": 1}))).await.unwrap(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_done_once() {
    let cluster = Cluster::start();
    let proxy = Proxy::start(cluster.port()).await;
    let url = format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable", proxy.port());
    let service = service(&url).await;
    // Statements are prepared after their first use, so that the next answer is that of a commit.
    for id in ["s", "gone"] {
        service.create(CreateSession::new("shop", "ada").with_id(id)).await.unwrap();
    }
    service.append_to(&key("s"), event("e1", json!({"app:n": 1}))).await.unwrap();
    service.delete(&key("none")).await.unwrap();
    let n = |value: i32| Delta::from_iter([("n", json!(value))]);
    service.write_app_state("shop", &n(2)).await.unwrap();

    proxy.lose_the_next_answer();
    assert_eq!(service.append_to(&key("s"), event("e2", json!({"app:n": 3}))).await.unwrap(), Some(2));
    let read = stored(&service, "s").await.unwrap();
    assert_eq!(
        (read.version(), read.state().get("app:n")),
        (2, Some(3)),
        "the second attempt finds the first"
    );

    proxy.lose_the_next_answer();
    assert_eq!(stored(&service, "s").await.unwrap().version(), 2, "a read is tried again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_or_a_write_of_shared_state_whose_answer_is_lost_is_done_once_and_answered() {
    let cluster = Cluster::start();
    let proxy = Proxy::start(cluster.port()).await;
    // One connection, so that a statement that was used once is already prepared on it.
    let url =
        format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable&pool_size=1", proxy.port());
    let service = service(&url).await;
    let create =
        |id: &str| CreateSession::new("shop", "ada").with_id(id).with_state(json!({"user:made": id}));
    service.create(create("s")).await.unwrap();

    proxy.lose_the_next_answer();
    let made = service.create(create("repeated")).await.unwrap();
    assert_eq!(stored(&service, "repeated").await.unwrap().incarnation(), made.incarnation());
    assert_eq!(made.state().get::<String>("user:made").as_deref(), Some("repeated"));
    assert!(matches!(service.create(create("repeated")).await, Err(SessionError::AlreadyExists { .. })));
    let user = ScopeKey::User("shop".to_owned(), "ada".to_owned());
    let versions = service.store().scope_changes(&user, ChangeWindow::newest(10)).await.unwrap();
    assert_eq!(versions.len(), 2, "shared state was changed once by each creation");

    let add = || {
        let mut delta = Delta::new();
        delta.add("n", 1);
        delta
    };
    let first = service.write_app_state("shop", add()).await.unwrap();
    proxy.lose_the_next_answer();
    let second = service.write_app_state("shop", add()).await.unwrap();
    assert_eq!((second.version, json!(*second.state)), (first.version + 1, json!({"n": 2})));
    assert_eq!(json!(service.app_state("shop").await.unwrap()), json!({"n": 2}));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_repeated_or_gets_no_answer_is_reported_as_in_doubt() {
    let cluster = Cluster::start();
    let proxy = Proxy::start(cluster.port()).await;
    let url =
        format!("postgresql://postgres@127.0.0.1:{}/postgres?sslmode=disable&pool_size=1", proxy.port());
    let service = service(&url).await;
    let create = |id: &str| CreateSession::new("shop", "ada").with_id(id);
    service.create(create("doubtful")).await.unwrap();
    service.delete(&key("none")).await.unwrap();
    proxy.lose_the_next_answer();
    assert_in_doubt(service.delete(&key("doubtful")).await, "delete it again");
    assert!(!service.delete(&key("doubtful")).await.unwrap());

    service.create(create("s")).await.unwrap();
    proxy.lose_all_answers_after(0);
    assert_in_doubt(service.create(create("unanswered")).await, "create it again");
    proxy.mend();
    assert!(matches!(service.create(create("unanswered")).await, Err(SessionError::AlreadyExists { .. })));
    let write = || StateWrite { request: Some("r1".to_owned()), ..StateWrite::new(app(), json!({"n": 1})) };
    service.write_app_state("shop", json!({"n": 0})).await.unwrap();
    proxy.lose_all_answers_after(0);
    assert_in_doubt(service.write_state(write()).await, "the same request id");
    proxy.mend();
    service.write_app_state("shop", json!({"later": 2})).await.unwrap();
    let repeated = service.write_state(write()).await.unwrap();
    assert_eq!(
        json!(*repeated.state),
        json!({"n": 1}),
        "it was committed, and the retry returns that result"
    );
    assert_eq!(json!(service.app_state("shop").await.unwrap()), json!({"n": 1, "later": 2}));
}

fn app() -> ScopeKey {
    ScopeKey::App("shop".to_owned())
}
