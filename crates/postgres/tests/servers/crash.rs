//! The server is killed while it works: everything that was acknowledged is there once, and nothing
//! is half there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use sessile_postgres::PostgresStore;
use sessile_session::{CreateSession, Event, EventActions, EventWindow, SessionKey, SessionService};

use crate::cluster::Cluster;

const ROUNDS: u32 = 8;
const TASKS: usize = 8;
const SESSIONS: usize = 3;

fn key(session: usize) -> SessionKey {
    SessionKey::new("shop", "ada", &format!("s{session}")).expect("a valid key")
}

fn event(id: &str) -> Event {
    let mut event = Event { id: id.to_owned(), ..Event::new("agent") };
    event.actions =
        EventActions::from_delta(["", "user:", "app:"].map(|scope| (format!("{scope}{id}"), json!(id))));
    event
}

/// Appends until it is stopped, and collects the acknowledged events. Errors are expected while the
/// server is down.
async fn append_until(
    stop: Arc<AtomicBool>,
    service: SessionService,
    name: String,
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
) {
    for n in 0.. {
        let id = format!("{name}-{n}");
        if stop.load(Ordering::Relaxed) {
            return;
        }
        if service.append_to(&key(n % SESSIONS), event(&id)).await.is_ok() {
            acknowledged.lock().expect("no task panics").insert(id);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_moments_every_acknowledged_event_is_there_once() {
    let cluster = Cluster::start();
    let url = format!("{}?pool_timeout=5", cluster.url());
    let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
    let first =
        SessionService::new(PostgresStore::connect_url(&url).await.expect("the database can be used"));
    for session in 0..SESSIONS {
        first.create(CreateSession::new("shop", "ada").with_id(format!("s{session}"))).await.unwrap();
    }
    for round in 0..ROUNDS {
        let service =
            SessionService::new(PostgresStore::connect_url(&url).await.expect("the database can be used"));
        let stop = Arc::new(AtomicBool::new(false));
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let name = format!("r{round}-t{task}");
                tokio::spawn(append_until(stop.clone(), service.clone(), name, acknowledged.clone()))
            })
            .collect();
        tokio::time::sleep(random_moment(round)).await;
        cluster.kill();
        stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.expect("no task panics");
        }
        cluster.restart();
        let known = acknowledged.lock().expect("no task panics").clone();
        check(&url, &known).await;
    }
    assert!(
        acknowledged.lock().expect("no task panics").len() > TASKS,
        "the server lived long enough to work"
    );
}

/// Between a fiftieth and a half of a second.
fn random_moment(round: u32) -> Duration {
    let random = uuid::Uuid::new_v4().as_u128() % 480;
    let moment = Duration::from_millis(20 + u64::try_from(random).expect("a small number"));
    eprintln!("round {round}: the server is killed after {moment:?}");
    moment
}

async fn check(url: &str, acknowledged: &BTreeSet<String>) {
    let service =
        SessionService::new(PostgresStore::connect_url(url).await.expect("the database can be used"));
    let mut stored = BTreeSet::new();
    for session in 0..SESSIONS {
        let read = service
            .get(&key(session), EventWindow::ALL)
            .await
            .expect("the session is read")
            .expect("the session exists");
        let versions: Vec<u64> = read.events().iter().map(|event| event.version).collect();
        assert_eq!(versions, Vec::from_iter(1..=read.version()), "no gaps");
        let computed = service.state_at(&key(session), read.version()).await.expect("the history is read");
        let now = read.state().iter().filter(|(key, _)| !key.contains(':'));
        assert!(
            now.eq(computed.iter().map(|(key, value)| (key.as_str(), value))),
            "the state is the fold of the events"
        );
        let own: BTreeSet<String> =
            read.state().keys().filter(|key| !key.contains(':')).map(str::to_owned).collect();
        let ids: BTreeSet<String> = read.events().iter().map(|event| event.id.clone()).collect();
        assert_eq!(own, ids, "the state is what the events set");
        assert_eq!(ids.len() as u64, read.version(), "each once");
        stored.extend(ids);
    }
    let lost: Vec<_> = acknowledged.difference(&stored).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    for shared in [service.app_state("shop").await, service.user_state("shop", "ada").await] {
        let shared = shared.expect("shared state is read");
        assert_eq!(shared.into_keys().collect::<BTreeSet<_>>(), stored, "all scopes or none");
    }
}
