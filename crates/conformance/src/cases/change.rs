//! An append that answers with the session as of its commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use sessile_session::{Append, Event, EventWindow, SessionError, SessionService};

use super::{
    cases, changing, concurrency::at_once, create, empty, everything, ids_of, key, named, saying, session,
    setting, state_of, stored,
};
use crate::{Between, Call};

cases!(
    answers_with_its_own_write,
    answers_with_all_scopes_as_of_the_commit,
    keeps_to_the_window,
    keeps_to_the_window_when_others_append_meanwhile,
    answers_a_repeat_with_the_first_version_and_values,
    answers_a_repeat_that_others_sent_meanwhile,
    of_many_at_once_each_sees_its_own_write,
    of_a_missing_session_is_not_found,
    of_a_session_that_is_deleted_meanwhile_is_not_found,
    of_a_session_that_is_replaced_meanwhile_tells_of_the_new_one,
    that_is_refused_changes_nothing,
);

async fn answers_with_its_own_write(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1, "user:n": 1})).await;
    let event = changing(|delta| {
        delta.set("a", json!(2));
        delta.add("user:n", 1);
        delta.append("app:list", [json!("x")]);
    });
    let answer = service.change(made.key(), Append::new(named("e1", event)), EventWindow::ALL).await.unwrap();
    assert_eq!(state_of(&answer), json!({"a": 2, "user:n": 2, "app:list": ["x"]}));
    assert_eq!((answer.version(), ids_of(&answer)), (1, vec!["e1"]));
    let read = stored(&service, made.key()).await;
    assert_eq!(serde_json::to_value(&answer).unwrap(), serde_json::to_value(&read).unwrap());
    assert_eq!((answer.versions(), answer.last_update_time()), (read.versions(), read.last_update_time()));
    assert_eq!(answer.events(), read.events());
}

/// A service whose first commit comes after `meanwhile`, which runs through another service over
/// the same store.
fn delayed<F, Fut>(service: &SessionService, meanwhile: F) -> SessionService
where
    F: Fn(SessionService) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let (other, first) = (service.clone(), AtomicBool::new(true));
    let meanwhile = Arc::new(meanwhile);
    SessionService::new(Between::over(service.store(), move |call| {
        let first = matches!(call, Call::Append(_)) && first.swap(false, Ordering::SeqCst);
        let (other, meanwhile) = (other.clone(), meanwhile.clone());
        async move {
            if first {
                meanwhile(other).await;
            }
            Ok(())
        }
    }))
}

async fn answers_with_all_scopes_as_of_the_commit(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1, "user:a": 1, "app:a": 1})).await;
    let delayed = delayed(&service, |other| async move {
        other.append_to(&key("s"), setting(json!({"b": 2}))).await.unwrap();
        let sibling = create(&other, "shop", "ada", "sibling", json!({"user:b": 2})).await;
        other.append_to(sibling.key(), setting(json!({"app:b": 2, "own": 1}))).await.unwrap();
        let mut removal = sessile_state::Delta::from(json!({"c": 3}));
        removal.remove("a");
        other.write_user_state("shop", "ada", removal).await.unwrap();
    });
    let answer =
        delayed.change(made.key(), Append::new(setting(json!({"mine": 1}))), EventWindow::ALL).await.unwrap();
    let expected = json!({"a": 1, "b": 2, "mine": 1, "user:b": 2, "user:c": 3, "app:a": 1, "app:b": 2});
    assert_eq!((answer.version(), state_of(&answer)), (2, expected));
    let read = stored(&service, made.key()).await;
    assert_eq!((answer.versions(), answer.events()), (read.versions(), read.events()));
}

/// Every window of interest for a session with eight events, of which the last is the new one.
fn windows() -> Vec<EventWindow> {
    let mut windows = vec![EventWindow::ALL, EventWindow::NONE];
    windows.extend([1, 2, 3, 4, 7, 8, 9, 100].map(EventWindow::last));
    windows.extend([0, 1, 3, 4, 5, 7, 8, 9].map(EventWindow::after_version));
    windows.extend([5.0, 30.0, 45.0, 80.0, 81.0, 1e9].map(EventWindow::after_time));
    windows.push(EventWindow { last: Some(2), after_version: Some(4), ..EventWindow::ALL });
    windows.push(EventWindow { last: Some(3), after_time: Some(75.0), ..EventWindow::ALL });
    windows.push(EventWindow { until_version: Some(5), ..EventWindow::ALL });
    windows.push(EventWindow { last: Some(2), until_version: Some(6), ..EventWindow::ALL });
    windows
}

