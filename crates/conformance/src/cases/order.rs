use sessile_session::{Event, SessionService};

use super::{cases, empty, ids_of, saying, session, stored};

cases!(
    keeps_the_order_of_appending,
    equal_timestamps_keep_the_order_of_appending,
    an_earlier_timestamp_does_not_reorder,
    versions_count_the_events,
);

async fn append_all(service: &SessionService, events: &[(&str, f64)]) -> sessile_session::Session {
    let mut session = session(service, "s", empty()).await;
    for &(id, timestamp) in events {
        service.append(&mut session, Event { timestamp, ..saying(id, "x") }).await.unwrap();
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
    assert_eq!(read.events()[1].timestamp, 10.0);
}

async fn versions_count_the_events(service: SessionService) {
    let read = append_all(&service, &[("a", 1.0), ("b", 1.0), ("c", 1.0)]).await;
    assert_eq!(read.events().iter().map(|event| event.version).collect::<Vec<_>>(), [1, 2, 3]);
}
