use serde_json::json;
use sessile_session::{CreateSession, EventWindow, Expect, SessionError, SessionService};

use super::{cases, empty, key, saying, session, state_of, stored};

cases!(
    removes_the_session_and_its_events,
    keeps_app_and_user_state,
    of_an_absent_session_is_not_an_error,
    recreate_after_delete_starts_empty,
    of_a_changed_session_is_refused_if_a_version_is_expected,
    leaves_other_sessions,
);

fn version(version: u64) -> Expect {
    Expect { session: Some(version), ..Expect::default() }
}

async fn removes_the_session_and_its_events(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    service.append(&mut made, saying("e1", "x")).await.unwrap();
    assert!(service.delete(made.key()).await.unwrap());
    assert!(service.get(made.key(), EventWindow::ALL).await.unwrap().is_none());
    let late = service.append(&mut made, saying("e2", "x")).await;
    assert!(matches!(late, Err(SessionError::NotFound { .. })));
}

async fn keeps_app_and_user_state(service: SessionService) {
    let made = session(&service, "s", json!({"app:x": 1, "user:y": 2, "z": 3})).await;
    service.delete(made.key()).await.unwrap();
    let next = session(&service, "t", empty()).await;
    assert_eq!(state_of(&next), json!({"app:x": 1, "user:y": 2}));
}

async fn of_an_absent_session_is_not_an_error(service: SessionService) {
    assert!(!service.delete(&key("nobody")).await.unwrap());
    assert!(!service.delete_expecting(&key("nobody"), version(3)).await.unwrap());
}

async fn recreate_after_delete_starts_empty(service: SessionService) {
    let mut made = session(&service, "s", json!({"a": 1})).await;
    service.append(&mut made, saying("e1", "x")).await.unwrap();
    service.delete(made.key()).await.unwrap();
    let mut again = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    assert_eq!((again.version(), again.events().len(), state_of(&again)), (0, 0, empty()));
    service.append(&mut again, saying("e1", "another body under the id of a deleted event")).await.unwrap();
    assert_eq!(stored(&service, again.key()).await.version(), 1);
}

async fn of_a_changed_session_is_refused_if_a_version_is_expected(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    service.append(&mut made, saying("e1", "x")).await.unwrap();
    let refused = service.delete_expecting(made.key(), version(0)).await;
    assert!(matches!(refused, Err(SessionError::Conflict { expected: 0, actual: 1, .. })));
    assert_eq!(stored(&service, made.key()).await.version(), 1);
    assert!(service.delete_expecting(made.key(), version(1)).await.unwrap());
}

async fn leaves_other_sessions(service: SessionService) {
    let gone = session(&service, "a", empty()).await;
    let mut stays = session(&service, "b", empty()).await;
    service.append(&mut stays, saying("e1", "x")).await.unwrap();
    service.delete(gone.key()).await.unwrap();
    assert_eq!(stored(&service, stays.key()).await.events().len(), 1);
}
