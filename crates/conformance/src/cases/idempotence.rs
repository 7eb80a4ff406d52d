//! The same event again: a caller that did not get the answer may send it again, and nothing
//! happens twice.

use std::sync::Arc;

use serde_json::{Value, json};
use sessile_session::{
    Append, Appended, ChangeWindow, Event, EventWindow, Expect, Guards, OPERATIONS, OVERWROTE, OnConflict,
    OnOverwrite, REMOVED, RestoreSession, SessionError, SessionKey, SessionService,
};
use sessile_state::Operation;

use super::{
    cases, changing, concurrency::at_once, empty, everything, key, named, saying, session, setting, state_of,
    stored, value,
};

cases!(
    an_operation_sent_again_is_applied_once,
    another_operation_under_the_id_is_a_conflict,
    what_the_operation_came_to_is_the_same_event,
    numbers_are_compared_by_value,
    a_removal_is_not_a_null,
    fields_that_were_left_out_are_not_compared,
    fields_that_were_given_are_compared,
    every_kind_of_change_can_be_sent_again,
    metadata_of_the_caller_is_compared_and_that_of_the_commit_is_not,
    sixteen_at_once_are_stored_once,
    a_known_event_is_answered_before_anything_else_is_looked_at,
    the_answer_tells_of_the_first_commit,
    a_session_in_hand_takes_a_known_event_in_once,
    metadata_that_only_a_commit_writes_is_refused,
    metadata_that_only_a_commit_writes_is_restored,
);

async fn answer(service: &SessionService, key: &SessionKey, event: Event) -> Result<Appended, SessionError> {
    service.append_answering(key, Append::new(event)).await
}

fn is_conflict(refused: Result<Appended, SessionError>) -> bool {
    matches!(refused, Err(SessionError::EventConflict { id, .. }) if id == "X")
}

async fn an_operation_sent_again_is_applied_once(service: SessionService) {
    let made = session(&service, "s", json!({"n": 5, "user:n": 5, "app:n": 5})).await;
    let event = || {
        let event = changing(|delta| ["n", "user:n", "app:n"].iter().for_each(|key| delta.add(key, 1)));
        named("X", event)
    };
    let first = answer(&service, made.key(), event()).await.unwrap();
    assert!(!first.is_known);
    service.append_to(made.key(), changing(|delta| delta.add("user:n", 10))).await.unwrap();
    let before = everything(&service, made.key()).await;
    let again = answer(&service, made.key(), event()).await.unwrap();
    assert!(again.is_known);
    assert_eq!((again.version, &again.event, again.incarnation), (1, &first.event, first.incarnation));
    assert_eq!(again.event.actions.state_delta, first.event.actions.state_delta);
    assert_eq!(everything(&service, made.key()).await, before);
    assert_eq!(stored(&service, made.key()).await.state().get::<u32>("user:n"), Some(16));
}

