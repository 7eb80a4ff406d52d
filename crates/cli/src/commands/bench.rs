//! `sessile bench`: how fast a store is, with the workloads of the performance page.

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use sessile_session::{
    Content, CreateSession, Event, EventActions, EventWindow, Ids, ListSessions, RandomIds, SessionKey,
    SessionService,
};
use tokio::task::JoinSet;

use crate::args::{OutputArgs, StoreArgs};
use crate::output::Output;
use crate::progress::Progress;
use crate::stderr::say;
use crate::store_url::{Need, with_sessions};

/// The arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// How long each workload runs, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// How many tasks append at once.
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    tasks: u32,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// The result of a workload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    workload: String,
    operations: usize,
    per_second: f64,
    /// The 50th and 99th percentile of the latency, in microseconds.
    median: f64,
    p99: f64,
}

/// Events in the session that is read.
const HISTORY: usize = 200;
/// Sessions in a page of the list.
const PAGE: usize = 50;

impl Bench {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let url = self.store.store.clone();
        with_sessions(&url, Need::Any, async |service| self.work(service).await).await
    }

    async fn work(&self, service: &SessionService) -> anyhow::Result<()> {
        let run = Run {
            service: service.clone(),
            // A new application, so that the sessions of others are not touched.
            app: format!("sessile-bench-{}", RandomIds.new_id()),
            time: Duration::from_secs(self.seconds),
            tasks: self.tasks as usize,
        };
        let result = self.measure(&run).await;
        let cleaned = run.clean().await;
        result.and(cleaned)
    }

    async fn measure(&self, run: &Run) -> anyhow::Result<()> {
        let mut output = Output::new(&self.output);
        let progress = Progress::counting("workloads");
        say(format_args!("each workload takes {} s, in the application {}", self.seconds, run.app));
        run.prepare().await?;
        let mut rows = Vec::new();
        for workload in [Workload::OneWriter, Workload::ManyWriters, Workload::Get, Workload::List] {
            let measured = run.workload(workload).await?;
            progress.advance(1);
            match output.is_json() {
                true => output.json(&measured)?,
                false => rows.push([
                    measured.workload,
                    format!("{:.0}", measured.per_second),
                    format!("{:.0} µs", measured.median),
                    format!("{:.0} µs", measured.p99),
                ]),
            }
            output.flush()?;
        }
        drop(progress);
        if !output.is_json() {
            output.table(["WORKLOAD", "PER SECOND", "MEDIAN", "99 OF 100"], &rows)?;
        }
        output.finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workload {
    OneWriter,
    ManyWriters,
    Get,
    List,
}

/// One run of the benchmark.
struct Run {
    service: SessionService,
    app: String,
    time: Duration,
    tasks: usize,
}

impl Run {
    /// Creates a session for each task, and at least enough of them for a page of the list.
    async fn prepare(&self) -> anyhow::Result<()> {
        for id in 0..self.tasks.max(PAGE) {
            let new = CreateSession::new(&self.app, "user").with_id(format!("s{id}"));
            self.service.create(new).await.context("cannot create the sessions of the benchmark")?;
        }
        for n in 0..HISTORY {
            self.service.append_to(&self.key(0), event(n)).await?;
        }
        Ok(())
    }

    async fn workload(&self, workload: Workload) -> anyhow::Result<Measured> {
        let tasks = if workload == Workload::ManyWriters { self.tasks } else { 1 };
        let start = Instant::now();
        let mut running = JoinSet::new();
        for task in 0..tasks {
            let (service, time, key) = (self.service.clone(), self.time, self.key(task));
            running.spawn(async move {
                let mut times = Vec::new();
                while start.elapsed() < time {
                    let began = Instant::now();
                    once(&service, workload, &key, times.len()).await?;
                    times.push(began.elapsed());
                }
                anyhow::Ok(times)
            });
        }
        let mut times = Vec::new();
        while let Some(task) = running.join_next().await {
            times.extend(task.context("a task of the benchmark failed")??);
        }
        let took = start.elapsed().as_secs_f64();
        times.sort_unstable();
        let micros = |index: usize| times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6);
        Ok(Measured {
            workload: match workload {
                Workload::OneWriter => "append, one writer".to_owned(),
                Workload::ManyWriters => format!("append, {tasks} tasks, one hot app key"),
                Workload::Get => format!("get, the last 20 of {HISTORY} events and more"),
                Workload::List => format!("list, a page of {PAGE}"),
            },
            operations: times.len(),
            per_second: times.len() as f64 / took,
            median: micros(times.len() / 2),
            p99: micros(times.len() * 99 / 100),
        })
    }

    /// Deletes the sessions of the benchmark, and its keys of shared state.
    async fn clean(&self) -> anyhow::Result<()> {
        for id in 0..self.tasks.max(PAGE) {
            self.service
                .delete(&self.key(id))
                .await
                .context("cannot delete the sessions of the benchmark")?;
        }
        let (mut app, mut user) = (sessile_state::Delta::new(), sessile_state::Delta::new());
        app.remove("hot");
        user.remove("last");
        self.service.write_app_state(&self.app, &app).await?;
        self.service.write_user_state(&self.app, "user", &user).await?;
        Ok(())
    }

    fn key(&self, id: usize) -> SessionKey {
        SessionKey::from_stored(&self.app, "user", format!("s{id}"))
    }
}

async fn once(
    service: &SessionService,
    workload: Workload,
    key: &SessionKey,
    n: usize,
) -> anyhow::Result<()> {
    match workload {
        Workload::OneWriter | Workload::ManyWriters => drop(service.append_to(key, event(n)).await?),
        Workload::Get => drop(service.get(key, EventWindow::last(20)).await?),
        Workload::List => {
            let (app, user) = (key.app().to_owned(), Some(key.user().to_owned()));
            drop(service.list(&ListSessions { app, user, page_size: PAGE, ..Default::default() }).await?);
        }
    }
    Ok(())
}

/// An event of about 600 bytes that changes two keys of its session, one of its user, one of the
/// application.
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
