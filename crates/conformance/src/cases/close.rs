use std::time::Duration;

use serde_json::json;
use sessile_session::SessionService;

use super::{cases, empty, session, setting, stored};

cases!(ends_after_writes, answers_every_call_that_was_made_before);

async fn ends_after_writes(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    service.append(&mut made, setting(json!({"a": 1, "user:a": 1}))).await.unwrap();
    assert_eq!(stored(&service, made.key()).await.version(), 1);
    service.close().await.unwrap();
    service.close().await.expect("closing twice is harmless");
}

/// Calls that race with the close are completed or refused; none hangs.
async fn answers_every_call_that_was_made_before(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let calls: Vec<_> = (0..32)
        .map(|n| {
            let (service, key) = (service.clone(), made.key().clone());
            tokio::spawn(async move { service.append_to(&key, setting(json!({"n": n}))).await })
        })
        .collect();
    service.close().await.unwrap();
    for call in calls {
        let answered = tokio::time::timeout(Duration::from_secs(30), call).await.expect("it is answered");
        match answered.expect("no call panics") {
            Ok(version) => assert!(version.is_some_and(|version| (1..=32).contains(&version))),
            Err(refused) => assert!(!refused.to_string().is_empty()),
        }
    }
}
