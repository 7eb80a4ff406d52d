//! A refused commit stores nothing: not the event, not its other keys, not the other scopes, not a
//! line of history.

use serde_json::{Value, json};
use sessile_session::{
    Append, CreateSession, EventWindow, Expect, Guards, Incarnation, OnOverwrite, SessionError,
    SessionService, StateWrite,
};
use sessile_state::{Delta, Operation, OperationError, Scope, State};

use super::{
    app_scope, cases, changing, create, delta, empty, everything, key, session, setting, state_of, stored,
    user_scope,
};

cases!(
    of_a_wrong_type_names_key_owner_and_what_to_do,
    of_a_bound_names_the_sum_and_the_bound,
    of_an_overflow_stores_nothing,
    of_a_guard_stores_nothing,
    of_an_expectation_stores_nothing,
    in_any_scope_stores_nothing_in_the_others,
    of_one_operation_among_several_stores_none,
    leave_the_session_in_hand,
    of_a_transaction_store_nothing,
    of_a_creation_store_nothing,
    of_a_write_of_shared_state_store_nothing,
    by_size_store_nothing,
    by_size_count_bytes_of_compact_json,
    by_size_are_made_at_creation_too,
    by_size_spare_commits_that_do_not_grow_an_oversized_scope,
    of_values_that_are_nested_too_deep_name_the_key,
);

/// A session that has events already, and shared state with a history.
async fn prepared(service: &SessionService) -> sessile_session::Session {
    let state = json!({"n": 1, "text": "t", "list": [1], "map": {"a": 1}, "user:n": 1, "user:text": "t",
        "user:list": [1], "user:map": {"a": 1}, "app:n": 1, "app:text": "t", "app:list": [1], "app:map": {"a": 1}});
    let mut made = session(service, "s", state).await;
    service.append(&mut made, setting(json!({"step": 1, "user:step": 1, "app:step": 1}))).await.unwrap();
    made
}

/// Changes of every scope that could be committed, beside one that cannot.
fn with_others(build: impl FnOnce(&mut Delta)) -> sessile_session::Event {
    changing(|delta| {
        for prefix in ["", "user:", "app:"] {
            delta.set(format!("{prefix}fresh"), json!(1));
            delta.add(format!("{prefix}n"), 1);
            delta.remove(format!("{prefix}step"));
        }
        build(delta);
    })
}