async fn another_operation_under_the_id_is_a_conflict(service: SessionService) {
    let made = session(&service, "s", json!({"n": 5, "list": [1]})).await;
    let event = named("X", changing(|delta| delta.add("n", 1)));
    service.append_to(made.key(), event.clone()).await.unwrap();
    let before = everything(&service, made.key()).await;
    for other in [
        changing(|delta| delta.add("n", 5)),
        changing(|delta| delta.operate("n", Operation::add(1).at_least(0))),
        changing(|delta| delta.add("m", 1)),
        changing(|delta| {
            delta.add("n", 1);
            delta.add("m", 1);
        }),
        changing(|delta| {
            delta.add("n", 1);
            delta.add("n", 1);
        }),
        changing(|delta| delta.append("list", [json!(1)])),
        setting(json!({"n": 7})),
        setting(json!({"n": 6, "m": 1})),
        saying("X", "hello"),
        Event::new("agent"),
        Event { author: "user".to_owned(), ..event.clone() },
    ] {
        assert!(is_conflict(answer(&service, made.key(), named("X", other.clone())).await), "{other:?}");
    }
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn what_the_operation_came_to_is_the_same_event(service: SessionService) {
    let made = session(&service, "s", json!({"n": 5, "user:list": [1], "gone": 1})).await;
    let event = changing(|delta| {
        delta.add("n", 1);
        delta.union("user:list", [json!(2)]);
        delta.remove("gone");
        delta.set("plain", json!(null));
    });
    let first = answer(&service, made.key(), named("X", event)).await.unwrap();
    let results = changing(|delta| {
        delta.set("n", json!(6));
        delta.set("user:list", json!([1, 2]));
        delta.remove("gone");
        delta.set("plain", json!(null));
    });
    let again = answer(&service, made.key(), named("X", results)).await.unwrap();
    assert_eq!((again.is_known, again.version, &again.event), (true, 1, &first.event));
    let mixed = changing(|delta| {
        delta.add("n", 1);
        delta.set("user:list", json!([1, 2]));
        delta.remove("gone");
        delta.set("plain", json!(null));
    });
    assert!(is_conflict(answer(&service, made.key(), named("X", mixed)).await), "half of each is neither");
    // A client can send back what it read, without the metadata that only a commit writes.
    let mut wire = serde_json::to_value(&*first.event).unwrap();
    wire.as_object_mut().unwrap().remove("customMetadata");
    wire["actions"]["stateDelta"].as_object_mut().unwrap().remove("gone");
    let mut sent: Event = serde_json::from_value(wire).unwrap();
    sent.actions.state_delta.remove("gone");
    assert_eq!(answer(&service, made.key(), sent).await.unwrap().version, 1);
}

async fn numbers_are_compared_by_value(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let event = |by: &str, item: &str| {
        let by: serde_json::Number = serde_json::from_str(by).unwrap();
        let event = changing(|delta| {
            delta.add("n", by);
            delta.append("list", [value(item)]);
            delta.set("app:plain", value(item));
        });
        named("X", event)
    };
    let big = "123456789012345678901234567890";
    answer(&service, made.key(), event("2", big)).await.unwrap();
    assert_eq!(answer(&service, made.key(), event("2.0", big)).await.unwrap().version, 1);
    assert!(is_conflict(answer(&service, made.key(), event("2", "123456789012345678901234567891")).await));
    assert!(is_conflict(answer(&service, made.key(), event("2.5", big)).await));
}

async fn a_removal_is_not_a_null(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1})).await;
    let removal = || named("X", changing(|delta| delta.remove("a")));
    answer(&service, made.key(), removal()).await.unwrap();
    assert!(is_conflict(answer(&service, made.key(), named("X", setting(json!({"a": null})))).await));
    assert!(answer(&service, made.key(), removal()).await.unwrap().is_known);
}

/// The service fills them in, so a retry gets other ones.
async fn fields_that_were_left_out_are_not_compared(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let event = || named("X", changing(|delta| delta.add("n", 1)));
    let given = event().with_timestamp(77.5).with_invocation("i1");
    let first = answer(&service, made.key(), given.clone()).await.unwrap();
    for again in [event(), event().with_timestamp(77.5), event().with_invocation("i1"), given] {
        let again = answer(&service, made.key(), again).await.unwrap();
        assert_eq!((again.is_known, &again.event), (true, &first.event));
    }
    let second = answer(&service, made.key(), named("Y", Event::new("user"))).await.unwrap();
    let again = answer(&service, made.key(), named("Y", Event::new("user"))).await.unwrap();
    assert_eq!((again.version, &again.event), (2, &second.event));
    assert_eq!(again.event.timestamp, second.event.timestamp);
}

async fn fields_that_were_given_are_compared(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let event = || named("X", changing(|delta| delta.add("n", 1)));
    answer(&service, made.key(), event().with_timestamp(77.5).with_invocation("i1")).await.unwrap();
    for other in [
        event().with_timestamp(78.0),
        event().with_invocation("i2"),
        event().with_timestamp(77.5).with_invocation("i2"),
        Event { branch: Some("b".to_owned()), ..event() },
    ] {
        assert!(is_conflict(answer(&service, made.key(), other.clone()).await), "{other:?}");
    }
}

