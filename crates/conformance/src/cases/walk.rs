use serde_json::json;
use sessile_session::{
    Address, EventWindow, RestoreSession, ScopeKey, SessionError, SessionKey, SessionService,
};
use sessile_state::Delta;

use super::{cases, create, empty, key, session, setting, state_of, stored};

cases!(
    an_empty_store_has_no_addresses,
    addresses_are_all_that_is_stored_each_once,
    what_is_deleted_has_no_address,
    a_restored_session_is_the_one_that_was,
    a_restored_session_leaves_shared_state_alone,
    restoring_refuses_a_taken_key,
);

/// All addresses but those of shared state that is empty, which a store may have or not.
async fn walk(service: &SessionService, limit: usize) -> Vec<Address> {
    let mut found: Vec<Address> = Vec::new();
    loop {
        let page = service.store().addresses(found.last(), limit).await.unwrap();
        assert!(page.len() <= limit);
        if page.is_empty() {
            break;
        }
        found.extend(page);
    }
    assert!(found.iter().is_sorted_by_key(|address| matches!(address, Address::Session(_))));
    let mut full = Vec::new();
    for address in found {
        let empty = match &address {
            Address::Scope(scope) => service.store().scope_state(scope).await.unwrap().state.is_empty(),
            Address::Session(_) => false,
        };
        if !empty {
            full.push(address);
        }
    }
    full
}

async fn an_empty_store_has_no_addresses(service: SessionService) {
    assert_eq!(walk(&service, 10).await, []);
}

async fn addresses_are_all_that_is_stored_each_once(service: SessionService) {
    let mut expected = Vec::new();
    for n in 0..7 {
        let (app, user) = (format!("app{}", n % 2), format!("user{}", n % 3));
        create(&service, &app, &user, &format!("s{n}"), empty()).await;
        expected.push(Address::Session(SessionKey::from_stored(app, user, format!("s{n}"))));
    }
    create(&service, "app0", "ada", "with state", json!({"app:a": 1, "user:u": 2})).await;
    expected.push(Address::Session(SessionKey::from_stored("app0", "ada", "with state")));
    let one: Delta = [("k", json!(1))].into_iter().collect();
    service.write_app_state("no sessions", &one).await.unwrap();
    service.write_user_state("no sessions", "bob", &one).await.unwrap();
    expected.extend([
        Address::Scope(ScopeKey::App("app0".to_owned())),
        Address::Scope(ScopeKey::User("app0".to_owned(), "ada".to_owned())),
        Address::Scope(ScopeKey::App("no sessions".to_owned())),
        Address::Scope(ScopeKey::User("no sessions".to_owned(), "bob".to_owned())),
    ]);
    expected.sort();
    for limit in [1, 3, 100] {
        let mut found = walk(&service, limit).await;
        found.sort();
        assert_eq!(found, expected, "{limit} at a time");
    }
}

async fn what_is_deleted_has_no_address(service: SessionService) {
    session(&service, "a", empty()).await;
    session(&service, "b", empty()).await;
    service.delete(&key("a")).await.unwrap();
    assert_eq!(walk(&service, 10).await, [Address::Session(key("b"))]);
}

/// What is needed to restore a session under another id.
async fn copy_of(service: &SessionService, id: &str, new_id: &str) -> RestoreSession {
    let whole = service.store().get(&key(id), EventWindow::ALL).await.unwrap().unwrap();
    RestoreSession {
        key: key(new_id),
        time: 1000.0,
        initial: service.state_at(&key(id), 0).await.unwrap(),
        events: whole.events.iter().map(|event| (*event.event).clone()).collect(),
    }
}

async fn a_restored_session_is_the_one_that_was(service: SessionService) {
    let mut made = session(&service, "old", json!({"first": 1, "gone": 2})).await;
    let mut removing = setting(json!({"step": 123456}));
    removing.actions.state_delta.remove("gone");
    service.append(&mut made, removing).await.unwrap();
    service.append(&mut made, setting(json!({"step": null}))).await.unwrap();
    let restored = service.restore(copy_of(&service, "old", "new").await).await.unwrap();
    assert_eq!((restored.version(), restored.last_update_time()), (2, made.last_update_time()));
    let read = stored(&service, &key("new")).await;
    assert_eq!(state_of(&read), json!({"first": 1, "step": null}));
    assert_eq!(read.events(), made.events());
    assert_eq!(service.state_at(&key("new"), 0).await.unwrap().len(), 2);
}

async fn a_restored_session_leaves_shared_state_alone(service: SessionService) {
    let mut made = session(&service, "old", empty()).await;
    service.append(&mut made, setting(json!({"app:a": 1, "user:u": 1}))).await.unwrap();
    service.append(&mut made, setting(json!({"app:a": 2}))).await.unwrap();
    let mut copy = copy_of(&service, "old", "new").await;
    copy.events.truncate(1);
    let restored = service.restore(copy).await.unwrap();
    assert_eq!(state_of(&restored), json!({"app:a": 2, "user:u": 1}));
    let shared = RestoreSession {
        initial: [("app:a".to_owned(), json!(3).into())].into(),
        ..copy_of(&service, "old", "third").await
    };
    assert!(matches!(service.restore(shared).await, Err(SessionError::InvalidState { .. })));
}

async fn restoring_refuses_a_taken_key(service: SessionService) {
    session(&service, "old", json!({"a": 1})).await;
    session(&service, "taken", json!({"b": 2})).await;
    let copy = copy_of(&service, "old", "taken").await;
    assert!(matches!(service.restore(copy).await, Err(SessionError::AlreadyExists { .. })));
    assert_eq!(state_of(&stored(&service, &key("taken")).await), json!({"b": 2}));
}
