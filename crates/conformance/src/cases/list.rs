use serde_json::json;
use sessile_session::{ListSessions, Page, SessionError, SessionService};

use super::{cases, create, empty, saying, session, state_of};

cases!(
    is_empty_not_an_error,
    only_this_app_and_user,
    of_all_users_on_request,
    carries_state_without_events,
    is_in_the_order_of_the_last_change,
    newest_first_on_request,
    pages_do_not_skip_or_repeat,
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
