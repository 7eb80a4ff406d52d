//! The contract of every store in google-adk's tables when other programs write into them. The
//! store's own tests do the writing; the expectations are shared here.

use serde_json::{Value, json};
use sessile_session::{CreateSession, EventWindow, ListSessions, SessionKey, SessionService};
use sessile_state::Delta;

/// Keys of shared state that were stored with their prefix are read, set and removed like keys
/// without it.
///
/// `write` makes the state of every application
/// `{"app:y": 2, "app:z": 1, "z": 3, "keep": 1.0, "user:k": 9}` and that of every user
/// `{"user:u": 1, "user:v": 2}`.
///
/// # Panics
///
/// If the store breaks this contract.
pub async fn keys_stored_with_their_prefix(service: &SessionService, write: impl Future<Output = ()>) {
    let shared = [("app:n", json!(1)), ("user:n", json!(1))]; // so that there are rows
    service.create(CreateSession::new("shop", "ada").with_id("s").with_state(shared)).await.unwrap();
    write.await;
    let key = SessionKey::new("shop", "ada", "s").unwrap();
    let state = async || {
        let session = service.get(&key, EventWindow::NONE).await.unwrap().unwrap();
        Value::from(session.state().to_map())
    };
    let read = json!({"app:y": 2, "app:z": 3, "app:keep": 1.0, "app:user:k": 9, "user:u": 1, "user:v": 2});
    assert_eq!(state().await, read, "the name without prefix wins");
    let of_app = json!(service.app_state("shop").await.unwrap());
    assert_eq!(of_app, json!({"y": 2, "z": 3, "keep": 1.0, "user:k": 9}));
    assert_eq!(json!(service.user_state("shop", "ada").await.unwrap()), json!({"u": 1, "v": 2}));

    let changed = service.transact(&key, |state| {
        state.set("app:y", 5);
        state.remove("app:z");
        state.remove("user:u");
        Ok(())
    });
    changed.await.unwrap();
    assert_eq!(state().await, json!({"app:y": 5, "app:keep": 1.0, "app:user:k": 9, "user:v": 2}));
    let mut delta = Delta::new();
    delta.remove("v");
    service.write_user_state("shop", "ada", &delta).await.unwrap();
    assert_eq!(json!(service.user_state("shop", "ada").await.unwrap()), json!({}));
}

/// A list names its corrupt sessions and shows the others.
///
/// `corrupt` spoils the state of the session `bad_state`, of the user `bad_user` and of the
/// application `bad_app`.
///
/// # Panics
///
/// If the store breaks this contract.
pub async fn a_list_beside_corrupt_rows(service: &SessionService, corrupt: impl Future<Output = ()>) {
    for (app, user, id) in [
        ("shop", "ada", "good"),
        ("shop", "ada", "bad_state"),
        ("shop", "ada", "good too"),
        ("shop", "bad_user", "s"),
        ("bad_app", "ada", "s"),
    ] {
        let state = [("app:x", json!(1)), ("user:x", json!(2))];
        service.create(CreateSession::new(app, user).with_id(id).with_state(state)).await.unwrap();
    }
    corrupt.await;
    let list = |app: &str, page_size: usize, page_token: Option<String>| ListSessions {
        app: app.to_owned(),
        page_size,
        page_token,
        ..ListSessions::default()
    };
    // Also one by one: a list goes on after a session that cannot be read.
    for page_size in [1, 2, 100] {
        let (mut good, mut bad, mut token) = (Vec::new(), Vec::new(), None);
        loop {
            let page = service.list(&list("shop", page_size, token)).await.unwrap();
            assert!(page.sessions.len() + page.unreadable.len() <= page_size);
            good.extend(page.sessions.iter().map(|session| session.key().id().to_owned()));
            bad.extend(page.unreadable.iter().map(|lost| (lost.key.to_string(), lost.error.to_string())));
            let Some(next) = page.next else { break };
            token = Some(next);
        }
        assert_eq!(good, ["good", "good too"]);
        let [(first, why), (second, also)] = &bad[..] else { panic!("{bad:?}") };
        assert_eq!((first.as_str(), second.as_str()), ("shop/ada/bad_state", "shop/bad_user/s"));
        assert!(why.contains("column state of table sessions, row shop/ada/bad_state:"), "{why}");
        assert!(also.contains("column state of table user_states, row shop/bad_user:"), "{also}");
    }
    let page = service.list(&list("bad_app", 0, None)).await.unwrap();
    let error = page.unreadable[0].error.to_string();
    assert!(error.contains("column state of table app_states, row bad_app:"), "{error}");
}
