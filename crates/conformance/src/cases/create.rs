use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use sessile_session::{CreateSession, Event, EventWindow, SessionError, SessionService};
use sessile_state::Operation;

use super::{cases, changing, create, delta, empty, ids_of, key, saying, session, setting, state_of, stored};
use crate::{Between, Call};

cases!(
    returns_what_get_returns,
    generates_an_id_when_none_is_given,
    a_blank_id_is_generated_and_padding_is_trimmed,
    rejects_a_taken_key,
    leaves_the_existing_session_untouched,
    a_rejected_create_writes_no_scoped_state,
    same_id_under_another_user_is_another_session,
    same_id_under_another_app_is_another_session,
    drops_temp_keys,
    starts_at_version_zero,
    with_events_is_one_step,
    with_two_events_of_one_id_is_refused,
    refuses_ids_that_cannot_be_addressed,
    refuses_keys_with_a_doubled_prefix,
    operates_on_shared_state,
    composes_operations_with_the_changes_of_its_events,
    refuses_events_with_operations,
    get_or_create_creates_and_then_gets,
    get_or_create_without_an_id_creates,
    get_or_create_gets_what_another_caller_creates_meanwhile,
);

async fn returns_what_get_returns(service: SessionService) {
    let state = json!({"step": "cart", "user:name": "Ada", "app:tax": 0.08, "list": [1, {"a": null}]});
    let made = session(&service, "s", state.clone()).await;
    let read = stored(&service, made.key()).await;
    assert_eq!(state_of(&made), state);
    assert_eq!(serde_json::to_value(&made).unwrap(), serde_json::to_value(&read).unwrap());
    assert_eq!(made.version(), read.version());
}

async fn generates_an_id_when_none_is_given(service: SessionService) {
    let first = service.create(CreateSession::new("shop", "ada")).await.unwrap();
    let second = service.create(CreateSession::new("shop", "ada")).await.unwrap();
    assert_ne!(first.key(), second.key());
    assert!(first.key().id().len() >= 32);
}

async fn a_blank_id_is_generated_and_padding_is_trimmed(service: SessionService) {
    let blank = service.create(CreateSession::new("shop", "ada").with_id("   ")).await.unwrap();
    assert!(blank.key().id().len() >= 32);
    let padded = service.create(CreateSession::new("shop", "ada").with_id("  pad ")).await.unwrap();
    assert_eq!(padded.key().id(), "pad");
    assert_eq!(stored(&service, &key(" pad")).await.key(), padded.key());
}

async fn rejects_a_taken_key(service: SessionService) {
    session(&service, "s", empty()).await;
    let again = service.create(CreateSession::new("shop", "ada").with_id("s")).await;
    assert!(matches!(again, Err(SessionError::AlreadyExists { key }) if key.id() == "s"));
}

async fn leaves_the_existing_session_untouched(service: SessionService) {
    let mut first = session(&service, "s", json!({"a": 1})).await;
    service.append(&mut first, saying("e1", "hello")).await.unwrap();
    let before = stored(&service, first.key()).await;
    service
        .create(CreateSession::new("shop", "ada").with_id("s").with_state([("a", json!(2))]))
        .await
        .unwrap_err();
    let after = stored(&service, first.key()).await;
    assert_eq!(serde_json::to_value(&before).unwrap(), serde_json::to_value(&after).unwrap());
    assert_eq!(after.version(), 1);
}

async fn a_rejected_create_writes_no_scoped_state(service: SessionService) {
    session(&service, "s", json!({"app:x": 1})).await;
    let again = CreateSession::new("shop", "ada")
        .with_id("s")
        .with_state([("app:x", json!(2)), ("user:y", json!(2))]);
    service.create(again).await.unwrap_err();
    assert_eq!(service.app_state("shop").await.unwrap()["x"], json!(1));
    assert!(service.user_state("shop", "ada").await.unwrap().is_empty());
}

async fn same_id_under_another_user_is_another_session(service: SessionService) {
    let ada = create(&service, "shop", "ada", "s", json!({"who": "ada"})).await;
    let bob = create(&service, "shop", "bob", "s", json!({"who": "bob"})).await;
    assert_eq!(state_of(&stored(&service, ada.key()).await), json!({"who": "ada"}));
    assert_eq!(state_of(&stored(&service, bob.key()).await), json!({"who": "bob"}));
}

