use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::memory::resident;
use crate::{Changes, Contestant, Failure, Tool};

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
        "append" => append(&*contestant, &session, count, changes(request)?).await,
        "append_many" => {
            Ok(append_many(&contestant, number("tasks"), number("each"), changes(request)?).await)
        }
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
        "add" => {
            let mut errors = 0;
            for _ in 0..count {
                let Some(adding) = contestant.add(&session) else { return Ok(cannot()) };
                errors += usize::from(adding.await.is_err());
            }
            Ok(json!({"errors": errors}))
        }
        "tool_set" => run_tools(&*contestant, &session, count, Tool::ReadAndSet).await,
        "tool_add" => run_tools(&*contestant, &session, count, Tool::Add).await,
        "increment_many" => Ok(increment_many(&contestant, number("tasks"), number("each")).await),
        "counter" => Ok(json!({"value": contestant.counter(&session).await?})),
        other => Err(format!("there is no operation {other:?}")),
    }
}

/// Runs an agent whose tool counts: how many runs failed, and what the others reported as
/// overwritten.
async fn run_tools<C: Contestant>(
    contestant: &C,
    session: &str,
    count: usize,
    tool: Tool,
) -> Result<Value, Failure> {
    let (mut errors, mut reported) = (0, 0);
    for _ in 0..count {
        let Some(running) = contestant.run_tool(session, tool) else { return Ok(cannot()) };
        match running.await {
            Ok(overwritten) => reported += overwritten,
            Err(_) => errors += 1,
        }
    }
    Ok(json!({"errors": errors, "reported": reported}))
}

/// What the events of a request change.
fn changes(request: &Value) -> Result<Changes, Failure> {
    match request["changes"].as_str() {
        None => Ok(Changes::AllScopes),
        Some("own") => Ok(Changes::OwnKeys),
        Some("set") => Ok(Changes::SetOne),
        Some("add") => Ok(Changes::AddOne),
        Some(other) => Err(format!("there are no changes {other:?}")),
    }
}

/// The answer of a library that has no such operation.
fn cannot() -> Value {
    json!({"cannot": true})
}

/// Appends one after the other: all together, and the median of each.
async fn append<C: Contestant>(
    contestant: &C,
    session: &str,
    count: usize,
    changes: Changes,
) -> Result<Value, Failure> {
    let events: Option<Vec<_>> = (0..count).map(|n| contestant.event(n, changes)).collect();
    let Some(events) = events else { return Ok(cannot()) };
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
async fn append_many<C: Contestant>(
    contestant: &Arc<C>,
    tasks: usize,
    each: usize,
    changes: Changes,
) -> Value {
    let events: Option<Vec<Vec<_>>> = (0..tasks)
        .map(|task| (0..each).map(|n| contestant.event(task * each + n, changes)).collect())
        .collect();
    let Some(events) = events else { return cannot() };
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

/// Increments one counter by many tasks at once, each from its own session: how long each took, and
/// what the counter says.
async fn increment_many<C: Contestant>(contestant: &Arc<C>, tasks: usize, each: usize) -> Value {
    let start = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let contestant = contestant.clone();
            tokio::spawn(async move {
                let (session, mut errors, mut times) = (format!("s{task}"), 0, Vec::with_capacity(each));
                for _ in 0..each {
                    let start = Instant::now();
                    errors += usize::from(contestant.increment(&session).await.is_err());
                    times.push(start.elapsed().as_secs_f64());
                }
                (errors, times)
            })
        })
        .collect();
    let (mut errors, mut times) = (0, Vec::new());
    for task in running {
        let (failed, took) = task.await.expect("a task of the comparison does not panic");
        errors += failed;
        times.extend(took);
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times.get((times.len() as f64 * part) as usize).copied().unwrap_or(0.0);
    json!({"seconds": seconds, "errors": errors, "p50": at(0.5), "p99": at(0.99)})
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
                    while append_one(&*contestant, &session, n).await.is_err() {
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

async fn append_one<C: Contestant>(contestant: &C, session: &str, n: usize) -> Result<(), Failure> {
    let event = contestant.event(n, Changes::AllScopes);
    contestant.append(session, event.expect("every library sets keys of all scopes")).await
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
