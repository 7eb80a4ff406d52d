use std::sync::Arc;

use serde_json::json;
use sessile_session::{ListQuery, ListSessions, Page, SessionError, SessionService};

use super::{cases, create, empty, saying, session, state_of};

cases!(
    is_empty_not_an_error,
    only_this_app_and_user,
    of_all_users_on_request,
    carries_state_without_events,
    is_in_the_order_of_the_last_change,
    newest_first_on_request,
    pages_do_not_skip_or_repeat,
    a_page_ends_early_when_its_states_are_large,
    a_page_counts_shared_state_for_each_session,
    a_page_of_large_states_is_bounded_by_the_service,
    shared_state_is_held_once_by_a_page,
    a_token_of_nowhere_is_refused,
    a_token_of_an_impossible_time_is_refused_or_ends_the_list,
);

fn of(user: Option<&str>) -> ListSessions {
    ListSessions { app: "shop".to_owned(), user: user.map(str::to_owned), ..ListSessions::default() }
}

fn ids(page: &Page) -> Vec<&str> {
    page.sessions.iter().map(|session| session.key().id()).collect()
}

async fn is_empty_not_an_error(service: SessionService) {
    let page = service.list(&of(Some("nobody"))).await.unwrap();
    assert!(page.sessions.is_empty() && page.next.is_none());
}

async fn only_this_app_and_user(service: SessionService) {
    session(&service, "mine", empty()).await;
    create(&service, "shop", "bob", "his", empty()).await;
    create(&service, "game", "ada", "other", empty()).await;
    assert_eq!(ids(&service.list(&of(Some("ada"))).await.unwrap()), ["mine"]);
}

async fn of_all_users_on_request(service: SessionService) {
    session(&service, "a", json!({"user:name": "Ada"})).await;
    create(&service, "shop", "bob", "b", json!({"user:name": "Bob"})).await;
    create(&service, "game", "ada", "other", empty()).await;
    let page = service.list(&of(None)).await.unwrap();
    let names: Vec<_> = page.sessions.iter().map(state_of).collect();
    assert_eq!(names, [json!({"user:name": "Ada"}), json!({"user:name": "Bob"})]);
}

async fn carries_state_without_events(service: SessionService) {
    let mut made = session(&service, "s", json!({"a": 1, "user:u": 2, "app:p": 3})).await;
    service.append(&mut made, saying("e1", "x")).await.unwrap();
    let page = service.list(&of(Some("ada"))).await.unwrap();
    let listed = &page.sessions[0];
    assert_eq!(state_of(listed), json!({"a": 1, "user:u": 2, "app:p": 3}));
    assert_eq!((listed.events().len(), listed.version()), (0, 1));
    assert_eq!(listed.last_update_time(), made.last_update_time());
}

async fn is_in_the_order_of_the_last_change(service: SessionService) {
    let mut first = session(&service, "a", empty()).await;
    session(&service, "b", empty()).await;
    session(&service, "c", empty()).await;
    service.append(&mut first, saying("e1", "x")).await.unwrap();
    assert_eq!(ids(&service.list(&of(Some("ada"))).await.unwrap()), ["b", "c", "a"]);
}

async fn newest_first_on_request(service: SessionService) {
    for id in ["a", "b", "c"] {
        session(&service, id, empty()).await;
    }
    let newest = ListSessions { newest_first: true, page_size: 2, ..of(Some("ada")) };
    let page = service.list(&newest).await.unwrap();
    assert_eq!(ids(&page), ["c", "b"]);
    let rest = service.list(&ListSessions { page_token: page.next, ..newest }).await.unwrap();
    assert_eq!((ids(&rest), rest.next.as_deref()), (vec!["a"], None));
}

async fn pages_do_not_skip_or_repeat(service: SessionService) {
    let mut expected = Vec::new();
    for n in 0..25 {
        let (user, id) = (format!("user{}", n % 3), format!("s{n}"));
        create(&service, "shop", &user, &id, empty()).await;
        expected.push((user, id));
    }
    let (mut seen, mut list) = (Vec::new(), ListSessions { page_size: 4, ..of(None) });
    loop {
        let page = service.list(&list).await.unwrap();
        assert!(page.sessions.len() <= 4);
        seen.extend(page.sessions.iter().map(|s| (s.key().user().to_owned(), s.key().id().to_owned())));
        match page.next {
            Some(next) => list.page_token = Some(next),
            None => break,
        }
    }
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
}

