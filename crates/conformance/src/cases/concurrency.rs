use serde_json::json;
use sessile_session::{
    Append, ChangeWindow, CreateSession, Event, EventWindow, Expect, Guards, OnOverwrite, SessionError,
    SessionKey, SessionService,
};
use sessile_state::{Operation, State};

use super::{cases, changing, create, delta, empty, session, setting, stored};

cases!(
    parallel_appends_by_key_all_survive,
    parallel_appends_with_one_copy_each_have_one_winner,
    parallel_creates_have_one_winner,
    parallel_creates_lose_no_scoped_keys,
    two_writers_to_app_state_lose_nothing,
    the_same_event_many_times_is_stored_once,
    readers_never_see_half_an_append,
    appends_and_deletes_do_not_leave_remains,
    operations_of_64_tasks_lose_nothing,
    operations_with_and_without_sessions_lose_nothing,
    a_union_of_64_tasks_has_every_item_once,
    transactions_of_64_tasks_on_one_key_lose_nothing,
    a_stock_of_100_is_sold_100_times,
    neighbours_of_a_refused_commit_go_through,
    neighbours_of_a_refused_write_go_through,
    the_session_that_all_want_is_created_once,
);

/// Runs `count` calls at once and returns what they returned.
pub(super) async fn at_once<T, Fut>(count: usize, call: impl Fn(usize) -> Fut) -> Vec<T>
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
    let event = Event { id: "e1".to_owned(), ..setting(json!({"a": 1})) }.with_timestamp(7.0);
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
                    0 => drop(service.delete(&key).await.unwrap()),
                    _ => match service.append_to(&key, setting(json!({"a": n}))).await {
                        Ok(_) | Err(SessionError::NotFound { .. }) => {}
                        Err(other) => panic!("{other}"),
                    },
                }
            }
        })
        .await;
        service.delete(made.key()).await.unwrap();
        let again = session(&service, "s", empty()).await;
        assert_eq!(
            (again.version(), stored(&service, again.key()).await.events().len()),
            (0, 0),
            "round {round}"
        );
        service.delete(again.key()).await.unwrap();
    }
}

/// Eight sessions, so that commits meet in shared rows and not only in their session's.
async fn eight(service: &SessionService) -> Vec<SessionKey> {
    let mut keys = Vec::new();
    for n in 0..8 {
        keys.push(session(service, &format!("s{n}"), empty()).await.key().clone());
    }
    keys
}

async fn operations_of_64_tasks_lose_nothing(service: SessionService) {
    let keys = eight(&service).await;
    at_once(64, |n| {
        let (service, key) = (service.clone(), keys[n % 8].clone());
        async move {
            for round in 0..3 {
                let event = changing(|delta| {
                    for prefix in ["", "user:", "app:"] {
                        delta.add(format!("{prefix}n"), 1);
                        delta.append(format!("{prefix}list"), [json!(3 * n + round)]);
                    }
                });
                service.append_to(&key, event).await.unwrap();
            }
        }
    })
    .await;
    let (user, app) =
        (service.user_state("shop", "ada").await.unwrap(), service.app_state("shop").await.unwrap());
    for shared in [user, app] {
        assert_eq!(shared["n"], json!(192));
        let mut list: Vec<usize> = shared["list"].read().unwrap();
        list.sort_unstable();
        assert_eq!(list, (0..192).collect::<Vec<_>>());
    }
    for key in &keys {
        let read = stored(&service, key).await;
        assert_eq!((read.version(), read.state().get("n")), (24, Some(24)));
        assert_eq!(read.state().get::<Vec<usize>>("list").map(|list| list.len()), Some(24));
    }
}

async fn operations_with_and_without_sessions_lose_nothing(service: SessionService) {
    let keys = eight(&service).await;
    at_once(64, |n| {
        let (service, key) = (service.clone(), keys[n % 8].clone());
        async move {
            let add = || delta(|delta| delta.add("n", 1));
            match n % 4 {
                0 => drop(service.append_to(&key, changing(|delta| delta.add("user:n", 1))).await.unwrap()),
                1 => drop(service.write_user_state("shop", "ada", add()).await.unwrap()),
                2 => {
                    let add = |state: &State| state.user().try_add("n", 1).map_err(Into::into);
                    service.transact(&key, add).await.unwrap();
                }
                _ => {
                    let state = delta(|delta| delta.add("user:n", 1));
                    drop(service.create(CreateSession::new("shop", "ada").with_state(state)).await.unwrap());
                }
            }
        }
    })
    .await;
    let state = service.store().scope_state(&super::user_scope()).await.unwrap();
    assert_eq!((state.version, &state.state["n"]), (64, &json!(64).into()));
}

async fn a_union_of_64_tasks_has_every_item_once(service: SessionService) {
    let keys = eight(&service).await;
    at_once(64, |n| {
        let (service, key) = (service.clone(), keys[n % 8].clone());
        async move {
            let event = changing(|delta| {
                delta.union("app:set", [json!(n % 16), json!((n + 1) % 16)]);
                delta.operate("app:map", Operation::union_fields([(format!("f{}", n % 32), json!(n % 32))]));
            });
            service.append_to(&key, event).await.unwrap();
        }
    })
    .await;
    let state = service.app_state("shop").await.unwrap();
    let mut set: Vec<usize> = state["set"].read().unwrap();
    set.sort_unstable();
    assert_eq!(set, (0..16).collect::<Vec<_>>());
    assert_eq!(state["map"].as_object().unwrap().len(), 32);
}

