//! A schema is obeyed by every way into the store, and its bounds hold for what operations come to.

use serde_json::json;
use sessile_session::{
    Append, CreateSession, Event, EventWindow, RestoreSession, SessionError, SessionService, StateWrite,
};
use sessile_state::{Delta, Operation, OperationError, StateSchema, ValueType};

use super::{
    app_scope, cases, changing, create, delta, empty, everything, key, named, session, setting, state_of,
    stored, user_scope,
};

cases!(
    is_obeyed_by_every_write,
    is_obeyed_at_creation,
    is_obeyed_by_operands,
    bounds_what_additions_come_to,
    bounds_are_not_part_of_what_the_event_tells,
    leaves_removals_and_other_applications_alone,
    does_not_check_what_is_brought_back,
);

fn schema() -> StateSchema {
    StateSchema::new()
        .declare("user:points", ValueType::integer().at_least(0).at_most(10))
        .declare("app:rates", ValueType::list(ValueType::number()))
        .key::<u32>("count")
        .key::<Option<String>>("name")
}

/// Refused, naming the key, the declared type and what was given.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, SessionError>, key: &str, told: &str) {
    match result {
        Err(SessionError::InvalidState { key: refused, reason }) => {
            assert_eq!(refused, key, "{reason}");
            assert!(reason.contains(told), "{reason}");
        }
        other => panic!("{key} is let in: {other:?}"),
    }
}

/// Changes that the schema refuses, with the key and a part of the message.
fn misfits() -> [(Delta, &'static str, &'static str); 6] {
    let set = |key: &str, value| Delta::from([(key, value)]);
    [
        (set("count", json!("one")), "count", "it is declared as `u32` and cannot hold a string"),
        (
            set("user:points", json!(11)),
            "user:points",
            "`integer` and cannot hold 11, which is above the maximum 10",
        ),
        (set("user:point", json!(1)), "user:point", "did you mean `user:points`?"),
        (
            set("app:rates", json!([0.5, "high"])),
            "app:rates",
            "`list of number` and cannot hold an array: item 1",
        ),
        (delta(|delta| delta.append("app:rates", [json!("high")])), "app:rates", "item 0 is a string"),
        (delta(|delta| delta.add("user:points", 0.5)), "user:points", "0.5 has a fraction"),
    ]
}

async fn is_obeyed_by_every_write(service: SessionService) {
    let service = service.with_schema("shop", schema());
    let mut made = session(&service, "s", json!({"count": 1, "user:points": 5})).await;
    let before = everything(&service, made.key()).await;
    for (delta, refused, told) in misfits() {
        let event = || changing(|all| all.merge(&delta).expect("it is empty"));
        assert_refused(service.append(&mut made, event()).await, refused, told);
        assert_refused(service.append_to(&key("s"), event()).await, refused, told);
        let changed = service.change(&key("s"), Append::new(event()), EventWindow::NONE).await;
        assert_refused(changed, refused, told);
        let transacted = service.transact(&key("s"), |state| Ok(state.try_apply(&delta)?)).await;
        assert_refused(transacted, refused, told);
        let scoped = delta.split();
        for (scope, delta) in [(user_scope(), scoped.user), (app_scope(), scoped.app)] {
            if !delta.is_empty() {
                assert_refused(service.write_state(StateWrite::new(scope, delta)).await, refused, told);
            }
        }
    }
    assert_eq!(everything(&service, made.key()).await, before);
    let good = changing(|delta| {
        delta.set("count", json!(2));
        delta.set("name", json!(null));
        delta.add("user:points", 5);
        delta.append("app:rates", [json!(0.5)]);
    });
    service.append(&mut made, good).await.unwrap();
    assert_eq!(state_of(&made), json!({"app:rates": [0.5], "count": 2, "name": null, "user:points": 10}));
}

async fn is_obeyed_at_creation(service: SessionService) {
    let service = service.with_schema("shop", schema());
    let new = || CreateSession::new("shop", "ada").with_id("s");
    for (delta, refused, told) in misfits() {
        assert_refused(service.create(new().with_state(&delta)).await, refused, told);
        let made = service.get_or_create(new().with_state(&delta), EventWindow::NONE).await;
        assert_refused(made, refused, told);
        if !delta.has_operations() {
            let event = changing(|all| all.merge(&delta).expect("it is empty"));
            assert_refused(service.create(new().with_events([event])).await, refused, told);
        }
    }
    assert!(service.get(&key("s"), EventWindow::NONE).await.unwrap().is_none());
    assert!(service.user_state("shop", "ada").await.unwrap().is_empty());
    // `temp:` keys are not stored, so they are not checked.
    let state = json!({"temp:anything": 1, "count": 1});
    assert_eq!(state_of(&service.create(new().with_state(state)).await.unwrap()), json!({"count": 1}));
}