async fn every_kind_of_change_can_be_sent_again(service: SessionService) {
    let made = session(&service, "s", json!({"gone": 1, "user:gone": 1, "app:map": {"a": 1}})).await;
    let event = || {
        let mut event = changing(|delta| {
            delta.operate("n", Operation::add(0.1).at_least(-1).at_most(2.5));
            delta.add("n", u64::MAX);
            delta.append("user:list", [value("[1.0, 123456789012345678901234567890]"), json!(null).into()]);
            delta.union("app:set", [json!("ü\"\\\n"), json!({"b": 1, "a": [2]})]);
            delta.operate("app:map", Operation::union_fields([("z", json!(1)), ("a", json!({}))]));
            delta.set("plain", value("0.1000000000000000055511151231257827"));
            delta.remove("gone");
            delta.remove("user:gone");
            delta.set("temp:x", json!(1));
            delta.add("temp:y", 1);
        });
        event.custom_metadata = Some([("mine".to_owned(), json!({"sessile": 1}).into())].into());
        event.content = Some(sessile_session::Content::text("model", "hi"));
        named("X", event)
    };
    // The bound holds for its own operation only.
    let first = answer(&service, made.key(), event()).await.unwrap();
    let before = everything(&service, made.key()).await;
    for _ in 0..3 {
        let again = answer(&service, made.key(), event()).await.unwrap();
        assert_eq!((again.is_known, again.version), (true, 1));
        // Not every database keeps the order of an object's fields.
        let (one, other) = (again.event.to_stored_json().unwrap(), first.event.to_stored_json().unwrap());
        assert!(sessile_state::same_json(&one, &other), "{one} and {other}");
    }
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn metadata_of_the_caller_is_compared_and_that_of_the_commit_is_not(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1})).await;
    let event = |mine: Option<Value>| {
        let mut event = changing(|delta| delta.add("n", 1));
        event.custom_metadata = mine.map(|mine| {
            mine.as_object().unwrap().clone().into_iter().map(|(name, value)| (name, value.into())).collect()
        });
        named("X", event)
    };
    let guards = || Guards::new(OnOverwrite::Report).with_read("a", json!(0));
    let send =
        async |event: Event| service.append_answering(made.key(), Append::new(event).guarded(guards())).await;
    let first = send(event(Some(json!({"mine": 1})))).await.unwrap();
    assert!(first.event.overwrote().is_some() && first.event.operations().len() == 1);
    assert_eq!(send(event(Some(json!({"mine": 1})))).await.unwrap().event, first.event);
    for other in [Some(json!({"mine": 2})), Some(json!({})), None, Some(json!({"mine": 1, "more": 1}))] {
        assert!(is_conflict(send(event(other)).await));
    }
    // Empty metadata counts as absent.
    let bare = |metadata: Option<Value>| named("Y", event(metadata));
    let second = send(bare(Some(json!({})))).await.unwrap();
    assert_eq!(send(bare(Some(json!({})))).await.unwrap().event, second.event);
    assert_eq!(send(bare(None)).await.unwrap().event, second.event);
}

async fn sixteen_at_once_are_stored_once(service: SessionService) {
    let made = session(&service, "s", json!({"user:n": 0})).await;
    let answers = at_once(16, |n| {
        // Two services over one store, like two processes.
        let service = if n % 2 == 0 { service.clone() } else { SessionService::over(service.store()) };
        let event = changing(|delta| {
            delta.add("user:n", 1);
            delta.append("list", [json!("once")]);
        });
        let key = made.key().clone();
        async move { answer(&service, &key, named("X", event)).await.unwrap() }
    })
    .await;
    assert_eq!(answers.iter().filter(|answer| !answer.is_known).count(), 1);
    assert!(answers.iter().all(|answer| answer.version == 1 && answer.event == answers[0].event));
    let read = stored(&service, made.key()).await;
    assert_eq!((read.version(), state_of(&read)), (1, json!({"user:n": 1, "list": ["once"]})));
    assert_eq!(read.events()[0].event, answers[0].event);
    let history =
        service.store().scope_changes(&super::user_scope(), ChangeWindow::newest(10)).await.unwrap();
    assert_eq!(history.len(), 2, "the creation and one event");
}

async fn a_known_event_is_answered_before_anything_else_is_looked_at(service: SessionService) {
    let mut made = session(&service, "s", json!({"stock": 1, "user:a": "first"})).await;
    let event = || named("X", changing(|delta| delta.operate("stock", Operation::add(-1).at_least(0))));
    let guards = || Guards::new(OnOverwrite::Refuse).with_read("user:a", json!("first")).with_absent("later");
    let expect =
        Expect { session: Some(0), user: Some(1), app: Some(0), incarnation: Some(made.incarnation()) };
    let append = || Append::new(event()).guarded(guards()).expecting(expect);
    let first = service.append_answering(made.key(), append()).await.unwrap();
    // Now the bound, the guards and all versions would refuse it.
    service.append_to(made.key(), setting(json!({"user:a": "other", "app:a": 1, "later": 1}))).await.unwrap();
    let again = service.append_answering(made.key(), append()).await.unwrap();
    assert_eq!((again.is_known, again.version, &again.event), (true, 1, &first.event));
    let limited = service.clone().with_max_scope_bytes(1);
    assert_eq!(limited.append_answering(made.key(), append()).await.unwrap().version, 1);
    let in_hand = service.append(&mut made, event()).await.unwrap();
    assert_eq!(in_hand, first.event, "a stale session in hand");
    let wrong = Append::new(named("X", Event::new("other"))).guarded(guards()).expecting(expect);
    assert!(
        is_conflict(service.append_answering(made.key(), wrong).await),
        "it is not the same, which is told first"
    );
    let read = stored(&service, made.key()).await;
    assert_eq!((read.version(), read.state().get("stock")), (2, Some(0)));
}

