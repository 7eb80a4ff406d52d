//! What is stored is never reported as failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::json;
use sessile_session::{
    Address, Appended, Commit, CreateSession, Event, EventActions, EventWindow, ListQuery, MemoryStore,
    NewSession, OnConflict, ScopeKey, SessionError, SessionKey, SessionService, StateMap, Store, StoredPage,
    StoredSession, Version,
};
use sessile_state::Delta;

/// A store whose reads can be made to fail.
#[derive(Default)]
struct Unreadable {
    store: MemoryStore,
    fails: Arc<AtomicBool>,
}

#[async_trait]
impl Store for Unreadable {
    async fn create(&self, new: NewSession) -> Result<StoredSession, SessionError> {
        self.store.create(new).await
    }

    async fn get(
        &self,
        key: &SessionKey,
        window: EventWindow,
    ) -> Result<Option<StoredSession>, SessionError> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(SessionError::Backend { action: "read", source: "the line is cut".into() }),
            false => self.store.get(key, window).await,
        }
    }

    async fn list(&self, query: &ListQuery) -> Result<StoredPage, SessionError> {
        self.store.list(query).await
    }

    async fn delete(&self, key: &SessionKey, expect: Option<Version>) -> Result<bool, SessionError> {
        self.store.delete(key, expect).await
    }

    async fn append(&self, commit: Commit) -> Result<Appended, SessionError> {
        self.store.append(commit).await
    }

    async fn scope_state(&self, scope: &ScopeKey) -> Result<StateMap, SessionError> {
        self.store.scope_state(scope).await
    }

    async fn write_scope(&self, scope: &ScopeKey, delta: Delta, time: f64) -> Result<(), SessionError> {
        self.store.write_scope(scope, delta, time).await
    }

    async fn addresses(&self, after: Option<&Address>, limit: usize) -> Result<Vec<Address>, SessionError> {
        self.store.addresses(after, limit).await
    }
}

fn setting(key: &str) -> Event {
    let delta = serde_json::Map::from_iter([(key.to_owned(), json!(1))]);
    Event { actions: EventActions::from_delta(delta), ..Event::new("agent") }
}

#[tokio::test]
async fn a_merged_event_is_returned_although_the_events_of_others_cannot_be_read() {
    let store = Unreadable::default();
    let fails = store.fails.clone();
    let service = SessionService::new(store);
    let mut session = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let key = session.key().clone();
    service.append_to(&key, setting("theirs")).await.unwrap();

    fails.store(true, Ordering::SeqCst);
    let event = service.append_with(&mut session, setting("mine"), OnConflict::Merge).await.unwrap();
    assert_eq!((session.version(), session.events().len()), (0, 0), "the session in hand is as it was");

    fails.store(false, Ordering::SeqCst);
    let read = service.get(&key, EventWindow::ALL).await.unwrap().unwrap();
    assert_eq!(read.events().last().unwrap().id, event.id);
    service.append_with(&mut session, setting("next"), OnConflict::Merge).await.unwrap();
    assert_eq!((session.version(), session.events().len()), (3, 3), "the next append brings it up to date");
    assert!(["theirs", "mine", "next"].iter().all(|key| session.state().contains(key)));
}
