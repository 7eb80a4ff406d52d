//! A session that was deleted and created again under its old address is another session.

use std::time::Duration;

use serde_json::json;
use sessile_session::{
    Append, CreateSession, EventWindow, Expect, OnConflict, RestoreSession, Session, SessionError,
    SessionService, Watch,
};

use super::{cases, empty, ids_of, key, saying, session, setting, state_of, stored};

cases!(
    every_session_has_its_own,
    it_stays_as_long_as_the_session,
    an_old_session_in_hand_is_replaced,
    an_old_expectation_is_replaced,
    an_old_expectation_does_not_delete,
    a_prepared_rewind_is_not_made_in_another_session,
    a_watch_ends_with_its_session,
    a_watch_of_an_old_session_ends_at_its_first_look,
    an_event_of_the_old_session_is_not_known_in_the_new_one,
    a_transaction_that_meets_another_session_begins_again,
);

/// Deletes the session and creates it again, with the same state and as many events.
async fn replace(service: &SessionService, old: &Session) -> Session {
    assert!(service.delete(old.key()).await.unwrap());
    let mut new = session(service, old.key().id(), empty()).await;
    for n in 0..old.version() {
        service.append(&mut new, saying(&format!("new{n}"), "x")).await.unwrap();
    }
    assert_eq!(new.version(), old.version());
    assert_ne!(new.incarnation(), old.incarnation());
    new
}

fn is_replaced<T>(refused: Result<T, SessionError>) -> bool {
    match refused {
        Err(SessionError::Replaced { key }) => key.id() == "s",
        Err(other) => panic!("another error: {other}"),
        Ok(_) => false,
    }
}

/// The id of the next event; `None` if the watch has ended.
async fn next(watch: &mut Watch) -> Option<String> {
    let waited = tokio::time::timeout(Duration::from_secs(30), watch.next()).await.expect("it looks");
    waited.expect("the session is read").map(|event| event.id.clone())
}

async fn every_session_has_its_own(service: SessionService) {
    let one = session(&service, "one", empty()).await;
    let other = session(&service, "other", empty()).await;
    let fork = service.fork(one.key(), 0, Some("fork")).await.unwrap();
    let old = RestoreSession { key: key("restored"), time: 1000.0, initial: [].into(), events: Vec::new() };
    let restored = service.restore(old).await.unwrap();
    let mut all = [&one, &other, &fork, &restored].map(|session| session.incarnation().0);
    assert!(all.iter().all(|incarnation| *incarnation != 0 && i64::try_from(*incarnation).is_ok()));
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
}

async fn it_stays_as_long_as_the_session(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let incarnation = made.incarnation();
    service.append(&mut made, setting(json!({"a": 1, "user:a": 1}))).await.unwrap();
    let answer = service.append_answering(made.key(), Append::new(saying("e", "x"))).await.unwrap();
    let changed = service.change(made.key(), Append::new(saying("f", "x")), EventWindow::ALL).await.unwrap();
    let read = stored(&service, made.key()).await;
    let listed = service.store().get(made.key(), EventWindow::NONE).await.unwrap().unwrap();
    for seen in [
        made.incarnation(),
        answer.incarnation,
        changed.incarnation(),
        read.incarnation(),
        listed.incarnation,
    ] {
        assert_eq!(seen, incarnation);
    }
}

async fn an_old_session_in_hand_is_replaced(service: SessionService) {
    for (n, events) in [0, 2].into_iter().enumerate() {
        let mut old = session(&service, "s", empty()).await;
        for event in 0..events {
            service.append(&mut old, saying(&format!("{n}-{event}"), "x")).await.unwrap();
        }
        let new = replace(&service, &old).await;
        for on_conflict in [OnConflict::Refuse, OnConflict::Merge] {
            let event = setting(json!({"a": 1, "user:a": 1, "app:a": 1}));
            assert!(is_replaced(service.append_with(&mut old, event, on_conflict).await), "{on_conflict:?}");
        }
        let read = stored(&service, new.key()).await;
        assert_eq!((read.version(), state_of(&read)), (events, empty()));
        service.delete(new.key()).await.unwrap();
    }
}

async fn an_old_expectation_is_replaced(service: SessionService) {
    let mut old = session(&service, "s", empty()).await;
    service.append(&mut old, saying("e1", "x")).await.unwrap();
    let new = replace(&service, &old).await;
    for expect in [
        old.versions(),
        Expect::session(old.incarnation(), old.version()),
        Expect { incarnation: Some(old.incarnation()), ..Expect::default() },
    ] {
        let append = || Append::new(setting(json!({"a": 1, "app:a": 1}))).expecting(expect);
        assert!(is_replaced(service.append_to(new.key(), append()).await), "{expect:?}");
        assert!(is_replaced(service.change(new.key(), append(), EventWindow::ALL).await), "{expect:?}");
    }
    assert_eq!(stored(&service, new.key()).await.version(), 1);
    let append = Append::new(setting(json!({"a": 1}))).expecting(new.versions());
    assert_eq!(service.append_to(new.key(), append).await.unwrap(), Some(2));
}

