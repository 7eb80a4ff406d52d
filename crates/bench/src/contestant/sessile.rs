//! Sessile itself.

use std::sync::Arc;

use serde_json::json;
use sessile_agent::{RunRequest, Runner};
use sessile_contestant::{Changes, Contestant, Failure, Reading, Tool};
use sessile_postgres::PostgresStore;
use sessile_session::{
    Content, CreateSession, Event, EventActions, EventWindow, ListSessions, MemoryStore, Session,
    SessionError, SessionKey, SessionService,
};
use sessile_sqlite::SqliteStore;
use sessile_state::{Delta, State};

use crate::counting;

pub(crate) struct Sessile {
    sessions: SessionService,
    /// Whose agent has a tool that reads, adds one and sets.
    setting: Runner,
    /// Whose agent has a tool that adds by an operation.
    adding: Runner,
}

pub(crate) async fn open(url: String) -> Sessile {
    let service = match url.as_str() {
        "memory" => SessionService::new(MemoryStore::new()),
        url if url.starts_with("sqlite") => {
            SessionService::new(SqliteStore::open_url(url).await.expect("the file opens"))
        }
        url => SessionService::new(PostgresStore::connect_url(url).await.expect("the server is there")),
    };
    let runner = |tool| counting::runner(service.clone(), tool).expect("the agent is built");
    Sessile { setting: runner(Tool::ReadAndSet), adding: runner(Tool::Add), sessions: service }
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("bench", "user", id).expect("the ids of the comparison are valid")
}

fn failure(error: SessionError) -> Failure {
    error.to_string()
}

fn adding(key: &str) -> EventActions {
    let mut delta = Delta::new();
    delta.add(key, 1);
    EventActions::from_delta(delta)
}

impl Sessile {
    async fn session(&self, id: &str, window: EventWindow) -> Result<Session, Failure> {
        let session = self.sessions.get(&key(id), window).await.map_err(failure)?;
        session.ok_or_else(|| format!("there is no session {id}"))
    }
}

impl Contestant for Sessile {
    type Event = Event;

    fn event(&self, n: usize, changes: Changes) -> Option<Event> {
        let mut event = Event::new("agent").with_content(Content::text("model", "x".repeat(220)));
        event.invocation_id = format!("e-{n}");
        let (step, note) = (("step", json!(n)), ("note", json!("a short text")));
        event.actions = match changes {
            Changes::AllScopes => {
                EventActions::from_delta([step, note, ("user:last", json!(n)), ("app:hot", json!(n))])
            }
            Changes::OwnKeys => EventActions::from_delta([step, note]),
            Changes::SetOne => EventActions::from_delta([("app:set", json!(n))]),
            Changes::AddOne => adding("app:added"),
        };
        Some(event)
    }

    async fn create(&self, id: &str) -> Result<(), Failure> {
        let new = CreateSession::new("bench", "user").with_id(id);
        self.sessions.create(new).await.map(drop).map_err(failure)
    }

    async fn append(&self, id: &str, event: Event) -> Result<(), Failure> {
        self.sessions.append_to(&key(id), event).await.map(drop).map_err(failure)
    }

    async fn get(&self, id: &str, last: Option<usize>) -> Result<Reading, Failure> {
        let window = last.map_or(EventWindow::ALL, EventWindow::last);
        let session = Arc::new(self.session(id, window).await?);
        let (events, held) = (session.events().len(), Box::new(session.clone()));
        let json = move || serde_json::to_string(&*session).map_or(0, |text| text.len());
        Ok(Reading { events, held, json_bytes: Box::new(json) })
    }

    async fn list(&self, size: usize) -> Result<usize, Failure> {
        let list = ListSessions {
            app: "bench".to_owned(),
            user: Some("user".to_owned()),
            page_size: size,
            ..ListSessions::default()
        };
        Ok(self.sessions.list(&list).await.map_err(failure)?.sessions.len())
    }

    async fn increment(&self, id: &str) -> Result<(), Failure> {
        let add = |state: &State| Ok(state.try_modify("user:counter", 0, |n| n + 1)?);
        self.sessions.transact(&key(id), add).await.map(drop).map_err(failure)
    }

    fn add(&self, id: &str) -> Option<impl Future<Output = Result<(), Failure>> + Send> {
        let event = Event::new("agent").with_actions(adding("user:counter"));
        Some(self.append(id, event))
    }

    fn run_tool(&self, id: &str, tool: Tool) -> Option<impl Future<Output = Result<i64, Failure>> + Send> {
        let runner = match tool {
            Tool::ReadAndSet => &self.setting,
            Tool::Add => &self.adding,
        };
        let request = RunRequest::new("user", id).with_text("count");
        Some(async move {
            let events = runner.run(request).collect().await.map_err(|error| error.to_string())?;
            Ok(events.iter().map(|event| counting::reported(event)).sum())
        })
    }

    async fn counter(&self, id: &str) -> Result<i64, Failure> {
        Ok(self.session(id, EventWindow::NONE).await?.state().get("user:counter").unwrap_or(0))
    }
}
