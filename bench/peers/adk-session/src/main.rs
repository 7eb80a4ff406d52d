//! `adk-session` as a contestant: `memory`, or the URL of its database.

use std::collections::HashMap;
use std::sync::Arc;

use adk_core::{AdkIdentity, AppName, Content, Event, SessionId, UserId};
use adk_session::inmemory::InMemorySessionService;
use adk_session::postgres::PostgresSessionService;
use adk_session::sqlite::SqliteSessionService;
use adk_session::{AppendEventRequest, CreateRequest, GetRequest, ListRequest, Session, SessionService};
use serde_json::json;
use sessile_contestant::{Contestant, Failure, Reading, serve};

struct Peer(Box<dyn SessionService>);

fn main() {
    let url = std::env::args().nth(1).expect("usage: sessile-peer-adk-session memory|URL");
    serve(open(url));
}

async fn open(url: String) -> Peer {
    let service: Box<dyn SessionService> = if url == "memory" {
        Box::new(InMemorySessionService::new())
    } else if url.starts_with("sqlite") {
        let service = SqliteSessionService::new(&url).await.expect("its file opens");
        service.migrate().await.expect("its tables are made");
        Box::new(service)
    } else {
        let pool = sqlx::PgPool::connect(&url).await.expect("its server is there");
        let service = PostgresSessionService::from_pool(pool.clone());
        // Its migration takes a lock on one connection and may release it on another, which keeps the next
        // process waiting for ever: only the first one migrates, and its connections are closed after.
        if std::env::var_os("MIGRATE").is_some() {
            service.migrate().await.expect("its tables are made");
            pool.close().await;
            return Peer(Box::new(PostgresSessionService::new(&url).await.expect("its server is there")));
        }
        Box::new(service)
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

    fn event(&self, n: usize) -> Event {
        let mut event = Event::new(format!("e-{n}"));
        event.author = "agent".to_owned();
        event.llm_response.content = Some(Content::new("model").with_text("x".repeat(220)));
        event.actions.state_delta = HashMap::from([
            ("step".to_owned(), json!(n)),
            ("note".to_owned(), json!("a short text")),
            ("user:last".to_owned(), json!(n)),
            ("app:hot".to_owned(), json!(n)),
        ]);
        event
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

    async fn counter(&self, id: &str) -> Result<i64, Failure> {
        let session = self.0.get(reading(id, Some(0))).await.map_err(failure)?;
        Ok(session.state().get("user:counter").and_then(|value| value.as_i64()).unwrap_or(0))
    }
}