async fn an_old_expectation_does_not_delete(service: SessionService) {
    let mut old = session(&service, "s", empty()).await;
    service.append(&mut old, saying("e1", "x")).await.unwrap();
    let new = replace(&service, &old).await;
    for expect in [
        Expect::session(old.incarnation(), old.version()),
        Expect { incarnation: Some(old.incarnation()), ..Expect::default() },
    ] {
        assert!(is_replaced(service.delete_expecting(new.key(), expect).await), "{expect:?}");
    }
    let wrong = Expect::session(new.incarnation(), 5);
    let refused = service.delete_expecting(new.key(), wrong).await;
    assert!(matches!(refused, Err(SessionError::Conflict { expected: 5, actual: 1, .. })));
    assert!(service.delete_expecting(new.key(), Expect::session(new.incarnation(), 1)).await.unwrap());
    assert!(!service.delete_expecting(new.key(), Expect::session(new.incarnation(), 1)).await.unwrap());
}

async fn a_prepared_rewind_is_not_made_in_another_session(service: SessionService) {
    let mut old = session(&service, "s", json!({"a": 1})).await;
    service.append(&mut old, setting(json!({"a": 2})).with_invocation("i1")).await.unwrap();
    let rewind = service.prepare_rewind(old.key(), "i1").await.unwrap();
    let new = replace(&service, &old).await;
    assert!(is_replaced(service.commit_rewind(rewind).await));
    let read = stored(&service, new.key()).await;
    assert_eq!((read.version(), state_of(&read)), (1, empty()));
}

async fn a_watch_ends_with_its_session(service: SessionService) {
    let mut old = session(&service, "s", empty()).await;
    service.append(&mut old, saying("e1", "x")).await.unwrap();
    // Another service over the store gets no notification: it polls, as another process would.
    let other = SessionService::over(service.store()).with_poll_interval(Duration::from_millis(20));
    for watching in [&service, &other] {
        let mut watch = watching.watch(old.key(), 0);
        for id in ids_of(&old) {
            assert_eq!(next(&mut watch).await.as_deref(), Some(id));
        }
        let mut new = replace(&service, &old).await;
        service.append(&mut new, saying("later", "x")).await.unwrap();
        assert_eq!(
            next(&mut watch).await,
            None,
            "the events of the new session are not those of the old one"
        );
        assert_eq!(next(&mut watch).await, None, "it has ended for good");
        old = new;
    }
}

async fn a_watch_of_an_old_session_ends_at_its_first_look(service: SessionService) {
    let mut old = session(&service, "s", empty()).await;
    service.append(&mut old, saying("e1", "x")).await.unwrap();
    let new = replace(&service, &old).await;
    let mut watch = service.watch(new.key(), old.version() - 1).of(old.incarnation());
    assert_eq!(next(&mut watch).await, None);
    let mut watch = service.watch(new.key(), 0).of(new.incarnation());
    assert_eq!(next(&mut watch).await.as_deref(), Some("new0"));
}

async fn an_event_of_the_old_session_is_not_known_in_the_new_one(service: SessionService) {
    let mut old = session(&service, "s", empty()).await;
    let event = saying("e1", "x");
    service.append(&mut old, event.clone()).await.unwrap();
    service.delete(old.key()).await.unwrap();
    let new = service.create(CreateSession::new("shop", "ada").with_id("s")).await.unwrap();
    assert!(is_replaced(service.append_with(&mut old, event.clone(), OnConflict::Merge).await));
    let answer = service.append_answering(new.key(), Append::new(event)).await.unwrap();
    assert_eq!((answer.is_known, answer.version, answer.incarnation), (false, 1, new.incarnation()));
}

async fn a_transaction_that_meets_another_session_begins_again(service: SessionService) {
    let made = session(&service, "s", json!({"who": "old"})).await;
    let other = service.clone();
    let commits = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let store = crate::Between::over(service.store(), move |call| {
        let appends = matches!(call, crate::Call::Append(_));
        let first = appends && commits.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        let other = other.clone();
        async move {
            if first {
                other.delete(&key("s")).await?;
                other
                    .create(CreateSession::new("shop", "ada").with_id("s").with_state(json!({"who": "new"})))
                    .await?;
            }
            Ok(())
        }
    });
    // It reads no key, but is still bound to the session that it saw.
    let mut runs = 0;
    let (_, version) = SessionService::new(store)
        .transact(made.key(), |state| {
            runs += 1;
            state.set("done", true);
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!((runs, version), (2, 1));
    assert_eq!(state_of(&stored(&service, made.key()).await), json!({"who": "new", "done": true}));
}