async fn a_token_of_nowhere_is_refused(service: SessionService) {
    let nul = [r#"[0,"a\u0000","b"]"#, r#"[0,"a","\u0000b"]"#];
    for token in ["", "rubbish", "[1]", "[9218868437227405312,\"a\",\"b\"]"].into_iter().chain(nul) {
        let list = ListSessions { page_token: Some(token.to_owned()), ..of(None) };
        assert!(matches!(service.list(&list).await, Err(SessionError::InvalidCursor)), "{token}");
    }
}

async fn a_token_of_an_impossible_time_is_refused_or_ends_the_list(service: SessionService) {
    session(&service, "s", empty()).await;
    for time in [1e300, 1e13] {
        let token = json!([f64::to_bits(time), "a", "b"]).to_string();
        let list = ListSessions { page_token: Some(token), ..of(None) };
        match service.list(&list).await {
            Ok(page) => assert!(page.sessions.is_empty() && page.next.is_none(), "{time}"),
            Err(error) => assert!(matches!(error, SessionError::InvalidCursor), "{time}: {error}"),
        }
    }
}

async fn a_page_ends_early_when_its_states_are_large(service: SessionService) {
    for id in ["a", "b", "c", "d", "e"] {
        session(&service, id, json!({"text": "x".repeat(1000)})).await;
    }
    assert_eq!(pages(&service, 2500).await, [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);
    assert_eq!(pages(&service, 1).await.len(), 5); // one is always on a page
    assert_eq!(pages(&service, 100_000).await.len(), 1);
}

async fn a_page_counts_shared_state_for_each_session(service: SessionService) {
    let shared = json!({"app:text": "x".repeat(500), "user:text": "x".repeat(500)});
    for (id, state) in [("a", shared), ("b", empty()), ("c", empty()), ("d", empty())] {
        session(&service, id, state).await;
    }
    assert_eq!(pages(&service, 2500).await, [["a", "b"], ["c", "d"]]);
}

async fn a_page_of_large_states_is_bounded_by_the_service(service: SessionService) {
    for id in ["a", "b", "c"] {
        session(&service, id, json!({"text": "x".repeat(6 << 20)})).await;
    }
    let page = service.list(&of(Some("ada"))).await.unwrap();
    assert_eq!(ids(&page), ["a", "b"]);
    let rest = service.list(&ListSessions { page_token: page.next, ..of(Some("ada")) }).await.unwrap();
    assert_eq!((ids(&rest), &rest.next), (vec!["c"], &None));
}

async fn shared_state_is_held_once_by_a_page(service: SessionService) {
    for (user, id) in [("ada", "a"), ("bob", "b"), ("ada", "c")] {
        create(&service, "shop", user, id, json!({"app:p": ["x"], "user:u": [user]})).await;
    }
    let page = service.store().list(&within(100_000)).await.unwrap();
    let [a, b, c] = &page.sessions[..] else { panic!("{page:?}") };
    assert!(Arc::ptr_eq(&a.app, &b.app) && Arc::ptr_eq(&a.app, &c.app));
    assert!(Arc::ptr_eq(&a.user, &c.user) && !Arc::ptr_eq(&a.user, &b.user));
    let (ada, bob) = (json!(["ada"]), json!(["bob"]));
    assert_eq!((&*a.user["u"], &*b.user["u"], &*c.user["u"]), (&ada, &bob, &ada));
}

/// All sessions of the application, in pages of so many bytes.
fn within(max_bytes: usize) -> ListQuery {
    let app = "shop".to_owned();
    ListQuery { app, user: None, limit: 100, max_bytes, after: None, newest_first: false }
}

/// The ids of each page.
async fn pages(service: &SessionService, max_bytes: usize) -> Vec<Vec<String>> {
    let (mut pages, mut query) = (Vec::new(), within(max_bytes));
    loop {
        let page = service.store().list(&query).await.unwrap();
        assert!(page.unreadable.is_empty());
        pages.push(page.sessions.iter().map(|session| session.key.id().to_owned()).collect());
        match page.next {
            Some(next) => query.after = Some(next),
            None => return pages,
        }
    }
}