async fn transactions_of_64_tasks_on_one_key_lose_nothing(service: SessionService) {
    let keys = eight(&service).await;
    let mut seen = at_once(64, |n| {
        let (service, key) = (service.clone(), keys[n % 8].clone());
        async move {
            let count = service.transact(&key, |state| Ok(state.try_modify("app:n", 0, |n: u64| n + 1)?));
            count.await.unwrap().0
        }
    })
    .await;
    seen.sort_unstable();
    assert_eq!(seen, (1..=64).collect::<Vec<_>>(), "each returns the value that it wrote");
    assert_eq!(service.app_state("shop").await.unwrap()["n"], json!(64));
}

async fn a_stock_of_100_is_sold_100_times(service: SessionService) {
    let keys = eight(&service).await;
    service.write_app_state("shop", json!({"stock": 100})).await.unwrap();
    let sold = at_once(64, |n| {
        let (service, key) = (service.clone(), keys[n % 8].clone());
        async move {
            let mut sold = 0;
            for _ in 0..3 {
                let event = changing(|delta| {
                    delta.operate("app:stock", Operation::add(-1).at_least(0));
                    delta.add("sold", 1);
                    delta.add("user:sold", 1);
                });
                match service.append_to(&key, event).await {
                    Ok(_) => sold += 1,
                    Err(SessionError::Operation { key, .. }) if key == "app:stock" => {}
                    Err(other) => panic!("{other}"),
                }
            }
            sold
        }
    })
    .await;
    assert_eq!(sold.iter().sum::<u32>(), 100);
    assert_eq!(service.app_state("shop").await.unwrap()["stock"], json!(0));
    assert_eq!(service.user_state("shop", "ada").await.unwrap()["sold"], json!(100));
    let mut events = 0;
    for key in &keys {
        let read = stored(&service, key).await;
        assert_eq!(read.state().get::<u64>("sold").unwrap_or(0), read.version());
        events += read.version();
    }
    assert_eq!(events, 100, "a refused sale leaves no event");
}

/// Commits that a store writes together are refused one by one.
async fn neighbours_of_a_refused_commit_go_through(service: SessionService) {
    let keys = eight(&service).await;
    service.write_app_state("shop", json!({"text": "t", "n": 0})).await.unwrap();
    service.write_user_state("shop", "ada", json!({"n": 0})).await.unwrap();
    let results = at_once(64, |n| {
        let (service, key) = (service.clone(), keys[n % 8].clone());
        async move {
            let mut event =
                changing(|delta| ["n", "user:n", "app:n"].iter().for_each(|key| delta.add(key, 1)));
            let mut append = Append::default();
            match n % 8 {
                1 => event.actions.state_delta.add("app:text", 1),
                3 => event.actions.state_delta.operate("user:n", Operation::add(0).at_most(-1)),
                5 => append.guards = Guards::new(OnOverwrite::Refuse).with_absent("app:text"),
                7 => append.expect = Expect { app: Some(0), ..Expect::default() },
                _ => {}
            }
            append.event = event;
            (n, service.append_to(&key, append).await)
        }
    })
    .await;
    for (n, result) in results {
        match n % 8 {
            1 | 3 => assert!(matches!(result, Err(SessionError::Operation { .. })), "{n}: {result:?}"),
            5 => assert!(matches!(result, Err(SessionError::Overwritten { .. })), "{n}: {result:?}"),
            7 => assert!(matches!(result, Err(SessionError::Conflict { .. })), "{n}: {result:?}"),
            _ => assert!(result.is_ok(), "{n}: {result:?}"),
        }
    }
    assert_eq!(service.app_state("shop").await.unwrap()["n"], json!(32));
    assert_eq!(service.user_state("shop", "ada").await.unwrap()["n"], json!(32));
    for (n, key) in keys.iter().enumerate() {
        let expected = if n % 2 == 0 { 8 } else { 0 };
        assert_eq!(stored(&service, key).await.version(), expected);
    }
    for scope in [super::user_scope(), super::app_scope()] {
        let changes = service
            .store()
            .scope_changes(&scope, ChangeWindow { after: 1, ..ChangeWindow::newest(1000) })
            .await
            .unwrap();
        let versions: Vec<_> = changes.iter().map(|change| change.version).collect();
        assert_eq!(versions, (2..=33).rev().collect::<Vec<_>>());
    }
}

async fn neighbours_of_a_refused_write_go_through(service: SessionService) {
    service.write_app_state("shop", json!({"text": "t", "n": 0})).await.unwrap();
    let results = at_once(64, |n| {
        let service = service.clone();
        async move {
            let change = delta(|delta| {
                delta.add("n", 1);
                if n % 2 == 1 {
                    delta.add("text", 1);
                }
            });
            service.write_app_state("shop", change).await.map(|written| written.version)
        }
    })
    .await;
    let mut versions: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok().copied()).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..=33).collect::<Vec<_>>());
    assert!(results.iter().all(|result| matches!(result, Ok(_) | Err(SessionError::Operation { .. }))));
    assert_eq!(service.app_state("shop").await.unwrap()["n"], json!(32));
}

async fn the_session_that_all_want_is_created_once(service: SessionService) {
    let made = at_once(20, |n| {
        let service = service.clone();
        async move {
            let state = delta(|delta| {
                delta.set("winner", json!(n));
                delta.add("app:created", 1);
            });
            let new = CreateSession::new("shop", "ada").with_id("s").with_state(state);
            service.get_or_create(new, EventWindow::ALL).await.unwrap()
        }
    })
    .await;
    let first = &made[0];
    assert!(made.iter().all(|session| session.incarnation() == first.incarnation()));
    assert!(made.iter().all(|session| session.state() == first.state()));
    assert_eq!(service.app_state("shop").await.unwrap()["created"], json!(1));
}
