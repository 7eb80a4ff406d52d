use sessile_session::SessionService;

use super::{cases, empty, ids_of, saying, session, stored};

cases!(
    keeps_the_order_of_appending,
    equal_timestamps_keep_the_order_of_appending,
    an_earlier_timestamp_does_not_reorder,
    versions_count_the_events,
    a_changed_session_has_a_changed_time_up_to_the_year_9999,
);

async fn append_all(service: &SessionService, events: &[(&str, f64)]) -> sessile_session::Session {
    let mut session = session(service, "s", empty()).await;
    for &(id, timestamp) in events {
        service.append(&mut session, saying(id, "x").with_timestamp(timestamp)).await.unwrap();
    }
    stored(service, session.key()).await
}

async fn keeps_the_order_of_appending(service: SessionService) {
    let read = append_all(&service, &[("b", 1.0), ("a", 2.0), ("c", 3.0)]).await;
    assert_eq!(ids_of(&read), ["b", "a", "c"]);
}

async fn equal_timestamps_keep_the_order_of_appending(service: SessionService) {
    let read = append_all(&service, &[("z", 7.0), ("m", 7.0), ("a", 7.0), ("q", 7.0)]).await;
    assert_eq!(ids_of(&read), ["z", "m", "a", "q"]);
}

async fn an_earlier_timestamp_does_not_reorder(service: SessionService) {
    let read = append_all(&service, &[("a", 30.0), ("b", 10.0), ("c", 20.0)]).await;
    assert_eq!(ids_of(&read), ["a", "b", "c"]);
    assert_eq!(read.events()[1].timestamp, Some(10.0));
}

async fn versions_count_the_events(service: SessionService) {
    let read = append_all(&service, &[("a", 1.0), ("b", 1.0), ("c", 1.0)]).await;
    assert_eq!(read.events().iter().map(|event| event.version).collect::<Vec<_>>(), [1, 2, 3]);
}

async fn a_changed_session_has_a_changed_time_up_to_the_year_9999(service: SessionService) {
    for (id, timestamp) in [("now", 5e9), ("next", 8_589_934_591.999_999), ("far", 2e10), ("last", 2.534e11)]
    {
        let mut session = session(&service, id, empty()).await;
        let mut before = f64::MIN;
        for n in 0..6 {
            let event = saying(&format!("e{n}"), "x").with_timestamp(timestamp);
            service.append(&mut session, event).await.unwrap();
            let read = stored(&service, session.key()).await.last_update_time();
            assert!(read > before, "{id}: {read} after {before}");
            assert_eq!(session.last_update_time(), read, "{id}");
            before = read;
        }
    }
}
