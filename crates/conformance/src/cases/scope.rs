use serde_json::json;
use sessile_session::{SessionError, SessionService};
use sessile_state::Delta;

use super::{cases, create, empty, session, setting, state_of, stored};

cases!(
    app_state_reaches_sibling_sessions,
    user_state_reaches_only_that_user,
    session_state_stays,
    a_key_named_like_a_prefix,
    other_prefixes_are_session_keys,
    state_is_written_without_a_session,
    writing_without_a_session_checks_keys,
    nested_objects_are_replaced_not_merged,
);

async fn app_state_reaches_sibling_sessions(service: SessionService) {
    let mut ada = create(&service, "shop", "ada", "a", empty()).await;
    let bob = create(&service, "shop", "bob", "b", empty()).await;
    service.append(&mut ada, setting(json!({"app:x": 1}))).await.unwrap();
    assert_eq!(state_of(&stored(&service, bob.key()).await), json!({"app:x": 1}));
}

async fn user_state_reaches_only_that_user(service: SessionService) {
    let mut first = create(&service, "shop", "ada", "a", empty()).await;
    let second = create(&service, "shop", "ada", "b", empty()).await;
    let bob = create(&service, "shop", "bob", "c", empty()).await;
    service.append(&mut first, setting(json!({"user:x": 1}))).await.unwrap();
    assert_eq!(state_of(&stored(&service, second.key()).await), json!({"user:x": 1}));
    assert_eq!(state_of(&stored(&service, bob.key()).await), empty());
}

async fn session_state_stays(service: SessionService) {
    session(&service, "a", json!({"x": 1})).await;
    assert_eq!(state_of(&session(&service, "b", empty()).await), empty());
}

async fn a_key_named_like_a_prefix(service: SessionService) {
    let state =
        json!({"app": 1, "user": 2, "temp": 3, "app:": 4, "user:": 5, "": 6, "application:x": 7, "App:x": 8});
    let mut made = session(&service, "s", state.clone()).await;
    assert_eq!(state_of(&stored(&service, made.key()).await), state);
    service.append(&mut made, setting(json!({"app:": 40, "": 60, "user:app:x": 9}))).await.unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!(read.state().get::<u32>("app:"), Some(40));
    assert_eq!(read.state().get::<u32>(""), Some(60));
    assert_eq!(read.state().get::<u32>("user:app:x"), Some(9));
}

async fn other_prefixes_are_session_keys(service: SessionService) {
    let state = json!({"turn:a": 1, "derived:b": 2, "session:c": 3, "bg:d": 4, "x:y:z": 5});
    let made = session(&service, "s", state.clone()).await;
    assert_eq!(state_of(&stored(&service, made.key()).await), state);
    assert_eq!(state_of(&session(&service, "t", empty()).await), empty());
}

async fn state_is_written_without_a_session(service: SessionService) {
    assert!(service.app_state("shop").await.unwrap().is_empty());
    let delta = Delta::from_iter([("x", json!(1)), ("y", json!([2]))]);
    service.write_app_state("shop", &delta).await.unwrap();
    service.write_user_state("shop", "ada", &delta).await.unwrap();
    let mut removal = Delta::new();
    removal.remove("x");
    service.write_user_state("shop", "ada", &removal).await.unwrap();
    assert_eq!(
        state_of(&session(&service, "s", empty()).await),
        json!({"app:x": 1, "app:y": [2], "user:y": [2]})
    );
    assert_eq!(service.user_state("shop", "ada").await.unwrap().into_keys().collect::<Vec<_>>(), ["y"]);
    assert!(service.user_state("shop", "bob").await.unwrap().is_empty());
}

async fn writing_without_a_session_checks_keys(service: SessionService) {
    let delta = Delta::from_iter([("good", json!(1)), ("app:x", json!(1))]);
    let refused = service.write_app_state("shop", &delta).await;
    assert!(matches!(refused, Err(SessionError::InvalidState { .. })));
    assert!(service.app_state("shop").await.unwrap().is_empty());
    assert!(matches!(service.app_state(" ").await, Err(SessionError::InvalidId(_))));
}

async fn nested_objects_are_replaced_not_merged(service: SessionService) {
    let mut made = session(&service, "s", json!({"app:cfg": {"a": 1, "b": 2}, "cfg": {"a": 1}})).await;
    service.append(&mut made, setting(json!({"app:cfg": {"c": 3}, "cfg": {"b": 2}}))).await.unwrap();
    assert_eq!(state_of(&stored(&service, made.key()).await), json!({"app:cfg": {"c": 3}, "cfg": {"b": 2}}));
}
