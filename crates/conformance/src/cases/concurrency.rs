use serde_json::json;
use sessile_session::{CreateSession, Event, SessionError, SessionService};

use super::{cases, create, empty, session, setting, stored};

cases!(
    parallel_appends_by_key_all_survive,
    parallel_appends_with_one_copy_each_have_one_winner,
    parallel_creates_have_one_winner,
    parallel_creates_lose_no_scoped_keys,
    two_writers_to_app_state_lose_nothing,
    the_same_event_many_times_is_stored_once,
    readers_never_see_half_an_append,
    appends_and_deletes_do_not_leave_remains,
);

/// Runs `count` calls at once and returns what they returned.
async fn at_once<T, Fut>(count: usize, call: impl Fn(usize) -> Fut) -> Vec<T>
where
    T: Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
{
    let tasks: Vec<_> = (0..count).map(|number| tokio::spawn(call(number))).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("no task panics"));
    }
    results
}

async fn parallel_appends_by_key_all_survive(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let versions = at_once(60, |n| {
        let (service, key) = (service.clone(), made.key().clone());
        async move { service.append_to(&key, setting(json!({format!("k{n}"): n}))).await.unwrap().unwrap() }
    })
    .await;
    let read = stored(&service, made.key()).await;
    assert_eq!(read.events().len(), 60);
    assert_eq!(read.state().keys().count(), 60);
    let mut sorted = versions;
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=60).collect::<Vec<_>>());
}

async fn parallel_appends_with_one_copy_each_have_one_winner(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let results = at_once(20, |n| {
        let (service, mut copy) = (service.clone(), made.clone());
        async move { service.append(&mut copy, setting(json!({"winner": n}))).await }
    })
    .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().all(|r| r.is_ok() || matches!(r, Err(SessionError::Conflict { .. }))));
    assert_eq!(stored(&service, made.key()).await.version(), 1);
}

async fn parallel_creates_have_one_winner(service: SessionService) {
    let results = at_once(20, |n| {
        let service = service.clone();
        async move {
            let new = CreateSession::new("shop", "ada").with_id("s").with_state([("winner", json!(n))]);
            service.create(new).await
        }
    })
    .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    assert!(results.iter().all(|r| r.is_ok() || matches!(r, Err(SessionError::AlreadyExists { .. }))));
}

async fn parallel_creates_lose_no_scoped_keys(service: SessionService) {
    at_once(60, |n| {
        let service = service.clone();
        async move {
            let state = json!({format!("app:k{n}"): n, format!("user:k{n}"): n});
            create(&service, "shop", "ada", &format!("s{n}"), state).await;
        }
    })
    .await;
    assert_eq!(service.app_state("shop").await.unwrap().len(), 60);
    assert_eq!(service.user_state("shop", "ada").await.unwrap().len(), 60);
}

async fn two_writers_to_app_state_lose_nothing(service: SessionService) {
    let first = session(&service, "a", empty()).await;
    let second = session(&service, "b", empty()).await;
    let keys = [first.key().clone(), second.key().clone()];
    at_once(60, |n| {
        let (service, key) = (service.clone(), keys[n % 2].clone());
        async move {
            let state = json!({format!("app:k{n}"): n, "app:hot": n, format!("user:k{n}"): n});
            service.append_to(&key, setting(state)).await.unwrap();
            let delta = sessile_state::Delta::from_iter([(format!("direct{n}"), json!(n))]);
            service.write_app_state("shop", &delta).await.unwrap();
        }
    })
    .await;
    assert_eq!(service.app_state("shop").await.unwrap().len(), 121);
    assert_eq!(service.user_state("shop", "ada").await.unwrap().len(), 60);
}

async fn the_same_event_many_times_is_stored_once(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let event = Event { id: "e1".to_owned(), timestamp: 7.0, ..setting(json!({"a": 1})) };
    let versions = at_once(20, |_| {
        let (service, key, event) = (service.clone(), made.key().clone(), event.clone());
        async move { service.append_to(&key, event).await.unwrap() }
    })
    .await;
    assert!(versions.iter().all(|version| *version == Some(1)));
    assert_eq!(stored(&service, made.key()).await.version(), 1);
}

async fn readers_never_see_half_an_append(service: SessionService) {
    let made = session(&service, "s", json!({"n": 0, "user:n": 0, "app:n": 0})).await;
    let writer = {
        let (service, key) = (service.clone(), made.key().clone());
        tokio::spawn(async move {
            for n in 1..=150 {
                service.append_to(&key, setting(json!({"n": n, "user:n": n, "app:n": n}))).await.unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let read = stored(&service, made.key()).await;
        let n: u64 = read.state().get("n").unwrap();
        assert_eq!((read.state().get("user:n"), read.state().get("app:n")), (Some(n), Some(n)));
        assert_eq!((read.version(), read.events().len() as u64), (n, n));
    }
    writer.await.unwrap();
}

async fn appends_and_deletes_do_not_leave_remains(service: SessionService) {
    for round in 0..10 {
        let made = session(&service, "s", empty()).await;
        at_once(6, |n| {
            let (service, key) = (service.clone(), made.key().clone());
            async move {
                match n {
                    0 => drop(service.delete(&key, None).await.unwrap()),
                    _ => match service.append_to(&key, setting(json!({"a": n}))).await {
                        Ok(_) | Err(SessionError::NotFound { .. }) => {}
                        Err(other) => panic!("{other}"),
                    },
                }
            }
        })
        .await;
        service.delete(made.key(), None).await.unwrap();
        let again = session(&service, "s", empty()).await;
        assert_eq!(
            (again.version(), stored(&service, again.key()).await.events().len()),
            (0, 0),
            "round {round}"
        );
        service.delete(again.key(), None).await.unwrap();
    }
}
