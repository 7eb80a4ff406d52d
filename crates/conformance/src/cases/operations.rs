use serde_json::{Value, json};
use sessile_session::{
    Append, CreateSession, Event, EventWindow, OPERATIONS, OnConflict, RestoreSession, SessionService,
    StateWrite,
};
use sessile_state::{Change, Delta, Operation};

use super::{
    app_scope, cases, changing, delta, empty, json_of, key, named, session, setting, state_of, stored,
    user_scope, value,
};

cases!(
    an_appended_event_operates_on_every_scope,
    an_event_appended_by_key_operates_on_every_scope,
    a_transaction_operates_on_every_scope,
    a_new_session_operates_on_every_scope,
    a_write_of_shared_state_operates_on_it,
    an_absent_key_counts_as_nothing,
    null_is_not_absent,
    several_operations_on_one_key_are_applied_in_their_order,
    an_operation_after_a_set_is_a_set,
    operations_stand_beside_sets_and_removals,
    a_committed_event_holds_results_and_tells_the_operations,
    an_append_returns_the_event_that_is_stored,
    an_event_with_operations_brings_the_session_in_hand_up_to_date,
    the_state_is_the_fold_of_the_results,
    operations_are_never_executed_again,
    rewind_takes_operations_back,
    operations_on_temp_keys_are_not_stored,
    keys_of_every_spelling,
    a_long_list_grows_at_its_end,
);

/// What each scope holds before [`change`].
fn before() -> Value {
    let held = |prefix: &str| {
        json!({
            format!("{prefix}n"): 5, format!("{prefix}list"): ["a"], format!("{prefix}set"): ["a", "b"],
            format!("{prefix}map"): {"a": 1, "b": 1}, format!("{prefix}other"): "stays",
        })
    };
    joined([held(""), held("user:"), held("app:")])
}

/// What each scope holds after [`change`].
fn after() -> Value {
    let held = |prefix: &str| {
        json!({
            format!("{prefix}n"): 3, format!("{prefix}list"): ["a", "b", "a"], format!("{prefix}set"): ["a", "b", "c"],
            format!("{prefix}map"): {"a": 1, "b": 2, "c": null}, format!("{prefix}other"): "stays",
        })
    };
    joined([held(""), held("user:"), held("app:")])
}

