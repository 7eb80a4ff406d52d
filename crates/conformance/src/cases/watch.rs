use std::time::Duration;

use serde_json::json;
use sessile_session::{SessionService, Watch};

use super::{cases, empty, saying, session, setting};

cases!(
    sees_what_was_and_what_comes,
    sees_every_commit_once_in_order,
    begins_after_a_version,
    ends_when_the_session_is_deleted,
    sees_what_another_service_commits,
);

async fn next(watch: &mut Watch) -> Option<(u64, String)> {
    let waited = tokio::time::timeout(Duration::from_secs(30), watch.next()).await.expect("a change comes");
    waited.expect("the session is read").map(|event| (event.version, event.id.clone()))
}

async fn sees_what_was_and_what_comes(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    service.append(&mut made, saying("e1", "x")).await.unwrap();
    let mut watch = service.watch(made.key(), 0);
    assert_eq!(next(&mut watch).await, Some((1, "e1".to_owned())));
    let writer = tokio::spawn(async move { service.append(&mut made, saying("e2", "x")).await.map(drop) });
    assert_eq!(next(&mut watch).await, Some((2, "e2".to_owned())));
    writer.await.unwrap().unwrap();
}

async fn sees_every_commit_once_in_order(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let mut watch = service.watch(made.key(), 0);
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let (service, key) = (service.clone(), made.key().clone());
            tokio::spawn(async move { service.append_to(&key, setting(json!({"n": n}))).await.map(drop) })
        })
        .collect();
    for version in 1..=40 {
        assert_eq!(next(&mut watch).await.map(|(seen, _)| seen), Some(version));
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

async fn begins_after_a_version(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    for id in ["e1", "e2", "e3"] {
        service.append(&mut made, saying(id, "x")).await.unwrap();
    }
    let mut watch = service.watch(made.key(), 2);
    assert_eq!(next(&mut watch).await, Some((3, "e3".to_owned())));
}

async fn ends_when_the_session_is_deleted(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let mut watch = service.watch(made.key(), 0);
    let key = made.key().clone();
    let deleter = tokio::spawn(async move { service.delete(&key).await });
    assert_eq!(next(&mut watch).await, None);
    assert!(deleter.await.unwrap().unwrap());
}

/// Two services over one store do not notify each other, like two processes.
async fn sees_what_another_service_commits(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let other = SessionService::over(service.store()).with_poll_interval(Duration::from_millis(20));
    let mut watch = other.watch(made.key(), 0);
    let writer = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        service.append_to(made.key(), saying("e1", "x")).await
    });
    assert_eq!(next(&mut watch).await, Some((1, "e1".to_owned())));
    writer.await.unwrap().unwrap();
}
