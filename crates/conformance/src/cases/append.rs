use serde_json::json;
use sessile_session::{Event, EventActions, EventExtras, OnConflict, SessionError, SessionService};
use sessile_state::{Delta, Scope};

use super::{cases, empty, ids_of, key, saying, session, setting, state_of, stored};

cases!(
    to_a_missing_session_is_not_found,
    applies_the_delta_and_updates_the_session_in_hand,
    completes_id_and_timestamp,
    is_atomic_when_the_delta_is_rejected,
    with_a_stale_session_is_refused,
    with_a_stale_session_merges_on_request,
    by_key_alone_applies_to_what_is_stored,
    same_event_again_returns_the_first_result,
    same_id_with_another_body_is_a_conflict,
    updates_last_modified_even_if_time_stands_still,
    a_partial_event_is_neither_stored_nor_applied,
    temp_is_never_stored,
    removal_deletes_the_key,
    null_is_stored_as_null,
    keeps_unknown_fields,
    refuses_what_cannot_be_stored,
);

async fn to_a_missing_session_is_not_found(service: SessionService) {
    let missing = service.append_to(&key("nobody"), setting(json!({"a": 1, "app:x": 1}))).await;
    assert!(matches!(missing, Err(SessionError::NotFound { key }) if key.id() == "nobody"));
    assert!(service.app_state("shop").await.unwrap().is_empty(), "nothing is half done");
}

async fn applies_the_delta_and_updates_the_session_in_hand(service: SessionService) {
    let mut made = session(&service, "s", json!({"a": 1})).await;
    service
        .append(&mut made, setting(json!({"a": 2, "b": [1], "user:u": "x", "app:p": {"q": 1}})))
        .await
        .unwrap();
    let expected = json!({"a": 2, "b": [1], "user:u": "x", "app:p": {"q": 1}});
    assert_eq!(state_of(&made), expected);
    let read = stored(&service, made.key()).await;
    assert_eq!(serde_json::to_value(&made).unwrap(), serde_json::to_value(&read).unwrap());
    assert_eq!((made.version(), read.version()), (1, 1));
}

async fn completes_id_and_timestamp(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let event = service.append(&mut made, Event::new("user")).await.unwrap();
    assert!(event.id.len() >= 32 && event.timestamp > Some(1.6e9));
    assert_eq!(stored(&service, made.key()).await.events()[0].event, event);
}

async fn is_atomic_when_the_delta_is_rejected(service: SessionService) {
    let mut made = session(&service, "s", json!({"a": 1})).await;
    let refused = service.append(&mut made, setting(json!({"a": 2, "user:user:x": 1}))).await;
    assert!(matches!(refused, Err(SessionError::InvalidState { key, .. }) if key == "user:user:x"));
    assert_eq!(state_of(&stored(&service, made.key()).await), json!({"a": 1}));
    assert_eq!((made.version(), state_of(&made)), (0, json!({"a": 1})));
}

async fn with_a_stale_session_is_refused(service: SessionService) {
    let mut first = session(&service, "s", empty()).await;
    let mut second = stored(&service, first.key()).await;
    service.append(&mut first, setting(json!({"a": 1}))).await.unwrap();
    let refused = service.append(&mut second, setting(json!({"a": 2, "app:x": 1}))).await;
    assert!(matches!(
        refused,
        Err(SessionError::Conflict { expected: 0, actual: 1, scope: Scope::Session, .. })
    ));
    assert_eq!(state_of(&stored(&service, first.key()).await), json!({"a": 1}));
    assert_eq!(second.version(), 0, "a refused append leaves the session in hand");
}

async fn with_a_stale_session_merges_on_request(service: SessionService) {
    let mut first = session(&service, "s", empty()).await;
    let mut second = stored(&service, first.key()).await;
    service.append(&mut first, setting(json!({"a": 1, "both": 1}))).await.unwrap();
    service.append_with(&mut second, setting(json!({"b": 2, "both": 2})), OnConflict::Merge).await.unwrap();
    assert_eq!(state_of(&second), json!({"a": 1, "b": 2, "both": 2}));
    assert_eq!((second.version(), second.events().len()), (2, 2));
    assert_eq!(ids_of(&second), ids_of(&stored(&service, first.key()).await));
}

async fn by_key_alone_applies_to_what_is_stored(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1})).await;
    assert_eq!(service.append_to(made.key(), setting(json!({"b": 2}))).await.unwrap(), Some(1));
    assert_eq!(service.append_to(made.key(), setting(json!({"c": 3}))).await.unwrap(), Some(2));
    assert_eq!(state_of(&stored(&service, made.key()).await), json!({"a": 1, "b": 2, "c": 3}));
}

async fn same_event_again_returns_the_first_result(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let event = Event { id: "e1".to_owned(), ..setting(json!({"n": 1, "user:n": 1})) }.with_timestamp(5.0);
    assert_eq!(service.append_to(made.key(), event.clone()).await.unwrap(), Some(1));
    service.append_to(made.key(), setting(json!({"n": 2}))).await.unwrap();
    assert_eq!(service.append_to(made.key(), event.clone()).await.unwrap(), Some(1));
    service.append(&mut made, event).await.unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!((read.version(), state_of(&read)), (2, json!({"n": 2, "user:n": 1})));
}

