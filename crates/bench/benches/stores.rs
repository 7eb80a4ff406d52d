//! Appends, reads and lists on every store, beside the floor: the same rows written durably by hand.
//!
//! `cargo bench -p sessile-bench --bench stores`; PostgreSQL is measured if `SESSILE_TEST_POSTGRES` names one.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints measurements and stops at trouble"
)]

mod floor;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use sessile_postgres::PostgresStore;
use sessile_session::{
    Content, CreateSession, Event, EventActions, EventWindow, ListSessions, MemoryStore, SessionKey,
    SessionService, Store,
};
use sessile_sqlite::{SqliteOptions, SqliteStore};

const TASKS: usize = 64;

/// An event of about 600 bytes that changes two keys of its session, one of its user, one of the application.
fn event(n: usize) -> Event {
    let mut event = Event::new("agent").with_content(Content::text("model", "x".repeat(220)));
    event.invocation_id = format!("e-{n}");
    event.actions = EventActions::from_delta([
        ("step", json!(n)),
        ("note", json!("a short text")),
        ("user:last", json!(n)),
        ("app:hot", json!(n)),
    ]);
    event
}

fn key(id: usize) -> SessionKey {
    SessionKey::new("bench", "user", &format!("s{id}")).unwrap()
}

async fn sessions(service: &SessionService, ids: std::ops::Range<usize>) {
    for id in ids {
        service.create(CreateSession::new("bench", "user").with_id(format!("s{id}"))).await.unwrap();
    }
}

/// Appends by one task, one after the other: events a second.
async fn one_writer(service: &SessionService, count: usize) -> f64 {
    let start = Instant::now();
    for n in 0..count {
        service.append_to(&key(0), event(n)).await.unwrap();
    }
    count as f64 / start.elapsed().as_secs_f64()
}

/// Appends by many tasks, each to its own session, all to one `app:` key: events a second.
async fn many_writers(service: &SessionService, each: usize) -> f64 {
    let start = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let service = service.clone();
            tokio::spawn(async move {
                for n in 0..each {
                    service.append_to(&key(task), event(n)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    (TASKS * each) as f64 / start.elapsed().as_secs_f64()
}

/// The median of many calls, in microseconds.
async fn median<T>(calls: usize, call: impl AsyncFn(usize) -> T) -> f64 {
    let mut times = Vec::with_capacity(calls);
    for n in 0..calls {
        let start = Instant::now();
        call(n).await;
        times.push(start.elapsed());
    }
    times.sort();
    times[calls / 2].as_secs_f64() * 1e6
}

/// Fills session 0 up to this many events, many at a time where the store commits together.
async fn fill(service: &SessionService, from: usize, to: usize) {
    let next = Arc::new(std::sync::atomic::AtomicUsize::new(from));
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (service, next) = (service.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if n >= to {
                        return;
                    }
                    service.append_to(&key(0), event(n)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

async fn measure(name: &str, store: Arc<dyn Store>, scale: usize) {
    let service = SessionService::over(store);
    sessions(&service, 0..TASKS).await;
    println!("| {name}: append, one writer | {:.0}/s |", one_writer(&service, 400 * scale).await);
    println!(
        "| {name}: append, {TASKS} tasks, one hot app key | {:.0}/s |",
        many_writers(&service, 40 * scale).await
    );
    let mut length = 0;
    service.delete(&key(0), None).await.unwrap();
    sessions(&service, 0..1).await;
    sessions(&service, TASKS..1000).await;
    for history in [10, 1_000, 10_000, 100_000] {
        fill(&service, length, history).await;
        let append = median(200, async |n| service.append_to(&key(0), event(n)).await.unwrap()).await;
        length = history + 200;
        let last = median(100, async |_| service.get(&key(0), EventWindow::last(20)).await.unwrap()).await;
        println!("| {name}: append at {history} events, last 20 of them | {append:.0} µs, {last:.0} µs |");
        if history == 10_000 {
            let all = median(5, async |_| service.get(&key(0), EventWindow::ALL).await.unwrap()).await;
            println!("| {name}: get of {length} events | {:.1} ms |", all / 1000.0);
        }
    }
    let list = ListSessions {
        app: "bench".to_owned(),
        user: Some("user".to_owned()),
        page_size: 50,
        ..Default::default()
    };
    println!(
        "| {name}: page of 50 of 1000 sessions | {:.0} µs |",
        median(50, async |_| service.list(&list).await.unwrap()).await
    );
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    println!("| what | measured |\n|---|---|");
    let floor = floor::Sqlite::new(&folder.path().join("floor.db"));
    println!("| floor of SQLite: one by one | {:.0}/s |", floor.per_second(1, Duration::from_secs(2)));
    println!(
        "| floor of SQLite: {TASKS} in a transaction | {:.0}/s |",
        floor.per_second(TASKS, Duration::from_secs(2))
    );
    runtime.block_on(async {
        measure("memory", Arc::new(MemoryStore::new()), 10).await;
        let sqlite = SqliteStore::open(SqliteOptions::new(folder.path().join("sessile.db"))).await.unwrap();
        measure("SQLite", Arc::new(sqlite), 5).await;
        match std::env::var("SESSILE_TEST_POSTGRES") {
            Ok(url) => {
                measure("PostgreSQL", Arc::new(PostgresStore::connect_url(&url).await.unwrap()), 3).await
            }
            Err(_) => println!("| PostgreSQL | not measured: SESSILE_TEST_POSTGRES names none |"),
        }
    });
}
