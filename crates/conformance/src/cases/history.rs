use serde_json::{Value, json};
use sessile_session::{Event, EventActions, Session, SessionError, SessionService};
use sessile_state::Delta;

use super::{cases, ids_of, json_of, session, setting, state_of, stored};

cases!(
    state_at_is_the_fold_of_the_events,
    state_at_a_later_version_is_refused,
    rewind_brings_back_the_state_before_an_invocation,
    rewind_keeps_initial_state_and_scoped_state,
    rewind_to_an_unknown_invocation_is_refused,
    fork_begins_as_the_session_was,
    fork_goes_its_own_way,
    the_state_is_the_fold_of_the_events,
);

/// Initial state {a: 1, keep: 0}; invocation i1 sets a and b, i2 removes a and sets c and shared
/// keys.
async fn story(service: &SessionService) -> Session {
    let mut made = session(service, "s", json!({"a": 1, "keep": 0})).await;
    let mut removal = Delta::from_iter([("c", json!(3)), ("user:u", json!(1)), ("app:p", json!(1))]);
    removal.remove("a");
    for (invocation, event) in [
        ("i1", setting(json!({"a": 2}))),
        ("i1", setting(json!({"b": 2}))),
        ("i2", Event::new("agent").with_actions(EventActions::from_delta(&removal))),
        ("i2", setting(json!({"b": 3}))),
    ] {
        service.append(&mut made, event.with_invocation(invocation)).await.unwrap();
    }
    made
}

async fn state_at_is_the_fold_of_the_events(service: SessionService) {
    let made = story(&service).await;
    for (version, expected) in [
        (0, json!({"a": 1, "keep": 0})),
        (1, json!({"a": 2, "keep": 0})),
        (2, json!({"a": 2, "b": 2, "keep": 0})),
        (3, json!({"b": 2, "c": 3, "keep": 0})),
        (4, json!({"b": 3, "c": 3, "keep": 0})),
    ] {
        assert_eq!(
            json_of(&service.state_at(made.key(), version).await.unwrap()),
            expected,
            "version {version}"
        );
    }
}

async fn state_at_a_later_version_is_refused(service: SessionService) {
    let made = story(&service).await;
    assert!(matches!(service.state_at(made.key(), 5).await, Err(SessionError::NotInHistory { .. })));
}

async fn rewind_brings_back_the_state_before_an_invocation(service: SessionService) {
    let made = story(&service).await;
    let rewound = service.rewind(made.key(), "i2").await.unwrap();
    let expected = json!({"a": 2, "b": 2, "keep": 0, "user:u": 1, "app:p": 1});
    assert_eq!(state_of(&rewound), expected);
    let read = stored(&service, made.key()).await;
    assert_eq!(state_of(&read), expected);
    assert_eq!(read.version(), 5, "nothing is deleted");
    let event = &read.events()[4];
    assert_eq!(event.actions.rewind_before_invocation_id.as_deref(), Some("i2"));
    assert!(event.actions.state_delta.removed().eq(["c"]));
}

async fn rewind_keeps_initial_state_and_scoped_state(service: SessionService) {
    let made = story(&service).await;
    let rewound = service.rewind(made.key(), "i1").await.unwrap();
    assert_eq!(state_of(&rewound), json!({"a": 1, "keep": 0, "user:u": 1, "app:p": 1}));
}

async fn rewind_to_an_unknown_invocation_is_refused(service: SessionService) {
    let made = story(&service).await;
    for unknown in ["i3", ""] {
        let refused = service.rewind(made.key(), unknown).await;
        assert!(matches!(refused, Err(SessionError::NotInHistory { .. })));
    }
    assert_eq!(stored(&service, made.key()).await.version(), 4);
}

async fn fork_begins_as_the_session_was(service: SessionService) {
    let made = story(&service).await;
    let fork = service.fork(made.key(), 2, Some("fork")).await.unwrap();
    assert_eq!((fork.key().id(), fork.version()), ("fork", 2));
    assert_eq!(ids_of(&fork), ids_of(&made)[..2]);
    assert_eq!(state_of(&fork), json!({"a": 2, "b": 2, "keep": 0, "user:u": 1, "app:p": 1}));
    assert_eq!(json_of(&service.state_at(fork.key(), 0).await.unwrap()), json!({"a": 1, "keep": 0}));
    let whole = service.fork(made.key(), 4, None).await.unwrap();
    assert_eq!(state_of(&whole), state_of(&made));
    let taken = service.fork(made.key(), 2, Some("fork")).await;
    assert!(matches!(taken, Err(SessionError::AlreadyExists { .. })));
    assert!(matches!(service.fork(made.key(), 5, None).await, Err(SessionError::NotInHistory { .. })));
}

async fn fork_goes_its_own_way(service: SessionService) {
    let made = story(&service).await;
    let mut fork = service.fork(made.key(), 4, Some("fork")).await.unwrap();
    service.append(&mut fork, setting(json!({"b": "fork"}))).await.unwrap();
    assert_eq!(stored(&service, made.key()).await.state().get::<u32>("b"), Some(3));
}

async fn the_state_is_the_fold_of_the_events(service: SessionService) {
    let made = story(&service).await;
    service.rewind(made.key(), "i2").await.unwrap();
    let read = stored(&service, made.key()).await;
    let folded = json_of(&service.state_at(made.key(), read.version()).await.unwrap());
    let own: serde_json::Map<_, _> =
        read.state().to_map().into_iter().filter(|(key, _)| !key.contains(':')).collect();
    assert_eq!(Value::from(own), folded);
}