async fn same_id_with_another_body_is_a_conflict(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    service.append(&mut made, saying("e1", "first")).await.unwrap();
    let refused = service.append(&mut made, saying("e1", "second")).await;
    assert!(matches!(refused, Err(SessionError::EventConflict { id, .. }) if id == "e1"));
    assert_eq!(stored(&service, made.key()).await.version(), 1);
}

async fn updates_last_modified_even_if_time_stands_still(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let mut last = made.last_update_time();
    for timestamp in [2e9, 2e9, 1.0, 2e9 + 1.0] {
        service.append(&mut made, Event::new("user").with_timestamp(timestamp)).await.unwrap();
        let read = stored(&service, made.key()).await.last_update_time();
        assert!(read > last, "{read} is not after {last}");
        assert_eq!(read, made.last_update_time());
        last = read;
    }
    assert_eq!(last, 2e9 + 1.0);
}

async fn a_partial_event_is_neither_stored_nor_applied(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let partial = Event { partial: Some(true), ..setting(json!({"a": 1, "app:x": 1})) };
    service.append(&mut made, partial.clone()).await.unwrap();
    assert_eq!(service.append_to(made.key(), partial).await.unwrap(), None);
    let read = stored(&service, made.key()).await;
    assert_eq!((read.version(), state_of(&read), state_of(&made)), (0, empty(), empty()));
}

async fn temp_is_never_stored(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let event = service.append(&mut made, setting(json!({"temp:secret": "x", "kept": 1}))).await.unwrap();
    assert_eq!(event.actions.state_delta.iter().map(|(key, _)| key).collect::<Vec<_>>(), ["kept"]);
    let read = serde_json::to_string(&stored(&service, made.key()).await).unwrap();
    assert!(!read.contains("secret"), "{read}");
    assert_eq!(state_of(&made), json!({"kept": 1}));
}

async fn removal_deletes_the_key(service: SessionService) {
    let mut made = session(&service, "s", json!({"a": 1, "b": 2, "user:u": 3, "app:p": 4})).await;
    let mut delta = Delta::new();
    ["a", "user:u", "app:p", "absent"].iter().for_each(|key| delta.remove(key));
    service
        .append(&mut made, Event::new("user").with_actions(EventActions::from_delta(&delta)))
        .await
        .unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!((state_of(&read), state_of(&made)), (json!({"b": 2}), json!({"b": 2})));
    assert_eq!(read.events()[0].actions.state_delta, delta, "the event tells removal from null");
    let wire = serde_json::to_value(&*read.events()[0].event).unwrap();
    assert_eq!(wire["actions"]["stateDelta"].get("a"), Some(&json!(null)), "and other readers see null");
}

async fn null_is_stored_as_null(service: SessionService) {
    let mut made = session(&service, "s", json!({"a": 1, "user:u": null})).await;
    service.append(&mut made, setting(json!({"a": null, "app:p": null}))).await.unwrap();
    let expected = json!({"a": null, "user:u": null, "app:p": null});
    assert_eq!(state_of(&stored(&service, made.key()).await), expected);
}

async fn keeps_unknown_fields(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let wire = json!({
        "id": "e1", "author": "agent", "timestamp": 5.5, "newField": {"aB": [1.0, null]},
        "content": {"role": "model", "parts": [{"text": "hi", "laterAdded": 7}], "also_new": true},
        "actions": {"stateDelta": {"camelKey": {"innerKey": 1}, "snake_key": 2}, "inventedNext": "x"},
        "usageMetadata": {"promptTokenCount": 3, "promptTokensDetails": [{"tokenCount": 3}]},
    });
    service.append(&mut made, serde_json::from_value(wire.clone()).unwrap()).await.unwrap();
    let read = serde_json::to_value(&*stored(&service, made.key()).await.events()[0].event).unwrap();
    for path in [
        "/newField",
        "/content",
        "/actions/stateDelta",
        "/actions/inventedNext",
        "/usageMetadata",
        "/timestamp",
    ] {
        assert_eq!(read.pointer(path), wire.pointer(path), "{path}");
    }
}

async fn refuses_what_cannot_be_stored(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let unlikely = EventExtras { avg_logprobs: Some(f64::INFINITY), ..EventExtras::default() };
    for event in [
        Event::new("user").with_timestamp(f64::NAN),
        Event::new("user").with_timestamp(1e15),
        Event { id: "x".repeat(129), ..Event::new("user") },
        Event { id: "  ".to_owned(), ..Event::new("user") },
        Event { invocation_id: "x".repeat(257), ..Event::new("user") },
        Event { extras: unlikely.into(), ..Event::new("user") },
    ] {
        let refused = service.append(&mut made, event).await.unwrap_err();
        assert!(
            matches!(refused, SessionError::InvalidEvent { .. } | SessionError::InvalidId(_)),
            "another error: {refused}"
        );
    }
    assert_eq!(stored(&service, made.key()).await.version(), 0);
}
