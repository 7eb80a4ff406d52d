//! `adk-session` as a contestant: `memory`, or the URL of its database.

use std::collections::HashMap;
use std::sync::Arc;

use adk_core::{AdkIdentity, AppName, Content, Event, SessionId, UserId};
use adk_session::inmemory::InMemorySessionService;
use adk_session::postgres::PostgresSessionService;
use adk_session::sqlite::SqliteSessionService;
use adk_session::{AppendEventRequest, CreateRequest, GetRequest, ListRequest, Session, SessionService};
use serde_json::json;
use sessile_contestant::{Changes, Contestant, Failure, Reading, Tool, serve};

mod counting;

struct Peer(Arc<dyn SessionService>);

fn main() {
    let url = std::env::args().nth(1).expect("usage: sessile-peer-adk-session memory|URL");
    serve(open(url));
}

async fn open(url: String) -> Peer {
    let service: Arc<dyn SessionService> = if url == "memory" {
        Arc::new(InMemorySessionService::new())
    } else if url.starts_with("sqlite") {
        let service = SqliteSessionService::new(&url).await.expect("its file opens");
        service.migrate().await.expect("its tables are made");
        Arc::new(service)
    } else {
        let pool = sqlx::PgPool::connect(&url).await.expect("its server is there");
        let service = PostgresSessionService::from_pool(pool.clone());
        // Its migration takes a lock on one connection and may release it on another, which keeps
        // the next process waiting for ever: only the first one migrates, and its connections are
        // closed after.
        if std::env::var_os("MIGRATE").is_some() {
            service.migrate().await.expect("its tables are made");
            pool.close().await;
            return Peer(Arc::new(PostgresSessionService::new(&url).await.expect("its server is there")));
        }
        Arc::new(service)
    };
    Peer(service)
}

fn identity(id: &str) -> AdkIdentity {
    let reason = "the ids of the comparison are valid";
    AdkIdentity::new(
        AppName::try_from("bench").expect(reason),
        UserId::try_from("user").expect(reason),
        SessionId::try_from(id).expect(reason),
    )
}

fn reading(id: &str, last: Option<usize>) -> GetRequest {
    let (app_name, user_id) = ("bench".to_owned(), "user".to_owned());
    GetRequest { app_name, user_id, session_id: id.to_owned(), num_recent_events: last, after: None }
}

fn failure(error: impl std::fmt::Display) -> Failure {
    error.to_string()
}

impl Contestant for Peer {
    type Event = Event;

    fn event(&self, n: usize, changes: Changes) -> Option<Event> {
        let mut event = Event::new(format!("e-{n}"));
        event.author = "agent".to_owned();
        event.llm_response.content = Some(Content::new("model").with_text("x".repeat(220)));
        let own = [("step", json!(n)), ("note", json!("a short text"))];
        let shared = [("user:last", json!(n)), ("app:hot", json!(n))];
        let delta: Vec<_> = match changes {
            Changes::AllScopes => own.into_iter().chain(shared).collect(),
            Changes::OwnKeys => own.into(),
            Changes::SetOne => vec![("app:set", json!(n))],
            Changes::AddOne => return None,
        };
        event.actions.state_delta = delta.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Some(event)
    }

    async fn create(&self, id: &str) -> Result<(), Failure> {
        let (app_name, user_id) = ("bench".to_owned(), "user".to_owned());
        let new = CreateRequest { app_name, user_id, session_id: Some(id.to_owned()), state: HashMap::new() };
        self.0.create(new).await.map(drop).map_err(failure)
    }

    async fn append(&self, id: &str, event: Event) -> Result<(), Failure> {
        let request = AppendEventRequest { identity: identity(id), event };
        self.0.append_event_for_identity(request).await.map_err(failure)
    }

    async fn get(&self, id: &str, last: Option<usize>) -> Result<Reading, Failure> {
        let session: Arc<dyn Session> = self.0.get(reading(id, last)).await.map_err(failure)?.into();
        let (events, held) = (session.events().len(), Box::new(session.clone()));
        let json = move || serde_json::to_string(&session.events().all()).map_or(0, |text| text.len());
        Ok(Reading { events, held, json_bytes: Box::new(json) })
    }

    async fn list(&self, size: usize) -> Result<usize, Failure> {
        let (app_name, user_id) = ("bench".to_owned(), "user".to_owned());
        let page = ListRequest { app_name, user_id, limit: Some(size), offset: None };
        Ok(self.0.list(page).await.map_err(failure)?.len())
    }

    async fn increment(&self, id: &str) -> Result<(), Failure> {
        let next = self.counter(id).await? + 1;
        let mut event = Event::new("e-counter");
        event.author = "agent".to_owned();
        event.actions.state_delta = HashMap::from([("user:counter".to_owned(), json!(next))]);
        self.append(id, event).await
    }

    fn add(&self, _: &str) -> Option<impl Future<Output = Result<(), Failure>> + Send> {
        None::<std::future::Ready<Result<(), Failure>>>
    }

    fn run_tool(&self, id: &str, tool: Tool) -> Option<impl Future<Output = Result<i64, Failure>> + Send> {
        let (sessions, id) = (self.0.clone(), id.to_owned());
        match tool {
            Tool::ReadAndSet => Some(async move { counting::run(sessions, &id).await.map(|()| 0) }),
            Tool::Add => None,
        }
    }

    async fn counter(&self, id: &str) -> Result<i64, Failure> {
        let session = self.0.get(reading(id, Some(0))).await.map_err(failure)?;
        Ok(session.state().get("user:counter").and_then(|value| value.as_i64()).unwrap_or(0))
    }
}
