use sessile_session::{EventWindow, Session, SessionKey, SessionService};

use super::{cases, empty, ids_of, key, saying, session, stored};

cases!(
    absent_is_none,
    of_another_user_is_none,
    last_n_events_are_the_last_n_in_order,
    no_events_on_request,
    after_time_is_inclusive,
    after_and_until_version,
    filters_combine,
    is_not_changed_by_later_appends,
);

async fn absent_is_none(service: SessionService) {
    assert!(service.get(&key("nobody"), EventWindow::ALL).await.unwrap().is_none());
}

async fn of_another_user_is_none(service: SessionService) {
    session(&service, "s", empty()).await;
    for (app, user) in [("shop", "bob"), ("other", "ada"), ("shop", "ADA")] {
        let other = SessionKey::new(app, user, "s").unwrap();
        assert!(service.get(&other, EventWindow::ALL).await.unwrap().is_none(), "{other}");
    }
}

/// A session with the events e1 to e5 at the times 10, 20, … 50.
async fn five(service: &SessionService) -> Session {
    let mut session = session(service, "s", empty()).await;
    for n in 1..=5 {
        let event = saying(&format!("e{n}"), "x").with_timestamp(f64::from(n) * 10.0);
        service.append(&mut session, event).await.unwrap();
    }
    session
}

async fn read(service: &SessionService, window: EventWindow) -> Session {
    service.get(&key("s"), window).await.unwrap().unwrap()
}

async fn last_n_events_are_the_last_n_in_order(service: SessionService) {
    five(&service).await;
    assert_eq!(ids_of(&read(&service, EventWindow::last(2)).await), ["e4", "e5"]);
    assert_eq!(ids_of(&read(&service, EventWindow::last(99)).await).len(), 5);
    let versions: Vec<_> =
        read(&service, EventWindow::last(2)).await.events().iter().map(|event| event.version).collect();
    assert_eq!(versions, [4, 5]);
}

async fn no_events_on_request(service: SessionService) {
    five(&service).await;
    let none = read(&service, EventWindow::NONE).await;
    assert_eq!((none.events().len(), none.version()), (0, 5));
}

async fn after_time_is_inclusive(service: SessionService) {
    five(&service).await;
    assert_eq!(ids_of(&read(&service, EventWindow::after_time(30.0)).await), ["e3", "e4", "e5"]);
    assert_eq!(ids_of(&read(&service, EventWindow::after_time(30.5)).await), ["e4", "e5"]);
    assert_eq!(ids_of(&read(&service, EventWindow::after_time(51.0)).await), [""; 0]);
}

async fn after_and_until_version(service: SessionService) {
    five(&service).await;
    assert_eq!(ids_of(&read(&service, EventWindow::after_version(3)).await), ["e4", "e5"]);
    assert_eq!(ids_of(&read(&service, EventWindow::after_version(5)).await), [""; 0]);
    let until = EventWindow { until_version: Some(2), ..EventWindow::ALL };
    assert_eq!(ids_of(&read(&service, until).await), ["e1", "e2"]);
}

async fn filters_combine(service: SessionService) {
    five(&service).await;
    let window = EventWindow { last: Some(2), after_time: Some(20.0), ..EventWindow::ALL };
    assert_eq!(ids_of(&read(&service, window).await), ["e4", "e5"]);
    let window =
        EventWindow { last: Some(3), after_time: Some(20.0), until_version: Some(4), ..EventWindow::ALL };
    assert_eq!(ids_of(&read(&service, window).await), ["e2", "e3", "e4"]);
}

async fn is_not_changed_by_later_appends(service: SessionService) {
    let mut session = five(&service).await;
    let before = stored(&service, session.key()).await;
    service.append(&mut session, saying("e6", "x")).await.unwrap();
    assert_eq!((before.events().len(), before.version()), (5, 5));
    assert_eq!((session.events().len(), session.version()), (6, 6));
}