async fn same_id_under_another_app_is_another_session(service: SessionService) {
    create(&service, "shop", "ada", "s", json!({"app:x": 1, "user:y": 1})).await;
    let other = create(&service, "game", "ada", "s", empty()).await;
    assert_eq!(state_of(&other), empty(), "state of a user is per application");
}

async fn drops_temp_keys(service: SessionService) {
    let made = session(&service, "s", json!({"temp:secret": 1, "kept": 2})).await;
    assert_eq!(state_of(&made), json!({"kept": 2}));
    assert_eq!(state_of(&stored(&service, made.key()).await), json!({"kept": 2}));
}

async fn starts_at_version_zero(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1})).await;
    assert_eq!((made.version(), made.events().len()), (0, 0));
}

async fn with_events_is_one_step(service: SessionService) {
    let mut second = setting(json!({"a": 2, "user:u": 1, "app:p": 1, "temp:t": 1}));
    second.id = "e2".to_owned();
    let partial = Event { partial: Some(true), ..saying("e3", "not yet") };
    let new = CreateSession::new("shop", "ada").with_id("s").with_state([("a", json!(1)), ("b", json!(1))]);
    let made = service.create(new.with_events([saying("e1", "hi"), second, partial])).await.unwrap();
    assert_eq!(ids_of(&made), ["e1", "e2"]);
    assert_eq!(made.version(), 2);
    assert_eq!(state_of(&made), json!({"a": 2, "b": 1, "user:u": 1, "app:p": 1}));
    let read = stored(&service, made.key()).await;
    assert_eq!(serde_json::to_value(&made).unwrap(), serde_json::to_value(&read).unwrap());
    assert_eq!(service.state_at(made.key(), 0).await.unwrap()["a"], json!(1));
}

async fn with_two_events_of_one_id_is_refused(service: SessionService) {
    let new =
        CreateSession::new("shop", "ada").with_id("s").with_events([saying("e", "a"), saying("e", "b")]);
    assert!(matches!(service.create(new).await, Err(SessionError::EventConflict { id, .. }) if id == "e"));
    assert!(service.get(&key("s"), EventWindow::ALL).await.unwrap().is_none());
}

async fn refuses_ids_that_cannot_be_addressed(service: SessionService) {
    let long = "x".repeat(129);
    for (app, user, id) in [
        ("", "ada", "s"),
        ("shop", " ", "s"),
        ("shop", " ada", "s"),
        ("shop", "ada", &long),
        ("shop", "a\0b", "s"),
    ] {
        let refused = service.create(CreateSession::new(app, user).with_id(id)).await;
        assert!(matches!(refused, Err(SessionError::InvalidId(_))), "{app:?} {user:?}");
    }
    let longest = "é".repeat(128);
    create(&service, &longest, &longest, &longest, empty()).await;
}

async fn refuses_keys_with_a_doubled_prefix(service: SessionService) {
    let new = CreateSession::new("shop", "ada").with_id("s").with_state([("app:app:x", json!(1))]);
    let error = service.create(new).await.unwrap_err();
    assert!(matches!(&error, SessionError::InvalidState { key, .. } if key == "app:app:x"), "{error}");
}

async fn operates_on_shared_state(service: SessionService) {
    session(&service, "first", json!({"user:n": 5, "app:list": ["a"]})).await;
    let state = delta(|delta| {
        delta.operate("user:n", Operation::add(-1).at_least(4));
        delta.append("app:list", [json!("b")]);
        delta.union("app:set", [json!(1), json!(1.0)]);
        delta.set("own", json!(1));
    });
    let new = || CreateSession::new("shop", "ada").with_state(state.clone());
    let made = service.create(new().with_id("second")).await.unwrap();
    let expected = json!({"user:n": 4, "app:list": ["a", "b"], "app:set": [1], "own": 1});
    assert_eq!(state_of(&made), expected);
    assert_eq!(state_of(&stored(&service, made.key()).await), expected);
    let refused = service.create(new().with_id("third")).await.unwrap_err();
    assert!(matches!(&refused, SessionError::Operation { key, .. } if key == "user:n"), "{refused}");
    assert!(service.get(&key("third"), EventWindow::NONE).await.unwrap().is_none());
    assert_eq!(service.app_state("shop").await.unwrap()["list"], json!(["a", "b"]));
}

