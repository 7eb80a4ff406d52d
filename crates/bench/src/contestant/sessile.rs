//! Sessile itself.

use std::sync::Arc;

use serde_json::json;
use sessile_contestant::{Contestant, Failure, Reading};
use sessile_postgres::PostgresStore;
use sessile_session::{
    Content, CreateSession, Event, EventActions, EventWindow, ListSessions, MemoryStore, Session,
    SessionError, SessionKey, SessionService,
};
use sessile_sqlite::SqliteStore;
use sessile_state::State;

pub(crate) struct Sessile(SessionService);

pub(crate) async fn open(url: String) -> Sessile {
    let service = match url.as_str() {
        "memory" => SessionService::new(MemoryStore::new()),
        url if url.starts_with("sqlite") => {
            SessionService::new(SqliteStore::open_url(url).await.expect("the file opens"))
        }
        url => SessionService::new(PostgresStore::connect_url(url).await.expect("the server is there")),
    };
    Sessile(service)
}

fn key(id: &str) -> SessionKey {
    SessionKey::new("bench", "user", id).expect("the ids of the comparison are valid")
}

fn failure(error: SessionError) -> Failure {
    error.to_string()
}

impl Sessile {
    async fn session(&self, id: &str, window: EventWindow) -> Result<Session, Failure> {
        let session = self.0.get(&key(id), window).await.map_err(failure)?;
        session.ok_or_else(|| format!("there is no session {id}"))
    }
}

impl Contestant for Sessile {
    type Event = Event;

    fn event(&self, n: usize) -> Event {
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

    async fn create(&self, id: &str) -> Result<(), Failure> {
        let new = CreateSession::new("bench", "user").with_id(id);
        self.0.create(new).await.map(drop).map_err(failure)
    }

    async fn append(&self, id: &str, event: Event) -> Result<(), Failure> {
        self.0.append_to(&key(id), event).await.map(drop).map_err(failure)
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
        Ok(self.0.list(&list).await.map_err(failure)?.sessions.len())
    }

    async fn increment(&self, id: &str) -> Result<(), Failure> {
        let add = |state: &State| Ok(state.try_modify("user:counter", 0, |n| n + 1)?);
        self.0.transact(&key(id), add).await.map(drop).map_err(failure)
    }

    async fn counter(&self, id: &str) -> Result<i64, Failure> {
        Ok(self.session(id, EventWindow::NONE).await?.state().get("user:counter").unwrap_or(0))
    }
}
