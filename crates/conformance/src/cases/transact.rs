use serde_json::json;
use sessile_session::{SessionError, SessionService};

use super::{cases, create, empty, key, session, state_of, stored};

cases!(
    reads_computes_and_commits,
    counters_lose_nothing_in_any_scope,
    changing_nothing_commits_nothing,
    an_error_commits_nothing,
    temp_is_not_committed,
    removes_keys,
    on_a_missing_session_is_not_found,
);

async fn reads_computes_and_commits(service: SessionService) {
    let made = session(&service, "s", json!({"items": ["a"]})).await;
    let (length, version) = service
        .transact(made.key(), |state| {
            let items = state.modify("items", Vec::<String>::new(), |mut items| {
                items.push("b".to_owned());
                items
            });
            Ok(items.len())
        })
        .await
        .unwrap();
    assert_eq!((length, version), (2, 1));
    let read = stored(&service, made.key()).await;
    assert_eq!(state_of(&read), json!({"items": ["a", "b"]}));
    assert_eq!(read.events()[0].actions.state_delta.len(), 1);
}

async fn counters_lose_nothing_in_any_scope(service: SessionService) {
    for n in 0..4 {
        create(&service, "shop", "ada", &format!("s{n}"), empty()).await;
    }
    let tasks: Vec<_> = (0..4)
        .map(|n| {
            let service = service.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    let count = |state: &sessile_state::State| {
                        state.try_modify("user:n", 0, |n: u32| n + 1)?;
                        state.try_modify("app:n", 0, |n: u32| n + 1)?;
                        state.try_modify("n", 0, |n: u32| n + 1)?;
                        Ok(())
                    };
                    service.transact(&key(&format!("s{n}")), count).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(service.user_state("shop", "ada").await.unwrap()["n"], json!(40));
    assert_eq!(service.app_state("shop").await.unwrap()["n"], json!(40));
    assert_eq!(stored(&service, &key("s2")).await.state().get::<u32>("n"), Some(10));
}

async fn changing_nothing_commits_nothing(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1})).await;
    let (read, version) = service.transact(made.key(), |state| Ok(state.get::<u32>("a"))).await.unwrap();
    assert_eq!((read, version), (Some(1), 0));
    assert_eq!(stored(&service, made.key()).await.version(), 0);
}

async fn an_error_commits_nothing(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1})).await;
    let given_up = service
        .transact(made.key(), |state| {
            state.set("a", 2);
            Err::<(), _>("not today".into())
        })
        .await;
    assert!(
        matches!(given_up, Err(SessionError::GivenUp { source, .. }) if source.to_string() == "not today")
    );
    assert_eq!(state_of(&stored(&service, made.key()).await), json!({"a": 1}));
}

async fn temp_is_not_committed(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let (_, version) =
        service.transact(made.key(), |state| Ok(state.set_default("temp:x", 1))).await.unwrap();
    assert_eq!(version, 0);
    service
        .transact(made.key(), |state| {
            state.set("temp:x", 1);
            state.set("y", 1);
            Ok(())
        })
        .await
        .unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!(state_of(&read), json!({"y": 1}));
    assert_eq!(read.events()[0].actions.state_delta.len(), 1);
}

async fn removes_keys(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1, "user:b": 2})).await;
    service.transact(made.key(), |state| Ok((state.remove("a"), state.user().remove("b")))).await.unwrap();
    assert_eq!(state_of(&stored(&service, made.key()).await), empty());
}

async fn on_a_missing_session_is_not_found(service: SessionService) {
    let missing = service.transact(&key("nobody"), |_| Ok(())).await;
    assert!(matches!(missing, Err(SessionError::NotFound { .. })));
}