fn timed(n: u32) -> Event {
    saying(&format!("e{n}"), "x").with_timestamp(f64::from(n) * 10.0)
}

async fn keeps_to_the_window(service: SessionService) {
    for (n, window) in windows().into_iter().enumerate() {
        let made = session(&service, &format!("s{n}"), empty()).await;
        for event in 1..=7 {
            service.append_to(made.key(), timed(event)).await.unwrap();
        }
        let answer = service.change(made.key(), Append::new(timed(8)), window).await.unwrap();
        let read = service.get(made.key(), window).await.unwrap().unwrap();
        assert_eq!(answer.events(), read.events(), "{window:?}");
        assert_eq!(answer.version(), 8);
    }
}

async fn keeps_to_the_window_when_others_append_meanwhile(service: SessionService) {
    for (n, window) in windows().into_iter().enumerate() {
        let made = session(&service, &format!("s{n}"), empty()).await;
        for event in 1..=4 {
            service.append_to(made.key(), timed(event)).await.unwrap();
        }
        let address = made.key().clone();
        let delayed = delayed(&service, move |other| {
            let address = address.clone();
            async move {
                for event in 5..=7 {
                    other.append_to(&address, timed(event)).await.unwrap();
                }
            }
        });
        let answer = delayed.change(made.key(), Append::new(timed(8)), window).await.unwrap();
        // What is appended after the commit is not in the answer.
        service.append_to(made.key(), timed(9)).await.unwrap();
        let until = window.until_version.map_or(8, |until| until.min(8));
        let window = EventWindow { until_version: Some(until), ..window };
        let read = service.get(made.key(), window).await.unwrap().unwrap();
        assert_eq!(answer.events(), read.events(), "{window:?}");
        assert_eq!(answer.version(), 8);
    }
}

async fn answers_a_repeat_with_the_first_version_and_values(service: SessionService) {
    let made = session(&service, "s", json!({"n": 0, "gone": 1})).await;
    let event = || {
        let event = changing(|delta| {
            delta.add("n", 1);
            delta.remove("gone");
            delta.add("user:n", 1);
        });
        Append::new(named("X", event))
    };
    service.append_to(made.key(), saying("first", "x")).await.unwrap();
    let first = service.change(made.key(), event(), EventWindow::ALL).await.unwrap();
    let later = changing(|delta| {
        delta.add("n", 10);
        delta.add("user:n", 10);
        delta.set("gone", json!("back"));
        delta.set("other", json!(1));
    });
    service.append_to(made.key(), later).await.unwrap();
    let before = everything(&service, made.key()).await;
    let again = service.change(made.key(), event(), EventWindow::ALL).await.unwrap();
    assert_eq!((again.version(), again.events()), (first.version(), first.events()));
    assert_eq!(ids_of(&again), ["first", "X"]);
    assert_eq!(
        state_of(&again),
        json!({"n": 1, "user:n": 1, "other": 1}),
        "what it did not change is current"
    );
    assert_eq!(everything(&service, made.key()).await, before);
    let last = service.change(made.key(), event(), EventWindow::last(1)).await.unwrap();
    assert_eq!(ids_of(&last), ["X"]);
    let none = service.change(made.key(), event(), EventWindow::NONE).await.unwrap();
    assert_eq!((none.version(), none.events().len()), (2, 0));
    let none = service.change(made.key(), event(), EventWindow::after_version(2)).await.unwrap();
    assert_eq!((none.version(), none.events().len()), (2, 0));
    let other = Append::new(named("X", changing(|delta| delta.add("n", 2))));
    let refused = service.change(made.key(), other, EventWindow::ALL).await;
    assert!(matches!(refused, Err(SessionError::EventConflict { .. })));
}

