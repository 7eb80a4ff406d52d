//! What is stored is never reported as failed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use sessile_conformance::{Between, Call};
use sessile_session::{
    CreateSession, Event, EventActions, EventWindow, OnConflict, SessionError, SessionService,
};

/// A store whose reads fail on demand.
fn unreadable(fails: Arc<AtomicBool>) -> Between {
    Between::new(move |call| {
        let fails = fails.load(Ordering::SeqCst) && matches!(call, Call::Get);
        async move {
            match fails {
                true => Err(SessionError::Backend { action: "read", source: "the line is cut".into() }),
                false => Ok(()),
            }
        }
    })
}

fn setting(key: &str) -> Event {
    Event::new("agent").with_actions(EventActions::from_delta([(key, json!(1))]))
}

#[tokio::test]
async fn a_merged_event_is_returned_although_the_events_of_others_cannot_be_read() {
    let fails = Arc::<AtomicBool>::default();
    let service = SessionService::new(unreadable(fails.clone()));
    let mut session = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    let key = session.key().clone();
    service.append_to(&key, setting("theirs")).await.unwrap();

    fails.store(true, Ordering::SeqCst);
    let event = service.append_with(&mut session, setting("mine"), OnConflict::Merge).await.unwrap();
    assert_eq!((session.version(), session.events().len()), (2, 2), "the commit tells what others appended");
    assert_eq!(session.events()[1].event, event);

    fails.store(false, Ordering::SeqCst);
    let read = service.get(&key, EventWindow::ALL).await.unwrap().unwrap();
    assert_eq!(read.events().last().unwrap().id, event.id);
    service.append_with(&mut session, setting("next"), OnConflict::Merge).await.unwrap();
    assert_eq!((session.version(), session.events().len()), (3, 3));
    assert!(["theirs", "mine", "next"].iter().all(|key| session.state().contains(key)));
}