async fn composes_operations_with_the_changes_of_its_events(service: SessionService) {
    service.write_user_state("shop", "ada", json!({"n": 5, "m": 5})).await.unwrap();
    let state = delta(|delta| {
        delta.add("user:n", 1);
        delta.add("user:m", 1);
        delta.add("own", 2);
    });
    let events = [setting(json!({"user:m": 100, "own": 7})), setting(json!({"own": 8}))];
    let made = service
        .create(CreateSession::new("shop", "ada").with_state(state).with_events(events))
        .await
        .unwrap();
    assert_eq!(state_of(&made), json!({"user:n": 6, "user:m": 100, "own": 8}));
    assert_eq!(super::json_of(&service.state_at(made.key(), 0).await.unwrap()), json!({"own": 2}));
    assert_eq!(
        service.store().scope_state(&super::user_scope()).await.unwrap().version,
        2,
        "it is one change"
    );
}

/// The events that a session is created with are stored as they are, so their operations could not
/// be computed.
async fn refuses_events_with_operations(service: SessionService) {
    let new =
        CreateSession::new("shop", "ada").with_id("s").with_events([changing(|delta| delta.add("n", 1))]);
    let refused = service.create(new).await.unwrap_err();
    assert!(matches!(refused, SessionError::InvalidEvent { .. }));
    assert!(
        refused.to_string().contains("\"n\"") && refused.to_string().contains("append the event"),
        "{refused}"
    );
    assert!(service.get(&key("s"), EventWindow::NONE).await.unwrap().is_none());
}

async fn get_or_create_creates_and_then_gets(service: SessionService) {
    let new = || {
        let state = delta(|delta| {
            delta.set("step", json!("first"));
            delta.add("user:created", 1);
        });
        CreateSession::new("shop", "ada").with_id(" s ").with_state(state).with_events([saying("e1", "hi")])
    };
    let mut made = service.get_or_create(new(), EventWindow::NONE).await.unwrap();
    assert_eq!((made.key().id(), made.version()), ("s", 1));
    service.append(&mut made, setting(json!({"step": "second"}))).await.unwrap();
    let again = service.get_or_create(new(), EventWindow::last(1)).await.unwrap();
    assert_eq!((again.incarnation(), again.version(), again.events().len()), (made.incarnation(), 2, 1));
    assert_eq!(
        state_of(&again),
        json!({"step": "second", "user:created": 1}),
        "what is there stays as it is"
    );
    let invalid = service.get_or_create(CreateSession::new("shop", " "), EventWindow::ALL).await;
    assert!(matches!(invalid, Err(SessionError::InvalidId(_))));
}

async fn get_or_create_without_an_id_creates(service: SessionService) {
    let one = service.get_or_create(CreateSession::new("shop", "ada"), EventWindow::ALL).await.unwrap();
    let other =
        service.get_or_create(CreateSession::new("shop", "ada").with_id(""), EventWindow::ALL).await.unwrap();
    assert_ne!(one.key(), other.key());
}

async fn get_or_create_gets_what_another_caller_creates_meanwhile(service: SessionService) {
    let (other, first) = (service.clone(), AtomicBool::new(true));
    let store = Between::over(service.store(), move |call| {
        let first = matches!(call, Call::Create) && first.swap(false, Ordering::SeqCst);
        let other = other.clone();
        async move {
            if first {
                session(&other, "s", json!({"who": "other"})).await;
            }
            Ok(())
        }
    });
    let new = CreateSession::new("shop", "ada").with_id("s").with_state(json!({"who": "me", "app:a": 1}));
    let made = SessionService::new(store).get_or_create(new, EventWindow::ALL).await.unwrap();
    assert_eq!(state_of(&made), json!({"who": "other"}));
}