fn joined(parts: [Value; 3]) -> Value {
    parts
        .into_iter()
        .flat_map(|part| part.as_object().cloned().unwrap())
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Every operation on the keys with this prefix.
fn change(delta: &mut Delta, prefix: &str) {
    delta.operate(format!("{prefix}n"), Operation::add(-2).at_least(0).at_most(5));
    delta.append(format!("{prefix}list"), [json!("b"), json!("a")]);
    delta.union(format!("{prefix}set"), [json!("b"), json!("c")]);
    delta.operate(format!("{prefix}map"), Operation::union_fields([("b", json!(2)), ("c", json!(null))]));
}

fn change_everywhere(delta: &mut Delta) {
    ["", "user:", "app:"].iter().for_each(|prefix| change(delta, prefix));
}

async fn an_appended_event_operates_on_every_scope(service: SessionService) {
    let mut made = session(&service, "s", before()).await;
    service.append(&mut made, changing(change_everywhere)).await.unwrap();
    assert_eq!(state_of(&made), after());
    assert_eq!(state_of(&stored(&service, made.key()).await), after());
}

async fn an_event_appended_by_key_operates_on_every_scope(service: SessionService) {
    let made = session(&service, "s", before()).await;
    assert_eq!(service.append_to(made.key(), changing(change_everywhere)).await.unwrap(), Some(1));
    assert_eq!(state_of(&stored(&service, made.key()).await), after());
}

async fn a_transaction_operates_on_every_scope(service: SessionService) {
    let made = session(&service, "s", before()).await;
    let transaction = service.transact(made.key(), |state| {
        for prefix in ["", "user:", "app:"] {
            state.operate(format!("{prefix}n"), Operation::add(-2).at_least(0).at_most(5));
            state.append(format!("{prefix}list"), ["b", "a"]);
            state.union(format!("{prefix}set"), ["b", "c"]);
            state.union(format!("{prefix}map"), json!({"b": 2, "c": null}));
        }
        Ok(state.get::<i64>("user:n"))
    });
    assert_eq!(transaction.await.unwrap(), (Some(3), 1), "a transaction reads its own operations");
    let read = stored(&service, made.key()).await;
    assert_eq!(state_of(&read), after());
    assert_eq!(read.events()[0].operations().len(), 12);
}

/// The session's own keys are absent, those of shared state are not.
async fn a_new_session_operates_on_every_scope(service: SessionService) {
    session(&service, "first", before()).await;
    let new = CreateSession::new("shop", "ada").with_id("second").with_state(delta(|delta| {
        ["user:", "app:"].iter().for_each(|prefix| change(delta, prefix));
        delta.add("n", 3);
        delta.append("list", [json!("a"), json!("b"), json!("a")]);
        delta.union("set", [json!("a"), json!("b"), json!("c"), json!("a")]);
        delta.operate("map", Operation::union_fields([("a", json!(1)), ("b", json!(2)), ("c", json!(null))]));
        delta.set("other", json!("stays"));
    }));
    let made = service.create(new).await.unwrap();
    assert_eq!((made.version(), state_of(&made)), (0, after()));
    assert_eq!(state_of(&stored(&service, made.key()).await), after());
    let initial = service.state_at(made.key(), 0).await.unwrap();
    assert_eq!(json_of(&initial)["set"], json!(["a", "b", "c"]), "the initial state holds results");
}

async fn a_write_of_shared_state_operates_on_it(service: SessionService) {
    session(&service, "s", before()).await;
    for scope in [user_scope(), app_scope()] {
        let written =
            service.write_state(StateWrite::new(scope, delta(|delta| change(delta, "")))).await.unwrap();
        let expected = json!({"n": 3, "list": ["a", "b", "a"], "set": ["a", "b", "c"], "map": {"a": 1, "b": 2, "c": null}, "other": "stays"});
        assert_eq!(json_of(&written.state), expected);
    }
    let read = state_of(&stored(&service, &key("s")).await);
    assert_eq!((&read["user:n"], &read["app:n"], &read["n"]), (&json!(3), &json!(3), &json!(5)));
}

async fn an_absent_key_counts_as_nothing(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let event = changing(|delta| {
        for prefix in ["", "user:", "app:"] {
            delta.add(format!("{prefix}n"), -4);
            delta.append(format!("{prefix}list"), [json!(1), json!(1)]);
            delta.append(format!("{prefix}empty"), Vec::<Value>::new());
            delta.union(format!("{prefix}set"), [json!(1), json!(1)]);
            delta.operate(format!("{prefix}map"), Operation::union_fields([("a", json!(1))]));
        }
    });
    service.append(&mut made, event).await.unwrap();
    let read = state_of(&stored(&service, made.key()).await);
    for prefix in ["", "user:", "app:"] {
        for (name, expected) in [
            ("n", json!(-4)),
            ("list", json!([1, 1])),
            ("empty", json!([])),
            ("set", json!([1])),
            ("map", json!({"a": 1})),
        ] {
            assert_eq!(read[format!("{prefix}{name}")], expected, "{prefix}{name}");
        }
    }
}

async fn null_is_not_absent(service: SessionService) {
    let made = session(&service, "s", json!({"k": null, "user:k": null, "app:k": null})).await;
    for key in ["k", "user:k", "app:k"] {
        for operation in
            [Operation::add(1), Operation::append([json!(1)]), Operation::union_fields([("a", json!(1))])]
        {
            let refused =
                service.append_to(made.key(), changing(|delta| delta.operate(key, operation))).await;
            assert!(refused.is_err(), "{key}");
        }
    }
    assert_eq!(stored(&service, made.key()).await.version(), 0);
}

async fn several_operations_on_one_key_are_applied_in_their_order(service: SessionService) {
    let mut made = session(&service, "s", json!({"n": 1, "user:list": [1]})).await;
    let event = changing(|delta| {
        // In the other order the first would cross the bound.
        delta.add("n", 10);
        delta.operate("n", Operation::add(-5).at_least(5));
        delta.add("n", 0.5);
        delta.append("user:list", [json!(2), json!(1)]);
        delta.union("user:list", [json!(3), json!(2)]);
        delta.append("user:list", [json!(3)]);
        delta.add("app:fresh", 1);
        delta.add("app:fresh", 1);
    });
    let event = service.append(&mut made, event).await.unwrap();
    let expected = json!({"n": 6.5, "user:list": [1, 2, 1, 3, 3], "app:fresh": 2});
    assert_eq!(state_of(&stored(&service, made.key()).await), expected);
    assert_eq!(event.operations()["n"].iter().count(), 3);
}

async fn an_operation_after_a_set_is_a_set(service: SessionService) {
    let mut made = session(&service, "s", json!({"a": 1, "b": 1, "user:c": [1], "app:d": 1})).await;
    let event = changing(|delta| {
        delta.set("a", json!(10));
        delta.add("a", 5);
        delta.add("b", 5);
        delta.set("b", json!(7));
        delta.remove("user:c");
        delta.append("user:c", [json!(2)]);
        delta.add("app:d", 1);
        delta.remove("app:d");
    });
    let event = service.append(&mut made, event).await.unwrap();
    assert_eq!(state_of(&stored(&service, made.key()).await), json!({"a": 15, "b": 7, "user:c": [2]}));
    assert!(event.operations().is_empty());
}

async fn operations_stand_beside_sets_and_removals(service: SessionService) {
    let mut made = session(&service, "s", json!({"n": 1, "gone": 1, "user:gone": 1, "user:n": 1})).await;
    let event = changing(|delta| {
        delta.add("n", 1);
        delta.remove("gone");
        delta.set("new", json!(null));
        delta.remove("user:gone");
        delta.add("user:n", 1);
        delta.set("app:new", json!([]));
    });
    let event = service.append(&mut made, event).await.unwrap();
    let read = stored(&service, made.key()).await;
    let expected = json!({"n": 2, "new": null, "user:n": 2, "app:new": []});
    assert_eq!((state_of(&read), state_of(&made)), (expected.clone(), expected));
    assert_eq!(event.actions.state_delta.removed().collect::<Vec<_>>(), ["gone", "user:gone"]);
    assert_eq!(read.events()[0].event, event);
}

async fn a_committed_event_holds_results_and_tells_the_operations(service: SessionService) {
    let mut made = session(&service, "s", before()).await;
    let sent = changing(change_everywhere);
    let intent: Vec<_> =
        sent.actions.state_delta.operations().map(|(key, ops)| (key.to_owned(), ops.clone())).collect();
    service.append(&mut made, sent).await.unwrap();
    let read = stored(&service, made.key()).await;
    let event = &read.events()[0];
    let results = &event.actions.state_delta;
    assert!(!results.has_operations());
    assert_eq!(results.len(), 12);
    for (key, change) in results.iter() {
        let Change::Set(result) = change else { panic!("{key} is not set") };
        assert_eq!(*result, after()[key], "{key}");
    }
    assert_eq!(event.operations().into_iter().collect::<Vec<_>>(), intent);

    let wire = serde_json::to_value(&*event.event).unwrap();
    assert_eq!(wire["actions"]["stateDelta"]["user:n"], json!(3), "clients replay absolute values");
    assert_eq!(wire["actions"]["stateDelta"]["list"], json!(["a", "b", "a"]));
    assert!(wire["actions"].get("stateOps").is_none(), "operations are input only: {wire}");
    let told = &wire["customMetadata"][OPERATIONS];
    assert_eq!(told["app:n"], json!({"add": -2, "min": 0, "max": 5}));
    assert_eq!(told["map"], json!({"union": {"b": 2, "c": null}}));
}

async fn an_append_returns_the_event_that_is_stored(service: SessionService) {
    let mut made = session(&service, "s", before()).await;
    let in_hand = service.append(&mut made, changing(change_everywhere)).await.unwrap();
    let by_key = changing(|delta| delta.add("user:n", 0.5));
    let by_key = service.append_answering(made.key(), Append::new(by_key)).await.unwrap();
    let mut stale = made.clone();
    let plain =
        service.append_with(&mut stale, setting(json!({"user:n": 0})), OnConflict::Merge).await.unwrap();
    let read = stored(&service, made.key()).await;
    for (stored, returned) in read.events().iter().zip([in_hand, by_key.event, plain]) {
        assert_eq!(stored.event, returned, "version {}", stored.version);
    }
    assert_eq!((by_key.version, by_key.incarnation), (2, made.incarnation()));
    assert_eq!(read.events().len(), 3);
}

async fn an_event_with_operations_brings_the_session_in_hand_up_to_date(service: SessionService) {
    let mut made = session(&service, "s", json!({"n": 1})).await;
    let mut stale = stored(&service, made.key()).await;
    service.append(&mut made, changing(|delta| delta.add("n", 1))).await.unwrap();
    service.append_with(&mut stale, changing(|delta| delta.add("n", 1)), OnConflict::Merge).await.unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!(serde_json::to_value(&stale).unwrap(), serde_json::to_value(&read).unwrap());
    assert_eq!((stale.version(), state_of(&stale)), (2, json!({"n": 3})));
}

async fn the_state_is_the_fold_of_the_results(service: SessionService) {
    let made = session(&service, "s", json!({"n": 1, "list": [], "map": {"a": 1}, "gone": 0})).await;
    let mut seen = vec![json!({"n": 1, "list": [], "map": {"a": 1}, "gone": 0})];
    for n in 0..8 {
        let event = changing(|delta| {
            delta.add("n", 1 << n);
            delta.add("user:n", 1);
            match n % 4 {
                0 => delta.append("list", [json!(n), json!({"n": n})]),
                1 => delta.union("list", [json!(0), json!(n)]),
                2 => delta.operate("map", Operation::union_fields([("a", json!(n)), ("b", json!([n]))])),
                _ => delta.remove("gone"),
            }
        });
        service.append_to(made.key(), event).await.unwrap();
        let own = state_of(&stored(&service, made.key()).await);
        seen.push(
            own.as_object().unwrap().clone().into_iter().filter(|(key, _)| !key.contains(':')).collect(),
        );
    }
    for (version, state) in (0..).zip(&seen) {
        let folded = json_of(&service.state_at(made.key(), version).await.unwrap());
        assert_eq!(folded, *state, "version {version}");
    }
}

async fn operations_are_never_executed_again(service: SessionService) {
    let mut made = session(&service, "s", json!({"n": 1, "user:n": 1})).await;
    service
        .append(
            &mut made,
            changing(|delta| ["n", "user:n", "app:n"].iter().for_each(|key| delta.add(key, 1))),
        )
        .await
        .unwrap();
    let fork = service.fork(made.key(), 1, Some("fork")).await.unwrap();
    assert_eq!(state_of(&fork), json!({"n": 2, "user:n": 2, "app:n": 1}));
    let whole = service.store().get(made.key(), EventWindow::ALL).await.unwrap().unwrap();
    let old = RestoreSession {
        key: key("restored"),
        time: 1000.0,
        initial: [("n".to_owned(), json!(1).into())].into(),
        events: whole.events.iter().map(|event| (*event.event).clone()).collect(),
    };
    let restored = service.restore(old).await.unwrap();
    assert_eq!(state_of(&restored), json!({"n": 2, "user:n": 2, "app:n": 1}));
    assert_eq!(restored.events()[0].event, made.events()[0].event, "the intent stays readable");
    let mut next = stored(&service, &key("restored")).await;
    service.append(&mut next, changing(|delta| delta.add("n", 1))).await.unwrap();
    assert_eq!(json_of(&service.state_at(next.key(), 1).await.unwrap()), json!({"n": 2}));
    assert_eq!(json_of(&service.state_at(next.key(), 2).await.unwrap()), json!({"n": 3}));
}

async fn rewind_takes_operations_back(service: SessionService) {
    let mut made = session(&service, "s", json!({"n": 1, "list": ["a"]})).await;
    for invocation in ["i1", "i2"] {
        let event = changing(|delta| {
            delta.add("n", 1);
            delta.append("list", [json!(invocation)]);
            delta.add("fresh", 1);
        });
        service.append(&mut made, event.with_invocation(invocation)).await.unwrap();
    }
    let rewound = service.rewind(made.key(), "i2").await.unwrap();
    assert_eq!(state_of(&rewound), json!({"n": 2, "list": ["a", "i1"], "fresh": 1}));
    let rewound = service.rewind(made.key(), "i1").await.unwrap();
    assert_eq!(state_of(&rewound), json!({"n": 1, "list": ["a"]}));
    assert_eq!(state_of(&stored(&service, made.key()).await), state_of(&rewound));
}

async fn operations_on_temp_keys_are_not_stored(service: SessionService) {
    let mut made = session(&service, "s", empty()).await;
    let event = changing(|delta| {
        delta.add("temp:n", 1);
        delta.append("temp:secret", [json!("x")]);
    });
    let event = service.append(&mut made, event).await.unwrap();
    assert!(event.actions.state_delta.is_empty() && event.operations().is_empty());
    let event = changing(|delta| {
        delta.add("temp:n", 1);
        delta.add("n", 1);
    });
    service.append(&mut made, event).await.unwrap();
    let read = stored(&service, made.key()).await;
    assert_eq!(read.events()[1].operations().into_keys().collect::<Vec<_>>(), ["n"]);
    assert!(!serde_json::to_string(&read).unwrap().contains("temp:"));
}

async fn keys_of_every_spelling(service: SessionService) {
    let names = [
        "",
        " ",
        "a.b",
        "a\"b",
        "a\\b",
        "a'b",
        "$",
        "$.a",
        "[0]",
        "#-1",
        "a[0].b",
        "schlüssel",
        "鍵",
        "🔑",
        "%s",
        "{x}",
        "a,b",
        "null",
        "0",
        "-1",
        "a\nb",
        "*",
        "a/b",
        "~0",
    ];
    let mut made = session(&service, "s", empty()).await;
    let prefixes = ["", "user:", "app:"];
    let every = || prefixes.iter().flat_map(|prefix| names.iter().map(move |name| format!("{prefix}{name}")));
    service.append(&mut made, changing(|delta| every().for_each(|key| delta.add(key, 1)))).await.unwrap();
    let grow = |key: String, delta: &mut Delta| {
        delta.operate(key, Operation::add(1).at_most(2));
    };
    service.append(&mut made, changing(|delta| every().for_each(|key| grow(key, delta)))).await.unwrap();
    let read = state_of(&stored(&service, made.key()).await);
    assert_eq!(read.as_object().unwrap().len(), 3 * names.len());
    every().for_each(|key| assert_eq!(read[&key], json!(2), "{key:?}"));

    let fields = names.iter().map(|name| (*name, json!(1)));
    let event = changing(|delta| {
        delta.operate("o", Operation::union_fields(fields.clone()));
        delta.operate("user:o", Operation::union_fields(fields.clone()));
    });
    service.append(&mut made, event).await.unwrap();
    let event = changing(|delta| {
        delta.operate("o", Operation::union_fields([("a.b", json!(2))]));
        delta.operate("user:o", Operation::union_fields([("a.b", json!(2))]));
    });
    service.append(&mut made, event).await.unwrap();
    let read = state_of(&stored(&service, made.key()).await);
    for object in [&read["o"], &read["user:o"]] {
        assert_eq!(object.as_object().unwrap().len(), names.len());
        assert_eq!((&object["a.b"], &object["a\"b"]), (&json!(2), &json!(1)));
    }
}

async fn a_long_list_grows_at_its_end(service: SessionService) {
    let long: Vec<Value> = (0..2000).map(|n| json!({"n": n, "text": "x".repeat(20)})).collect();
    let mut made = session(&service, "s", json!({"list": long, "user:list": long})).await;
    let events: Vec<Event> = (0..3)
        .map(|n| {
            let event = changing(|delta| {
                delta.append("list", [value(&format!("[{n}, 12345678901234567890123]"))]);
                delta.union("user:list", [json!(n), json!({"text": "x".repeat(20), "n": 7.0})]);
            });
            named(&format!("e{n}"), event)
        })
        .collect();
    for event in events {
        service.append(&mut made, event).await.unwrap();
    }
    let read = stored(&service, made.key()).await;
    let list = read.state().get_raw("list").unwrap().to_items();
    assert_eq!(list.len(), 2003);
    assert_eq!(list[2002].to_string().replace(' ', ""), "[2,12345678901234567890123]");
    let shared = read.state().get_raw("user:list").unwrap();
    assert_eq!(shared.as_array().unwrap()[2000..], [json!(0), json!(1), json!(2)]);
}