async fn of_a_wrong_type_names_key_owner_and_what_to_do(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    for (prefix, owner) in
        [("", "shop/ada/s"), ("user:", "user ada of application shop"), ("app:", "application shop")]
    {
        for (name, operation, needed, found) in [
            ("text", Operation::add(1), "a number", "a string"),
            ("list", Operation::add(1), "a number", "an array"),
            ("n", Operation::append([json!(1)]), "a list", "a number"),
            ("map", Operation::append([json!(1)]), "a list", "an object"),
            ("text", Operation::union([json!(1)]), "a list", "a string"),
            ("map", Operation::union([json!(1)]), "a list", "an object"),
            ("list", Operation::union_fields([("a", json!(1))]), "an object", "an array"),
        ] {
            let name = format!("{prefix}{name}");
            let expected = before["session"]["state"][&name].clone();
            let mut event = with_others(|_| {});
            event.actions.state_delta.retain(|key| key != name);
            event.actions.state_delta.operate(&name, operation);
            let refused = service.append_to(made.key(), event).await.unwrap_err();
            let text = refused.to_string();
            for part in [&format!("{name:?}"), owner, needed, found, "set"] {
                assert!(text.contains(part), "{part:?} is not in {text:?}");
            }
            let SessionError::Operation { key, owner: of, found, source } = refused else { panic!("{text}") };
            assert_eq!((key, of.as_str()), (name, owner));
            assert_eq!(
                found.map(|found| Value::from(*found)),
                Some(expected),
                "the refusal tells what is stored"
            );
            assert!(matches!(source, OperationError::WrongType { .. }));
        }
    }
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn of_a_bound_names_the_sum_and_the_bound(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    for key in ["stock", "user:stock", "app:stock"] {
        let event = with_others(|delta| delta.operate(key, Operation::add(-3).at_least(-2)));
        let refused = service.append_to(made.key(), event).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("-3") && text.contains("below the minimum -2"), "{text}");
        assert!(matches!(refused, SessionError::Operation { key: named, found: None, .. } if named == key));
    }
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn of_an_overflow_stores_nothing(service: SessionService) {
    let made = prepared(&service).await;
    service
        .append_to(made.key(), setting(json!({"max": u64::MAX, "user:max": u64::MAX, "app:max": u64::MAX})))
        .await
        .unwrap();
    let before = everything(&service, made.key()).await;
    for key in ["max", "user:max", "app:max"] {
        let refused = service.append_to(made.key(), with_others(|delta| delta.add(key, 1))).await;
        assert!(matches!(
            refused,
            Err(SessionError::Operation { source: OperationError::OutOfRange { .. }, .. })
        ));
    }
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn of_a_guard_stores_nothing(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    for key in ["text", "user:text", "app:text"] {
        let guards = Guards::new(OnOverwrite::Refuse).with_read(key, json!("other"));
        let append = Append::new(with_others(|_| {})).guarded(guards);
        let refused = service.append_to(made.key(), append).await;
        assert!(matches!(refused, Err(SessionError::Overwritten { .. })), "{key}");
    }
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn of_an_expectation_stores_nothing(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    let now = stored(&service, made.key()).await.versions();
    let wrong = |version: Option<u64>| version.map(|version| version + 1);
    for (expect, scope) in [
        (Expect { session: wrong(now.session), ..now }, Scope::Session),
        (Expect { user: wrong(now.user), ..now }, Scope::User),
        (Expect { app: wrong(now.app), ..now }, Scope::App),
        (Expect { session: Some(0), ..Expect::default() }, Scope::Session),
        (Expect { user: Some(1), ..Expect::default() }, Scope::User),
        (Expect { app: Some(0), ..Expect::default() }, Scope::App),
    ] {
        let refused = service.append_to(made.key(), Append::new(with_others(|_| {})).expecting(expect)).await;
        assert!(
            matches!(refused, Err(SessionError::Conflict { scope: differs, .. }) if differs == scope),
            "{expect:?}: {refused:?}"
        );
    }
    let expect =
        Expect { incarnation: Some(Incarnation(now.incarnation.unwrap().0 ^ 2)), ..Expect::default() };
    let refused = service.append_to(made.key(), Append::new(with_others(|_| {})).expecting(expect)).await;
    assert!(matches!(refused, Err(SessionError::Replaced { .. })), "{refused:?}");
    assert_eq!(everything(&service, made.key()).await, before);
    service.append_to(made.key(), Append::new(with_others(|_| {})).expecting(now)).await.unwrap();
}

async fn in_any_scope_stores_nothing_in_the_others(service: SessionService) {
    let made = prepared(&service).await;
    let sibling = create(&service, "shop", "bob", "s", empty()).await;
    let before = everything(&service, made.key()).await;
    for bad in ["text", "user:text", "app:text"] {
        let refused = service.append_to(made.key(), with_others(|delta| delta.add(bad, 1))).await;
        assert!(matches!(refused, Err(SessionError::Operation { key, .. }) if key == bad));
        assert_eq!(everything(&service, made.key()).await, before, "{bad}");
    }
    let seen = state_of(&stored(&service, sibling.key()).await);
    assert_eq!(seen.get("app:fresh"), None, "no other session sees a part of it");
    service.append_to(made.key(), with_others(|_| {})).await.unwrap();
    let after = state_of(&stored(&service, made.key()).await);
    assert_eq!((&after["n"], &after["user:n"], &after["app:n"]), (&json!(2), &json!(2), &json!(2)));
}

async fn of_one_operation_among_several_stores_none(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    let event = with_others(|delta| {
        delta.append("user:list", [json!(2)]);
        delta.add("user:list", 1); // after the append it is still a list, not a number
    });
    let refused = service.append_to(made.key(), event).await;
    assert!(matches!(refused, Err(SessionError::Operation { key, .. }) if key == "user:list"));
    let event = with_others(|delta| {
        delta.operate("n", Operation::add(10).at_most(5));
        delta.add("n", -10);
    });
    let refused = service.append_to(made.key(), event).await;
    assert!(matches!(refused, Err(SessionError::Operation { source: OperationError::Bound { .. }, .. })));
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn leave_the_session_in_hand(service: SessionService) {
    let mut made = prepared(&service).await;
    let before = serde_json::to_value(&made).unwrap();
    service.append(&mut made, with_others(|delta| delta.add("user:text", 1))).await.unwrap_err();
    assert_eq!((serde_json::to_value(&made).unwrap(), made.version()), (before, 1));
    service.append(&mut made, with_others(|_| {})).await.unwrap();
    assert_eq!(state_of(&made), state_of(&stored(&service, made.key()).await));
}

async fn of_a_transaction_store_nothing(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    // What the transaction reads refuses the operation at once; it is the closure's error then.
    let given_up = service.transact(made.key(), |state| {
        state.set("fresh", 1);
        state.try_operate("user:n", Operation::add(-2).at_least(0))?;
        Ok(())
    });
    assert!(matches!(given_up.await, Err(SessionError::GivenUp { .. })));
    let refused = service.transact(made.key(), |state| {
        state.set("fresh", 1);
        state.set("user:user:x", 1);
        Ok(())
    });
    assert!(matches!(refused.await, Err(SessionError::InvalidState { .. })));
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn of_a_creation_store_nothing(service: SessionService) {
    prepared(&service).await;
    let fresh = key("fresh");
    let before = everything(&service, &fresh).await;
    for bad in ["user:text", "app:text", "app:list"] {
        let state = delta(|delta| {
            delta.set("own", json!(1));
            delta.add("user:n", 1);
            delta.add("app:n", 1);
            delta.set("app:fresh", json!(1));
            delta.add(bad, 1);
        });
        let new = CreateSession::new("shop", "ada").with_id("fresh").with_state(state);
        let refused = service.create(new.clone()).await.unwrap_err();
        assert!(matches!(&refused, SessionError::Operation { key, .. } if key == bad), "{bad}: {refused}");
        let refused = service.get_or_create(new, EventWindow::ALL).await;
        assert!(matches!(refused, Err(SessionError::Operation { .. })), "{bad}");
        assert_eq!(everything(&service, &fresh).await, before, "{bad}");
    }
    let state = delta(|delta| {
        delta.set("own", json!("text"));
        delta.add("app:n", 1);
    });
    let events = [changing(|delta| delta.add("own", 1))];
    let refused = service
        .create(CreateSession::new("shop", "ada").with_id("fresh").with_state(state).with_events(events));
    let refused = refused.await.unwrap_err();
    assert!(matches!(refused, SessionError::InvalidEvent { .. }), "{refused}");
    let taken = delta(|delta| delta.add("app:n", 1));
    let refused = service.create(CreateSession::new("shop", "ada").with_id("s").with_state(taken)).await;
    assert!(matches!(refused, Err(SessionError::AlreadyExists { .. })));
    assert_eq!(everything(&service, &fresh).await, before);
}

async fn of_a_write_of_shared_state_store_nothing(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    for scope in [user_scope(), app_scope()] {
        let write = |build: fn(&mut Delta)| {
            let others = delta(|delta| {
                delta.set("fresh", json!(1));
                delta.add("n", 1);
                build(delta);
            });
            StateWrite::new(scope.clone(), others)
        };
        let refused = service.write_state(write(|delta| delta.add("text", 1))).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(&scope.to_string()) && text.contains(&scope.scope().key("text")), "{text}");
        let bound =
            service.write_state(write(|delta| delta.operate("n", Operation::add(1).at_most(2)))).await;
        assert!(matches!(bound, Err(SessionError::Operation { .. })));
        let mut guarded = write(|_| {});
        guarded.guards = Guards::new(OnOverwrite::Refuse).with_read("n", json!(7));
        assert!(matches!(service.write_state(guarded).await, Err(SessionError::Overwritten { .. })));
        let mut expecting = write(|_| {});
        expecting.expect = Some(77);
        let refused = service.write_state(expecting).await;
        assert!(matches!(refused, Err(SessionError::ScopeConflict { expected: 77, .. })));
        let doubled = write(|delta| delta.set("app:x", json!(1)));
        match service.write_state(doubled).await {
            Err(SessionError::InvalidState { .. }) => assert_eq!(scope, app_scope()),
            other => assert!(other.is_ok() && scope == user_scope(), "`user:app:x` is a key: {other:?}"),
        }
    }
    let mut after = everything(&service, made.key()).await;
    let written = after["user ada of application shop"].take();
    assert_eq!(written["version"], json!(3), "only the write of `user:app:x` was made");
    let mut before = before;
    before["user ada of application shop"].take();
    before["session"]["state"]["user:app:x"] = json!(1);
    before["session"]["state"]["user:fresh"] = json!(1);
    before["session"]["state"]["user:n"] = json!(2);
    assert_eq!(after, before);
}

async fn by_size_store_nothing(service: SessionService) {
    let limited = service.clone().with_max_scope_bytes(1000);
    let made = session(
        &limited,
        "s",
        json!({"a": "x".repeat(500), "user:a": "x".repeat(500), "app:a": "x".repeat(500)}),
    )
    .await;
    let before = everything(&service, made.key()).await;
    let more = "y".repeat(700);
    for (prefix, scope) in [("", Scope::Session), ("user:", Scope::User), ("app:", Scope::App)] {
        let events = [
            changing(|delta| {
                ["", "user:", "app:"].iter().for_each(|prefix| delta.set(format!("{prefix}small"), json!(1)));
                delta.set(format!("{prefix}b"), json!(more));
            }),
            changing(|delta| delta.append(format!("{prefix}list"), [json!(more)])),
            changing(|delta| {
                delta.operate(format!("{prefix}map"), Operation::union_fields([("f", json!(more))]));
            }),
        ];
        for event in events {
            let refused = limited.append_to(made.key(), event).await.unwrap_err();
            let text = refused.to_string();
            let SessionError::TooLarge { scope: named, size, limit } = refused else { panic!("{text}") };
            assert_eq!((named, limit), (scope, 1000));
            assert!((1200..1400).contains(&size), "{size}");
            assert!(text.contains("1000") && text.contains("artifacts"), "{text}");
        }
    }
    for scope in [user_scope(), app_scope()] {
        let write = StateWrite::new(scope, json!({"b": more, "c": 1}));
        assert!(matches!(limited.write_state(write).await, Err(SessionError::TooLarge { .. })));
    }
    let append = |state: &State| state.try_append("list", [&more]).map_err(Into::into);
    let refused = limited.transact(made.key(), append).await;
    assert!(matches!(refused, Err(SessionError::TooLarge { .. })));
    assert_eq!(everything(&service, made.key()).await, before);
    limited
        .append_to(made.key(), setting(json!({"b": "y".repeat(300), "app:b": "y".repeat(300)})))
        .await
        .unwrap();
    service.append_to(made.key(), setting(json!({"c": more}))).await.unwrap();
}

async fn by_size_count_bytes_of_compact_json(service: SessionService) {
    let made = session(&service, "s", json!({})).await;
    let nested =
        json!({"list": [1, 2, {"a, b": "c: \"d\", e", "f": [[], {}, null]}], "text": "é, \n\\\\\"x: y"});
    let size = "key".len() + nested.to_string().len();
    let exactly = service.clone().with_max_scope_bytes(size);
    let less = service.clone().with_max_scope_bytes(size - 1);
    for prefix in ["", "user:", "app:"] {
        let event = || setting(json!({format!("{prefix}key"): nested}));
        let refused = less.append_to(made.key(), event()).await.unwrap_err();
        assert!(matches!(refused, SessionError::TooLarge { size: found, .. } if found == size), "{refused}");
        exactly.append_to(made.key(), event()).await.unwrap();
    }
    for scope in [user_scope(), app_scope()] {
        // It does not grow by being written again, and by one more byte it does.
        less.write_state(StateWrite::new(scope.clone(), json!({"key": nested}))).await.unwrap();
        let refused = exactly.write_state(StateWrite::new(scope, json!({"b": 1}))).await.unwrap_err();
        assert!(
            matches!(refused, SessionError::TooLarge { size: found, .. } if found == size + 2),
            "{refused}"
        );
    }
}

async fn by_size_are_made_at_creation_too(service: SessionService) {
    let limited = service.clone().with_max_scope_bytes(1000);
    let before = everything(&service, &key("s")).await;
    for prefix in ["", "user:", "app:"] {
        let state =
            json!({"small": 1, "user:small": 1, "app:small": 1, format!("{prefix}big"): "x".repeat(1200)});
        let new = CreateSession::new("shop", "ada").with_id("s").with_state(state);
        assert!(matches!(limited.create(new).await, Err(SessionError::TooLarge { .. })), "{prefix}");
    }
    let events = ["a", "b"].map(|name| setting(json!({name: "x".repeat(600), "user:n": 1})));
    let new = CreateSession::new("shop", "ada").with_id("s").with_events(events);
    assert!(matches!(limited.create(new).await, Err(SessionError::TooLarge { .. })));
    assert_eq!(everything(&service, &key("s")).await, before);
}

/// The limit was lowered, or the state was written without one.
async fn by_size_spare_commits_that_do_not_grow_an_oversized_scope(service: SessionService) {
    let big = |filler: &str| json!(filler.repeat(2000));
    let state = json!({"a": big("x"), "b": big("x"), "user:a": big("x"), "app:a": big("x"), "app:n": 10});
    let made = session(&service, "s", state).await;
    let limited = service.clone().with_max_scope_bytes(1000);
    for event in [
        sessile_session::Event::new("user"),
        setting(json!({"a": big("y")})),
        changing(|delta| delta.remove("a")),
        changing(|delta| delta.remove("absent")),
        setting(json!({"user:a": "small again", "app:n": 11})),
        changing(|delta| delta.add("app:n", 1)),
        changing(|delta| delta.append("user:list", [json!("room again")])),
    ] {
        limited.append_to(made.key(), event).await.unwrap();
    }
    for event in
        [setting(json!({"c": 1})), setting(json!({"b": "x".repeat(2001)})), setting(json!({"app:c": 1}))]
    {
        let refused = limited.append_to(made.key(), event).await;
        assert!(matches!(refused, Err(SessionError::TooLarge { .. })), "{refused:?}");
    }
    let write = StateWrite::new(app_scope(), delta(|delta| delta.remove("n")));
    limited.write_state(write).await.unwrap();
    let write = StateWrite::new(app_scope(), json!({"more": 1}));
    assert!(matches!(
        limited.write_state(write).await,
        Err(SessionError::TooLarge { scope: Scope::App, .. })
    ));
    let fresh = CreateSession::new("shop", "ada").with_id("fresh").with_state(json!({"user:b": 1}));
    limited.create(fresh).await.expect("the state of the application is oversized and does not grow");
    let fresh = CreateSession::new("shop", "ada").with_id("third").with_state(json!({"app:more": 1}));
    assert!(matches!(limited.create(fresh).await, Err(SessionError::TooLarge { scope: Scope::App, .. })));
}

/// A value may be nested 200 levels deep; so may the result of an operation, and its record in the
/// event.
async fn of_values_that_are_nested_too_deep_name_the_key(service: SessionService) {
    let nested = |levels: usize| super::value(&("[".repeat(levels) + &"]".repeat(levels)));
    let mut made = session(&service, "s", empty()).await;
    let deep = |levels: usize| {
        changing(|delta| {
            delta.append("list", [nested(levels)]);
            delta.union("user:list", [nested(levels)]);
        })
    };
    service.append(&mut made, deep(190)).await.unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!(read.events()[0].event, made.events()[0].event);
    let before = everything(&service, made.key()).await;
    for levels in [197, 198, 199, 200] {
        let refused = service.append(&mut made, deep(levels)).await.unwrap_err();
        assert!(
            matches!(&refused, SessionError::InvalidState { key, .. } if key == "list"),
            "{levels}: {refused}"
        );
        let write = StateWrite::new(app_scope(), delta(|delta| delta.append("list", [nested(levels)])));
        let refused = service.write_state(write).await.unwrap_err();
        assert!(matches!(&refused, SessionError::InvalidState { key, .. } if key == "app:list"), "{refused}");
    }
    assert_eq!(everything(&service, made.key()).await, before);
}