async fn answers_a_repeat_that_others_sent_meanwhile(service: SessionService) {
    let made = session(&service, "s", json!({"n": 0})).await;
    let event = || named("X", changing(|delta| delta.add("n", 1)));
    service.append_to(made.key(), saying("first", "x")).await.unwrap();
    let delayed = delayed(&service, move |other| async move {
        other.append_to(&key("s"), saying("second", "x")).await.unwrap();
        other.append_to(&key("s"), event()).await.unwrap();
        other.append_to(&key("s"), saying("fourth", "x")).await.unwrap();
    });
    let answer = delayed.change(made.key(), Append::new(event()), EventWindow::last(2)).await.unwrap();
    assert_eq!(
        (answer.version(), ids_of(&answer), state_of(&answer)),
        (3, vec!["second", "X"], json!({"n": 1}))
    );
    assert_eq!(stored(&service, made.key()).await.version(), 4);
}

async fn of_many_at_once_each_sees_its_own_write(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let answers = at_once(32, |n| {
        let (service, key) = (service.clone(), made.key().clone());
        async move {
            let event = changing(|delta| {
                delta.add("n", 1);
                delta.add("user:n", 1);
                delta.add("app:n", 1);
                delta.set(format!("k{n}"), json!(n));
            });
            let append = Append::new(named(&format!("e{n}"), event));
            (n, service.change(&key, append, EventWindow::ALL).await.unwrap())
        }
    })
    .await;
    for (n, answer) in &answers {
        let count = answer.version();
        assert_eq!(answer.events().len() as u64, count);
        assert_eq!(ids_of(answer).last().copied(), Some(format!("e{n}").as_str()));
        for key in ["n", "user:n", "app:n"] {
            assert_eq!(answer.state().get(key), Some(count), "as of the commit, neither before nor later");
        }
        assert_eq!(answer.state().get(&format!("k{n}")), Some(*n));
        let keys = answer.state().keys().filter(|key| key.starts_with('k')).count() as u64;
        assert_eq!(keys, count);
    }
    let mut versions: Vec<_> = answers.iter().map(|(_, answer)| answer.version()).collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=32).collect::<Vec<_>>());
}

async fn of_a_missing_session_is_not_found(service: SessionService) {
    let missing =
        service.change(&key("nobody"), Append::new(setting(json!({"app:a": 1}))), EventWindow::ALL).await;
    assert!(matches!(missing, Err(SessionError::NotFound { .. })));
    assert!(service.app_state("shop").await.unwrap().is_empty());
}

async fn of_a_session_that_is_deleted_meanwhile_is_not_found(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let delayed = delayed(&service, |other| async move {
        other.delete(&key("s")).await.unwrap();
    });
    let append = Append::new(setting(json!({"app:a": 1})));
    let missing = delayed.change(made.key(), append, EventWindow::ALL).await;
    assert!(matches!(missing, Err(SessionError::NotFound { .. })));
    assert!(service.app_state("shop").await.unwrap().is_empty());
}

async fn of_a_session_that_is_replaced_meanwhile_tells_of_the_new_one(service: SessionService) {
    let made = session(&service, "s", json!({"who": "old"})).await;
    for event in 1..=3 {
        service.append_to(made.key(), timed(event)).await.unwrap();
    }
    let delayed = delayed(&service, |other| async move {
        other.delete(&key("s")).await.unwrap();
        session(&other, "s", json!({"who": "new"})).await;
        other.append_to(&key("s"), saying("new1", "x")).await.unwrap();
    });
    let append = Append::new(named("mine", setting(json!({"mine": 1}))));
    let answer = delayed.change(made.key(), append, EventWindow::last(5)).await.unwrap();
    assert_eq!((answer.version(), ids_of(&answer)), (2, vec!["new1", "mine"]));
    assert_eq!(state_of(&answer), json!({"who": "new", "mine": 1}));
    assert_ne!(answer.incarnation(), made.incarnation());
    assert_eq!(answer.events(), stored(&service, made.key()).await.events());
}

async fn that_is_refused_changes_nothing(service: SessionService) {
    let made = session(&service, "s", json!({"text": "t"})).await;
    let before: Value = everything(&service, made.key()).await;
    let bad = Append::new(changing(|delta| {
        delta.add("text", 1);
        delta.set("app:a", json!(1));
    }));
    assert!(service.change(made.key(), bad, EventWindow::ALL).await.is_err());
    let partial = Event { partial: Some(true), ..setting(json!({"a": 1})) };
    let refused = service.change(made.key(), Append::new(partial), EventWindow::ALL).await;
    assert!(matches!(refused, Err(SessionError::InvalidEvent { .. })));
    assert_eq!(everything(&service, made.key()).await, before);
}
