use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::memory::resident;
use crate::{Contestant, Failure};

/// Does what a request asks for.
pub(crate) async fn perform<C: Contestant>(contestant: Arc<C>, request: &Value) -> Result<Value, Failure> {
    let number = |name: &str| request[name].as_u64().map_or(0, |n| n as usize);
    let (session, count) = (format!("s{}", number("session")), number("count"));
    match request["do"].as_str().unwrap_or_default() {
        "create" => {
            for id in number("from")..number("to") {
                contestant.create(&format!("s{id}")).await?;
            }
            Ok(json!({}))
        }
        "append" => append(&*contestant, &session, count).await,
        "append_many" => Ok(append_many(&contestant, number("tasks"), number("each")).await),
        "fill" => fill(contestant, session, number("from")..number("to"), number("tasks")).await,
        "get" => {
            let last = request["last"].as_u64().map(|last| last as usize);
            let mut events = 0;
            let median = median(count, async |_| {
                events = contestant.get(&session, last).await?.events;
                Ok(())
            });
            Ok(json!({"median": median.await?, "events": events}))
        }
        "list" => {
            let size = number("size");
            let mut sessions = 0;
            let median = median(count, async |_| {
                sessions = contestant.list(size).await?;
                Ok(())
            });
            Ok(json!({"median": median.await?, "sessions": sessions}))
        }
        "hold" => hold(&*contestant, &session).await,
        "increment" => {
            let mut errors = 0;
            for _ in 0..count {
                errors += usize::from(contestant.increment(&session).await.is_err());
            }
            Ok(json!({"errors": errors}))
        }
        "counter" => Ok(json!({"value": contestant.counter(&session).await?})),
        other => Err(format!("there is no operation {other:?}")),
    }
}

/// Appends one after the other: all together, and the median of each.
async fn append<C: Contestant>(contestant: &C, session: &str, count: usize) -> Result<Value, Failure> {
    let events: Vec<_> = (0..count).map(|n| contestant.event(n)).collect();
    let mut events = events.into_iter();
    let start = Instant::now();
    let median = median(count, async |_| match events.next() {
        Some(event) => contestant.append(session, event).await,
        None => Ok(()),
    });
    let median = median.await?;
    Ok(json!({"seconds": start.elapsed().as_secs_f64(), "median": median}))
}

/// Appends by many tasks at once, each to its own session, all to one key of the application.
async fn append_many<C: Contestant>(contestant: &Arc<C>, tasks: usize, each: usize) -> Value {
    let events: Vec<Vec<_>> =
        (0..tasks).map(|task| (0..each).map(|n| contestant.event(task * each + n)).collect()).collect();
    let start = Instant::now();
    let running: Vec<_> = events
        .into_iter()
        .enumerate()
        .map(|(task, events)| {
            let contestant = contestant.clone();
            tokio::spawn(async move {
                let (session, mut errors) = (format!("s{task}"), 0);
                for event in events {
                    errors += usize::from(contestant.append(&session, event).await.is_err());
                }
                errors
            })
        })
        .collect();
    let mut errors = 0;
    for task in running {
        errors += task.await.expect("a task of the comparison does not panic");
    }
    json!({"seconds": start.elapsed().as_secs_f64(), "errors": errors})
}

/// Appends events as fast as it goes, trying again what was refused.
async fn fill<C: Contestant>(
    contestant: Arc<C>,
    session: String,
    events: std::ops::Range<usize>,
    tasks: usize,
) -> Result<Value, Failure> {
    let next = Arc::new(AtomicUsize::new(events.start));
    let fillers: Vec<_> = (0..tasks)
        .map(|_| {
            let (contestant, session, next, end) =
                (contestant.clone(), session.clone(), next.clone(), events.end);
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Relaxed);
                    if n >= end {
                        return;
                    }
                    while contestant.append(&session, contestant.event(n)).await.is_err() {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            })
        })
        .collect();
    for filler in fillers {
        filler.await.expect("a task of the comparison does not panic");
    }
    Ok(json!({}))
}

/// Reads a session and says what that cost in memory, and how large the session is as JSON.
async fn hold<C: Contestant>(contestant: &C, session: &str) -> Result<Value, Failure> {
    drop(contestant.get(session, Some(1)).await?); // connections and caches are not the session's
    let before = resident();
    let reading = contestant.get(session, None).await?;
    let after = resident();
    let answer = json!({
        "events": reading.events,
        "held": after.now.saturating_sub(before.now),
        "peak": after.peak.saturating_sub(before.now),
        "json": (reading.json_bytes)(),
    });
    drop(reading.held);
    Ok(answer)
}

async fn median(
    count: usize,
    mut call: impl AsyncFnMut(usize) -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let mut times = Vec::with_capacity(count);
    for n in 0..count {
        let start = Instant::now();
        call(n).await?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(count / 2).copied().unwrap_or(0.0))
}