async fn the_answer_tells_of_the_first_commit(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let event = || named("X", changing(|delta| delta.add("user:n", 1)));
    let first = answer(&service, made.key(), event()).await.unwrap();
    for _ in 0..3 {
        service.append_to(made.key(), changing(|delta| delta.add("user:n", 10))).await.unwrap();
    }
    let again = answer(&service, made.key(), event()).await.unwrap();
    let result =
        again.event.actions.state_delta.values().next().map(|(key, value)| (key.to_owned(), value.clone()));
    assert_eq!(result, Some(("user:n".to_owned(), json!(1).into())), "the value that it came to then");
    assert_eq!((again.version, again.event == first.event), (1, true));
}

async fn a_session_in_hand_takes_a_known_event_in_once(service: SessionService) {
    let mut made = session(&service, "s", json!({"n": 0})).await;
    let mut stale = stored(&service, made.key()).await;
    let event = || named("X", changing(|delta| delta.add("n", 1)));
    service.append(&mut made, event()).await.unwrap();
    service.append(&mut made, changing(|delta| delta.add("n", 1))).await.unwrap();
    service.append(&mut made, event()).await.unwrap();
    assert_eq!((made.version(), made.events().len(), state_of(&made)), (2, 2, json!({"n": 2})));
    service.append_with(&mut stale, event(), OnConflict::Merge).await.unwrap();
    assert_eq!((stale.version(), stale.events().len(), state_of(&stale)), (1, 1, json!({"n": 1})));
    service.append_with(&mut stale, changing(|delta| delta.add("n", 1)), OnConflict::Merge).await.unwrap();
    assert_eq!((stale.version(), state_of(&stale)), (3, json!({"n": 3})));
    assert_eq!(stale.events(), stored(&service, made.key()).await.events());
}

async fn metadata_that_only_a_commit_writes_is_refused(service: SessionService) {
    let mut made = session(&service, "s", json!({"a": 1})).await;
    for name in [OPERATIONS, OVERWROTE, REMOVED, "sessile:", "sessile:later"] {
        let mut event = setting(json!({"a": 2}));
        event.custom_metadata = Some([(name.to_owned(), json!({}).into())].into());
        let text = service.append(&mut made, event.clone()).await.unwrap_err().to_string();
        assert!(text.contains(name) && text.contains("leave it out"), "{text}");
        let refused = service.append_to(made.key(), event.clone()).await;
        assert!(matches!(refused, Err(SessionError::InvalidEvent { .. })));
        let new = sessile_session::CreateSession::new("shop", "ada").with_id("new").with_events([event]);
        assert!(matches!(service.create(new).await, Err(SessionError::InvalidEvent { .. })));
    }
    assert_eq!(stored(&service, made.key()).await.version(), 0);
    assert!(service.get(&key("new"), EventWindow::NONE).await.unwrap().is_none());
    let mut event = setting(json!({"a": 2}));
    event.custom_metadata =
        Some([("sessile".to_owned(), json!(1).into()), ("my:sessile:x".to_owned(), json!(1).into())].into());
    service.append(&mut made, event).await.unwrap();
}

async fn metadata_that_only_a_commit_writes_is_restored(service: SessionService) {
    let mut made = session(&service, "old", json!({"n": 1, "gone": 1, "user:a": 1})).await;
    service.write_user_state("shop", "ada", json!({"a": 2})).await.unwrap();
    let event = changing(|delta| {
        delta.add("n", 1);
        delta.remove("gone");
        delta.set("user:a", json!(3));
    });
    let committed = service.append(&mut made, event).await.unwrap();
    assert!(committed.overwrote().is_some());
    // Through JSON, as an export and an import do it.
    let event: Event = serde_json::from_str(&committed.to_stored_json().unwrap()).unwrap();
    assert_eq!(Arc::new(event.clone()), committed);
    let mut later = event.clone();
    later.id = "later".to_owned();
    later.custom_metadata.as_mut().unwrap().insert("sessile:later".to_owned(), json!([1]).into());
    let old = RestoreSession {
        key: key("new"),
        time: 1000.0,
        initial: [("n".to_owned(), json!(1).into()), ("gone".to_owned(), json!(1).into())].into(),
        events: vec![event, later.clone()],
    };
    service.restore(old).await.unwrap();
    let read = stored(&service, &key("new")).await;
    assert_eq!((&read.events()[0].event, &*read.events()[1].event), (&committed, &later));
    assert_eq!(state_of(&read), json!({"n": 2, "user:a": 3}));
}