async fn is_obeyed_by_operands(service: SessionService) {
    let service = service.with_schema("shop", schema());
    session(&service, "s", json!({"app:rates": [1]})).await;
    for (operation, told) in [
        (Operation::append([json!({})]), "cannot take this `append`: item 0 is an object"),
        (Operation::union([json!(true)]), "cannot take this `union`: item 0 is a boolean"),
        (Operation::union_fields([("a", json!(1))]), "it sets fields, and only objects have them"),
        (Operation::add(1), "1 is a number, and this type does not accept numbers"),
    ] {
        let event = changing(|delta| delta.operate("app:rates", operation));
        assert_refused(service.append_to(&key("s"), event).await, "app:rates", told);
    }
    assert_eq!(state_of(&stored(&service, &key("s")).await), json!({"app:rates": [1]}));
}

async fn bounds_what_additions_come_to(service: SessionService) {
    let service = service.with_schema("shop", schema());
    session(&service, "s", json!({"user:points": 5, "count": 2})).await;
    let mut spending = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let service = service.clone();
        spending.spawn(async move {
            service.append_to(&key("s"), changing(|delta| delta.add("user:points", -1))).await
        });
    }
    let results = spending.join_all().await;
    let is_bound = |source: &OperationError| matches!(source, OperationError::Bound { below: true, .. });
    let refused = results.iter().filter(|result| match result {
        Err(SessionError::Operation { key, source, .. }) => key == "user:points" && is_bound(source),
        _ => false,
    });
    assert_eq!((results.iter().filter(|result| result.is_ok()).count(), refused.count()), (5, 3));
    assert_eq!(service.user_state("shop", "ada").await.unwrap()["points"], json!(0));
    // The tighter bound holds, from the schema or from the operation; a direct write is bounded
    // too.
    let three = changing(|delta| delta.operate("user:points", Operation::add(4).at_most(3)));
    assert!(matches!(service.append_to(&key("s"), three).await, Err(SessionError::Operation { .. })));
    let eleven = delta(|delta| delta.operate("points", Operation::add(11).at_most(20)));
    let written = service.write_user_state("shop", "ada", eleven).await;
    assert!(matches!(written, Err(SessionError::Operation { .. })), "{written:?}");
    // The range of a Rust type is its bounds.
    let below = service.append_to(&key("s"), changing(|delta| delta.add("count", -3))).await;
    assert!(matches!(below, Err(SessionError::Operation { .. })), "{below:?}");
    // Only what several additions come to is bounded.
    let through = changing(|delta| {
        delta.add("count", -3);
        delta.add("count", 3);
    });
    service.append_to(&key("s"), through).await.unwrap();
    assert_eq!(stored(&service, &key("s")).await.state().get::<u32>("count"), Some(2));
}

async fn bounds_are_not_part_of_what_the_event_tells(service: SessionService) {
    let bounded = service.clone().with_schema("shop", schema());
    session(&bounded, "s", json!({"user:points": 5})).await;
    let event = || named("e1", changing(|delta| delta.add("user:points", 1)));
    assert_eq!(bounded.append_to(&key("s"), event()).await.unwrap(), Some(1));
    let session = stored(&bounded, &key("s")).await;
    let told: Vec<String> = session.events()[0]
        .operations()
        .values()
        .map(|operations| serde_json::to_string(operations).expect("it is JSON"))
        .collect();
    assert_eq!(told, [r#"{"add":1}"#], "the event tells what was asked for");
    // A retry is the same event, also if the schema has other bounds by then.
    let wider = StateSchema::new().declare("user:points", ValueType::integer().at_most(100));
    let again = service.with_schema("shop", wider).append_to(&key("s"), event()).await;
    assert_eq!(again.unwrap(), Some(1));
    assert_eq!(bounded.user_state("shop", "ada").await.unwrap()["points"], json!(6));
}

async fn leaves_removals_and_other_applications_alone(service: SessionService) {
    session(&service, "s", json!({"count": 1, "old": "undeclared", "user:points": 5})).await;
    let service = service.with_schema("shop", schema());
    let removing = changing(|delta| ["count", "old", "user:points"].iter().for_each(|key| delta.remove(key)));
    service.append_to(&key("s"), removing).await.unwrap();
    assert_eq!(state_of(&stored(&service, &key("s")).await), empty());
    let other = create(&service, "bank", "ada", "s", json!({"count": "one", "anything": 1})).await;
    assert_eq!(state_of(&other), json!({"anything": 1, "count": "one"}));
}

async fn does_not_check_what_is_brought_back(service: SessionService) {
    let mut made = session(&service, "s", json!({"count": "one"})).await;
    let old = setting(json!({"count": "two"})).with_invocation("i1");
    service.append(&mut made, old).await.unwrap();
    let service = service.with_schema("shop", schema());
    service.append(&mut made, setting(json!({"count": 3})).with_invocation("i2")).await.unwrap();
    assert_eq!(state_of(&service.fork(&key("s"), 1, Some("forked")).await.unwrap()), json!({"count": "two"}));
    let events: Vec<Event> = made.events().iter().map(|event| (*event.event).clone()).collect();
    let initial = service.state_at(&key("s"), 0).await.unwrap();
    let old = RestoreSession { key: key("restored"), time: 1000.0, initial, events };
    assert_eq!(state_of(&service.restore(old).await.unwrap()), json!({"count": 3}));
    let back = service.rewind(&key("s"), "i2").await.unwrap();
    assert_eq!(state_of(&back), json!({"count": "two"}), "a session may have again what it had");
}
