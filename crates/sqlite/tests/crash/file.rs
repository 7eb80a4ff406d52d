//! A file, and what must be in it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sessile_session::{
    ChangeWindow, CreateSession, Event, EventActions, EventWindow, ScopeKey, Session, SessionError,
    SessionKey, SessionService,
};

use crate::support::open;

/// The sessions that events are appended to.
pub(crate) const SESSIONS: [&str; 4] = ["s0", "s1", "s2", "s3"];

pub(crate) fn key(session: &str) -> SessionKey {
    SessionKey::new("shop", "ada", session).expect("a valid key")
}

/// An event that leaves a trace in each scope, under a key of its own, and one under a key that it
/// shares with all others.
pub(crate) fn event(id: &str) -> Event {
    let delta = [
        ("last".to_owned(), json!(id)),
        (format!("own-{id}"), json!(id)),
        (format!("user:{id}"), json!(id)),
        (format!("app:{id}"), json!(id)),
    ];
    Event { id: id.to_owned(), ..Event::new("agent").with_actions(EventActions::from_delta(delta)) }
}

/// A file, and the answers that its writers got.
pub(crate) struct File {
    path: PathBuf,
    /// Session and id of events that must be there.
    acknowledged: Vec<(String, String)>,
    /// Session and id of events that must not be there.
    refused: Vec<(String, String)>,
}

impl File {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, acknowledged: Vec::new(), refused: Vec::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) async fn service(&self) -> SessionService {
        SessionService::new(open(&self.path).await)
    }

    /// Notes events that must be there from now on.
    pub(crate) fn acknowledged(&mut self, events: Vec<(String, String)>) {
        self.acknowledged.extend(events);
    }

    /// Notes events that must never be there.
    pub(crate) fn refused(&mut self, events: Vec<(String, String)>) {
        self.refused.extend(events);
    }

    /// Appends an event to each session, which is made if it is not there.
    pub(crate) async fn append_to_all(&mut self, name: &str) {
        let service = self.service().await;
        for session in SESSIONS {
            create(&service, session).await;
            let id = format!("{name}-{session}");
            service.append_to(&key(session), event(&id)).await.expect("the event is appended");
            self.acknowledged.push((session.to_owned(), id));
        }
    }

    /// Opens the file and compares all of it with what must be there. Returns the number of events.
    pub(crate) async fn check(&self) -> usize {
        let service = self.service().await;
        let mut stored = HashSet::new();
        let mut shared = BTreeMap::new();
        for id in SESSIONS {
            let found = service.get(&key(id), EventWindow::ALL).await.expect("the session is read");
            let Some(session) = found else { continue };
            check_session(&service, &session).await;
            for event in session.events() {
                assert!(stored.insert((id.to_owned(), event.id.clone())), "{id} has {} twice", event.id);
                shared.insert(event.id.clone(), json!(event.id));
            }
        }
        for event in &self.acknowledged {
            assert!(stored.contains(event), "{event:?} was acknowledged and is not there");
        }
        for event in &self.refused {
            assert!(!stored.contains(event), "{event:?} was refused and is there");
        }
        let shared = json!(shared);
        let app = service.app_state("shop").await.expect("the state is read");
        assert_eq!(json!(app), shared, "application state is what the events set");
        let user = service.user_state("shop", "ada").await.expect("the state is read");
        assert_eq!(json!(user), shared, "user state is what the events set");
        self.check_history(&service).await;
        self.check_pages();
        stored.len()
    }

    /// The history of shared state must lead back to nothing, version by version.
    async fn check_history(&self, service: &SessionService) {
        let app = ScopeKey::App("shop".to_owned());
        for scope in [app, ScopeKey::User("shop".to_owned(), "ada".to_owned())] {
            let found = service.scope_state(&scope).await.expect("the state is read");
            let changes =
                service.store().scope_changes(&scope, ChangeWindow::ALL).await.expect("the history is read");
            let versions = changes.iter().map(|change| change.version);
            assert!(versions.eq((1..=found.version).rev()), "{scope}: the history has gaps");
            let mut state = (*found.state).clone();
            for change in &changes {
                change.undo(&mut state).expect("the change was made");
            }
            assert!(state.is_empty(), "{scope}: {state:?} was never set");
        }
    }

    /// Lets SQLite look for damage, and counts again what is counted.
    fn check_pages(&self) {
        let connection = rusqlite::Connection::open(&self.path).expect("the file opens");
        let miscounted: i64 = connection
            .query_row(
                "SELECT count(*) FROM sessions s WHERE sessile_bytes <> (
                     SELECT coalesce(sum(octet_length(event_data)), 0) FROM events e
                     WHERE e.app_name = s.app_name AND e.user_id = s.user_id AND e.session_id = s.id)",
                [],
                |row| row.get(0),
            )
            .expect("the sizes are counted");
        assert_eq!(miscounted, 0, "the size of a session is that of its events");
        let found: String = connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .expect("the file is looked through");
        assert_eq!(found, "ok");
    }
}

/// Creates a session unless it is there.
pub(crate) async fn create(service: &SessionService, session: &str) {
    match service.create(CreateSession::new("shop", "ada").with_id(session)).await {
        Ok(_) | Err(SessionError::AlreadyExists { .. }) => {}
        Err(error) => panic!("session {session} is not created: {error}"),
    }
}

/// A session's version, events and state must agree.
async fn check_session(service: &SessionService, session: &Session) {
    let (key, version) = (session.key(), session.version());
    let versions = session.events().iter().map(|event| event.version);
    assert!(versions.eq(1..=version), "{key} at {version} has gaps: {:?}", session.events());
    let mut own = session.state().to_map();
    own.retain(|key, _| !key.starts_with("user:") && !key.starts_with("app:"));
    let computed = service.state_at(key, version).await.expect("the history is read");
    assert_eq!(Value::from(own), json!(computed), "{key}: its state is what its events made");
    let last = session.events().last().map(|event| event.id.clone());
    assert_eq!(session.state().get::<String>("last"), last, "{key}: the last event wins");
}
