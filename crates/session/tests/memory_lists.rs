//! The store in memory moves changed sessions in its lists late. Lists must not show that.

use serde_json::json;
use sessile_session::{
    CreateSession, Event, EventActions, ListSessions, MemoryStore, SessionKey, SessionService,
};

/// More than the store lets wait.
const SESSIONS: usize = 300;

fn key(n: usize) -> SessionKey {
    SessionKey::new("shop", format!("user{}", n % 2), &format!("s{n}")).expect("it is valid")
}

async fn listed(service: &SessionService, user: Option<&str>) -> Vec<String> {
    let list = ListSessions {
        app: "shop".to_owned(),
        user: user.map(str::to_owned),
        page_size: 2 * SESSIONS,
        ..ListSessions::default()
    };
    let page = service.list(&list).await.expect("they are listed");
    page.sessions.iter().map(|session| session.key().id().to_owned()).collect()
}

#[tokio::test]
async fn sessions_are_listed_in_the_order_of_their_last_change() {
    let service = SessionService::new(MemoryStore::new());
    let create = async |n: usize, time: f64| {
        let new = CreateSession::new("shop", key(n).user()).with_id(key(n).id());
        let event = Event::new("user").with_timestamp(time);
        service.create(new.with_events([event])).await.expect("it is created");
    };
    let append = async |n: usize, time: f64| {
        let actions = EventActions::from_delta(json!({"n": n}));
        let event = Event::new("user").with_actions(actions).with_timestamp(time);
        service.append_to(&key(n), event).await.expect("it is appended");
    };
    let later = |n: usize| 2e9 + ((n * 7) % SESSIONS) as f64;
    for n in 0..SESSIONS {
        create(n, 1e9 + n as f64).await;
    }
    for n in 0..SESSIONS {
        append(n, 1.5e9).await;
        append(n, later(n)).await; // a session that waits to be moved is moved once
    }
    // One that waits is deleted, and one is created again and changed.
    assert!(service.delete(&key(SESSIONS - 1)).await.expect("it is deleted"));
    assert!(service.delete(&key(SESSIONS - 2)).await.expect("it is deleted"));
    create(SESSIONS - 2, 3e9).await;
    append(SESSIONS - 2, 4e9).await;

    let mut expected: Vec<usize> = (0..SESSIONS - 2).collect();
    expected.sort_by(|one, other| later(*one).total_cmp(&later(*other)));
    expected.push(SESSIONS - 2);
    for user in [None, Some("user0"), Some("user1")] {
        let of_user = expected.iter().filter(|n| user.is_none_or(|user| key(**n).user() == user));
        let ids: Vec<String> = of_user.map(|n| key(*n).id().to_owned()).collect();
        assert_eq!(listed(&service, user).await, ids, "{user:?}");
    }
    append(5, 5e9).await;
    assert_eq!(listed(&service, None).await.last().map(String::as_str), Some("s5"));
}
