use serde_json::json;
use sessile_session::{CreateSession, Event, SessionError, SessionService};

use super::{cases, create, empty, ids_of, key, saying, session, setting, state_of, stored};

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
    assert!(service.get(&key("s"), sessile_session::EventWindow::ALL).await.unwrap().is_none());
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
