//! Guards: the value that a change was computed from, compared when it is committed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sessile_session::{
    Append, Event, Guards, OVERWROTE, OnConflict, OnOverwrite, Session, SessionError, SessionKey,
    SessionService, StateWrite,
};
use sessile_state::State;

use super::{
    app_scope, cases, changing, create, delta, empty, everything, session, setting, state_of, stored,
    user_scope, value,
};
use crate::{Between, Call};

cases!(
    that_hold_let_the_commit_through,
    that_refuse_carry_the_current_values,
    tell_null_from_absence,
    compare_numbers_by_value_and_to_the_last_digit,
    may_stand_on_keys_that_are_not_changed,
    that_report_write_what_was_overwritten_into_the_event,
    that_report_leave_absent_values_out,
    that_report_tell_large_values_by_their_digest,
    that_report_tell_deeply_nested_values_so_that_they_are_read_back,
    of_both_modes_refuse_first,
    are_compared_before_operations_are_computed,
    on_keys_of_every_spelling,
    on_temp_keys_are_ignored,
    on_a_write_of_shared_state,
    report_a_login_count_that_another_session_changed,
    report_nothing_when_the_value_in_hand_is_current,
    report_a_removal_too,
    are_not_set_on_operations_and_own_keys_by_an_append,
    of_a_transaction_stand_on_the_keys_it_read,
    of_a_transaction_stand_on_everything_if_it_lists_keys,
    of_a_transaction_stand_on_absent_keys_too,
);

fn refusing() -> Guards {
    Guards::new(OnOverwrite::Refuse)
}

fn reporting() -> Guards {
    Guards::new(OnOverwrite::Report)
}

async fn append(
    service: &SessionService,
    key: &SessionKey,
    event: Event,
    guards: Guards,
) -> Result<Arc<Event>, SessionError> {
    Ok(service.append_answering(key, Append::new(event).guarded(guards)).await?.event)
}

/// What the event reports, as JSON.
fn overwrote(event: &Event) -> Value {
    event.overwrote().map_or(Value::Null, |told| Value::clone(told))
}

/// The current values that a refusal carries.
fn current(refused: Result<Arc<Event>, SessionError>) -> BTreeMap<String, Option<Value>> {
    match refused {
        Err(SessionError::Overwritten { current }) => {
            current.into_iter().map(|(key, value)| (key, value.map(Value::from))).collect()
        }
        other => panic!("it is not refused by a guard: {other:?}"),
    }
}

async fn prepared(service: &SessionService) -> Session {
    session(
        service,
        "s",
        json!({"a": 1, "user:a": "u", "app:a": [1, {"x": null}], "null": null, "user:null": null}),
    )
    .await
}

async fn that_hold_let_the_commit_through(service: SessionService) {
    let made = prepared(&service).await;
    for (n, mode) in (0..).zip([OnOverwrite::Refuse, OnOverwrite::Report]) {
        let guards = Guards::new(mode)
            .with_read("a", json!(1))
            .with_read("user:a", json!("u"))
            .with_read("app:a", json!([1, {"x": null}]))
            .with_read("user:null", json!(null))
            .with_absent("b")
            .with_absent("user:b")
            .with_absent("app:b");
        let event =
            append(&service, made.key(), setting(json!({"n": n, "user:n": n})), guards).await.unwrap();
        assert_eq!(event.overwrote(), None);
        assert_eq!(event.custom_metadata, None);
    }
    assert_eq!(stored(&service, made.key()).await.version(), 2);
}

async fn that_refuse_carry_the_current_values(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    let guards = refusing()
        .with_read("a", json!(2))
        .with_absent("user:a")
        .with_read("app:a", json!([1, {}]))
        .with_read("b", json!(1))
        .with_read("app:b", json!(null))
        .with_read("user:null", json!(null));
    let refused = append(&service, made.key(), setting(json!({"a": 3, "user:a": 3})), guards).await;
    let text = refused.as_ref().unwrap_err().to_string();
    assert!(text.contains("\"user:a\"") && text.contains("retry"), "{text}");
    let expected: BTreeMap<String, Option<Value>> = [
        ("a", Some(json!(1))),
        ("user:a", Some(json!("u"))),
        ("app:a", Some(json!([1, {"x": null}]))),
        ("b", None),
        ("app:b", None),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    assert_eq!(current(refused), expected, "only what differs is told");
    assert_eq!(everything(&service, made.key()).await, before);
}

async fn tell_null_from_absence(service: SessionService) {
    let made = prepared(&service).await;
    for (key, read, found) in [
        ("null", None, Some(Value::Null)),
        ("user:null", None, Some(Value::Null)),
        ("absent", Some(json!(null)), None),
        ("app:absent", Some(json!(null)), None),
        ("user:absent", Some(json!(null)), None),
    ] {
        let mut guards = refusing();
        guards.insert(key.to_owned(), read.map(Into::into));
        let refused = append(&service, made.key(), setting(json!({"x": 1})), guards).await;
        assert_eq!(current(refused), [(key.to_owned(), found)].into());
    }
}

async fn compare_numbers_by_value_and_to_the_last_digit(service: SessionService) {
    let texts = [
        ("one", "1"),
        ("half", "[0.5, {\"a\": 2}]"),
        ("big", "123456789012345678901234567890"),
        ("u64", "18446744073709551615"),
    ];
    let mut made = session(&service, "s", empty()).await;
    let event = changing(|delta| {
        for prefix in ["", "user:", "app:"] {
            texts.iter().for_each(|(name, text)| delta.set(format!("{prefix}{name}"), value(text)));
        }
    });
    service.append(&mut made, event).await.unwrap();
    for prefix in ["", "user:", "app:"] {
        for (name, read, holds) in [
            ("one", "1.0", true),
            ("one", "1.0000000000000002", false),
            ("half", "[5e-1, {\"a\": 2.0}]", true),
            ("half", "[0.5, {\"a\": 2, \"b\": null}]", false),
            ("big", "123456789012345678901234567890", true),
            ("big", "123456789012345678901234567891", false),
            ("u64", "18446744073709551614", false),
            ("u64", "18446744073709551615", true),
        ] {
            let guards = refusing().with_read(format!("{prefix}{name}"), value(read));
            let appended = append(&service, made.key(), setting(json!({"x": 1})), guards).await;
            assert_eq!(appended.is_ok(), holds, "{prefix}{name} and {read}: {appended:?}");
        }
    }
}

async fn may_stand_on_keys_that_are_not_changed(service: SessionService) {
    let made = prepared(&service).await;
    let other = create(&service, "shop", "ada", "other", empty()).await;
    service.append_to(other.key(), setting(json!({"user:a": "changed", "app:b": 1}))).await.unwrap();
    for guards in [refusing().with_read("user:a", json!("u")), refusing().with_absent("app:b")] {
        let refused = append(&service, made.key(), setting(json!({"c": 1})), guards).await;
        assert_eq!(current(refused).len(), 1);
    }
    let guards = reporting().with_read("user:a", json!("u")).with_absent("app:b");
    let event = append(&service, made.key(), Event::new("agent"), guards).await.unwrap();
    let expected = json!({"user:a": {"read": "u", "found": "changed"}, "app:b": {"found": 1}});
    assert_eq!(overwrote(&event), expected, "an event without changes reports too");
}

async fn that_report_write_what_was_overwritten_into_the_event(service: SessionService) {
    let mut made = prepared(&service).await;
    let guards = reporting()
        .with_read("a", json!(0))
        .with_read("user:a", json!({"old": [1.5]}))
        .with_read("app:a", json!([1, {"x": null}]));
    let mut sent = setting(json!({"a": 10, "user:a": 11, "app:a": 12}));
    sent.custom_metadata.get_or_insert_default().insert("mine".to_owned(), json!("stays").into());
    let event = service.append_guarded(&mut made, sent, OnConflict::Refuse, guards).await.unwrap();
    let expected = json!({"a": {"read": 0, "found": 1}, "user:a": {"read": {"old": [1.5]}, "found": "u"}});
    assert_eq!(overwrote(&event), expected);
    let read = stored(&service, made.key()).await;
    assert_eq!(read.events()[0].event, event, "it is stored with the event");
    let wire = serde_json::to_value(&*event).unwrap();
    assert_eq!(wire["customMetadata"], json!({OVERWROTE: expected, "mine": "stays"}));
    let state = state_of(&read);
    assert_eq!((&state["a"], &state["user:a"], &state["app:a"]), (&json!(10), &json!(11), &json!(12)));
}

async fn that_report_leave_absent_values_out(service: SessionService) {
    let made = prepared(&service).await;
    let guards = reporting()
        .with_absent("a")
        .with_read("gone", json!(1))
        .with_absent("user:null")
        .with_read("app:gone", json!(null));
    let event = append(&service, made.key(), setting(json!({"a": 2})), guards).await.unwrap();
    let expected = json!({"a": {"found": 1}, "gone": {"read": 1}, "user:null": {"found": null}, "app:gone": {"read": null}});
    assert_eq!(overwrote(&event), expected);
}

/// The digest of the 2002 bytes that are the JSON text of 2000 times the letter x.
const DIGEST: &str = "94bfe6f3d049c2f74b5506f7db3325ead9914e9063fc9e88274510a5aa70641f";

async fn that_report_tell_large_values_by_their_digest(service: SessionService) {
    let (large, whole) = ("x".repeat(2000), "y".repeat(1000));
    let made = session(&service, "s", json!({"a": large, "user:a": large, "app:a": whole})).await;
    let guards =
        reporting().with_read("a", json!(whole)).with_absent("user:a").with_read("app:a", json!(large));
    let event = append(&service, made.key(), setting(json!({"a": 1, "user:a": 1, "app:a": 1})), guards)
        .await
        .unwrap();
    let digest = json!({"bytes": 2002, "sha256": DIGEST});
    let expected = json!({"a": {"read": whole, "found": digest}, "user:a": {"found": digest}, "app:a": {"read": digest, "found": whole}});
    assert_eq!(overwrote(&event), expected);
    let guards = refusing().with_absent("b").with_read("a", json!(large));
    let refused = append(&service, made.key(), setting(json!({"b": 1})), guards).await;
    assert_eq!(current(refused), [("a".to_owned(), Some(json!(1)))].into());
}

/// A stored value may be nested 200 levels deep, and so may what the event reports: the value is
/// inside of it.
async fn that_report_tell_deeply_nested_values_so_that_they_are_read_back(service: SessionService) {
    let nested = |inner: &str| value(&("[".repeat(199) + inner + &"]".repeat(199)));
    let mut made = session(&service, "s", empty()).await;
    let event =
        changing(|delta| ["a", "user:a", "app:a"].iter().for_each(|key| delta.set(key, nested("[1]"))));
    service.append(&mut made, event).await.unwrap();
    let guards = reporting()
        .with_read("a", nested("[2]"))
        .with_read("user:a", nested("[2]"))
        .with_read("app:a", nested("[1]"));
    append(&service, made.key(), setting(json!({"a": 1, "user:a": 1, "app:a": 1})), guards).await.unwrap();
    let read = stored(&service, made.key()).await;
    let told = overwrote(&read.events()[1]);
    assert_eq!(told.as_object().unwrap().keys().collect::<Vec<_>>(), ["a", "user:a"]);
    assert!(told["user:a"].get("found").is_some_and(|found| !found.is_null()));
}

async fn of_both_modes_refuse_first(service: SessionService) {
    let made = prepared(&service).await;
    let before = everything(&service, made.key()).await;
    let commit = sessile_session::Commit {
        key: made.key().clone(),
        event: Arc::new(Event { id: "e1".to_owned(), ..setting(json!({"a": 5})) }.with_timestamp(5.0)),
        delta: delta(|delta| delta.set("a", json!(5))).split(),
        expect: sessile_session::Expect::default(),
        guards: sessile_session::ScopedGuards {
            session: refusing().with_absent("a").split().session,
            user: reporting().with_absent("user:a").split().user,
            ..sessile_session::ScopedGuards::default()
        },
        max_scope_bytes: None,
        answer: sessile_session::Answer::default(),
    };
    let refused = service.store().append(commit.clone()).await.map(|appended| appended.event);
    assert_eq!(current(refused), [("a".to_owned(), Some(json!(1)))].into());
    assert_eq!(everything(&service, made.key()).await, before);
    let mut commit = commit;
    commit.guards.session.clear();
    let appended = service.store().append(commit).await.unwrap();
    assert_eq!(overwrote(&appended.event), json!({"user:a": {"found": "u"}}));
}

async fn are_compared_before_operations_are_computed(service: SessionService) {
    let made = prepared(&service).await;
    let bad = || changing(|delta| delta.add("user:a", 1));
    let refused = append(&service, made.key(), bad(), refusing().with_read("a", json!(0))).await;
    assert_eq!(current(refused).len(), 1);
    let refused = append(&service, made.key(), bad(), refusing().with_read("a", json!(1))).await;
    assert!(matches!(refused, Err(SessionError::Operation { .. })));
    let good = changing(|delta| delta.add("a", 1));
    let event = append(&service, made.key(), good, reporting().with_read("a", json!(0))).await.unwrap();
    assert_eq!(overwrote(&event), json!({"a": {"read": 0, "found": 1}}));
    assert_eq!(event.operations().len(), 1, "an event tells both");
    assert_eq!(stored(&service, made.key()).await.state().get::<u32>("a"), Some(2));
}

async fn on_keys_of_every_spelling(service: SessionService) {
    let names = ["", "a.b", "a\"b", "a\\b", "$", "[0]", "schlüssel", "🔑", "%s", "a,b", "a\nb"];
    let full = |name: &&str| ["", "user:", "app:"].map(|prefix| format!("{prefix}{name}"));
    let state: serde_json::Map<_, _> = names.iter().flat_map(full).map(|key| (key, json!(1))).collect();
    let made = session(&service, "s", state.clone().into()).await;
    let mut guards = refusing();
    state.keys().for_each(|key| guards.insert(key.clone(), Some(json!(1).into())));
    append(&service, made.key(), Event::new("agent"), guards).await.unwrap();
    let mut guards = refusing();
    state.keys().for_each(|key| guards.insert(key.clone(), Some(json!(2).into())));
    let refused = append(&service, made.key(), Event::new("agent"), guards).await;
    let expected: BTreeMap<_, _> = state.into_iter().map(|(key, value)| (key, Some(value))).collect();
    assert_eq!(current(refused), expected);
}

async fn on_temp_keys_are_ignored(service: SessionService) {
    let made = prepared(&service).await;
    let guards = refusing().with_read("temp:x", json!(1));
    append(&service, made.key(), setting(json!({"b": 1})), guards).await.unwrap();
}

async fn on_a_write_of_shared_state(service: SessionService) {
    prepared(&service).await;
    for (scope, held) in [(user_scope(), json!("u")), (app_scope(), json!([1, {"x": null}]))] {
        let write = |guards: Guards| StateWrite { guards, ..StateWrite::new(scope.clone(), json!({"b": 1})) };
        let refused =
            service.write_state(write(refusing().with_absent("a").with_read("none", json!(1)))).await;
        let Err(SessionError::Overwritten { current }) = refused else { panic!("{refused:?}") };
        let prefixed = |name: &str| scope.scope().key(name);
        let found: BTreeMap<_, _> =
            current.into_iter().map(|(key, value)| (key, value.map(Value::from))).collect();
        assert_eq!(found, [(prefixed("a"), Some(held.clone())), (prefixed("none"), None)].into());
        let written =
            service.write_state(write(refusing().with_read("a", held).with_absent("b"))).await.unwrap();
        assert_eq!(*written.state["b"], json!(1));
        let again = service.write_state(write(refusing().with_absent("b"))).await;
        assert!(matches!(again, Err(SessionError::Overwritten { .. })));
    }
}

/// The example of ADK's documentation: a session in hand, `user:login_count` computed from it, an
/// append.
async fn log_in(service: &SessionService, session: &mut Session) -> Event {
    let count: u32 = session.state().get("user:login_count").unwrap_or(0);
    let event = setting(json!({"user:login_count": count + 1, "task": "done"}));
    Event::clone(&*service.append(session, event).await.unwrap())
}

async fn report_a_login_count_that_another_session_changed(service: SessionService) {
    let mut phone = session(&service, "phone", json!({"user:login_count": 4})).await;
    let mut laptop = session(&service, "laptop", empty()).await;
    assert_eq!(overwrote(&log_in(&service, &mut phone).await), Value::Null);
    let event = log_in(&service, &mut laptop).await;
    assert_eq!(
        overwrote(&event),
        json!({"user:login_count": {"read": 4, "found": 5}}),
        "a login is lost, and told"
    );
    assert_eq!(*stored(&service, laptop.key()).await.events()[0].event, event);
    assert_eq!(
        overwrote(&log_in(&service, &mut laptop).await),
        Value::Null,
        "its own write is not another's"
    );
    service.write_app_state("shop", json!({"rate": 1})).await.unwrap();
    let event = service.append(&mut phone, setting(json!({"app:rate": 2}))).await.unwrap();
    assert_eq!(overwrote(&event), json!({"app:rate": {"found": 1}}));
}

async fn report_nothing_when_the_value_in_hand_is_current(service: SessionService) {
    let mut made = session(&service, "s", json!({"user:n": 1, "app:n": 1})).await;
    let mut stale = stored(&service, made.key()).await;
    let other = session(&service, "other", empty()).await;
    // The scopes have new versions, and these keys have the values that they had.
    let others = [json!({"user:other": 1, "app:other": 1}), json!({"user:n": 2}), json!({"user:n": 1.0})];
    for change in others {
        service.append_to(other.key(), setting(change)).await.unwrap();
    }
    let event = service.append(&mut made, setting(json!({"user:n": 5, "app:n": 5}))).await.unwrap();
    assert_eq!(event.custom_metadata, None);
    let event = setting(json!({"user:fresh": 1}));
    let event = service.append_with(&mut stale, event, OnConflict::Merge).await.unwrap();
    assert_eq!(overwrote(&event), Value::Null);
    let event = setting(json!({"user:n": 6, "app:n": 6}));
    let event = service.append_with(&mut stale, event, OnConflict::Merge).await.unwrap();
    assert_eq!(overwrote(&event), Value::Null, "the events of others were taken in with the append before");
}

async fn report_a_removal_too(service: SessionService) {
    let mut made = session(&service, "s", json!({"user:cart": ["a"]})).await;
    service.write_user_state("shop", "ada", json!({"cart": ["a", "b"]})).await.unwrap();
    let event = service.append(&mut made, changing(|delta| delta.remove("user:cart"))).await.unwrap();
    assert_eq!(overwrote(&event), json!({"user:cart": {"read": ["a"], "found": ["a", "b"]}}));
    let read = stored(&service, made.key()).await;
    assert_eq!(state_of(&read), empty());
    assert_eq!(read.events()[0].event, event);
    assert_eq!(event.actions.state_delta.removed().collect::<Vec<_>>(), ["user:cart"]);
}

async fn are_not_set_on_operations_and_own_keys_by_an_append(service: SessionService) {
    let mut made = session(&service, "s", json!({"user:n": 1, "own": 1})).await;
    let mut stale = stored(&service, made.key()).await;
    service.write_user_state("shop", "ada", json!({"n": 5})).await.unwrap();
    let event = service.append(&mut made, changing(|delta| delta.add("user:n", 1))).await.unwrap();
    assert_eq!(event.overwrote(), None, "an operation overwrites nothing");
    assert_eq!(stored(&service, made.key()).await.state().get::<u32>("user:n"), Some(6));
    service.append(&mut made, setting(json!({"own": 2}))).await.unwrap();
    let event = service.append_with(&mut stale, setting(json!({"own": 3})), OnConflict::Merge).await.unwrap();
    assert_eq!(event.overwrote(), None, "merging is what the caller asked for");
    let event = service.append_to(made.key(), setting(json!({"user:n": 9}))).await;
    assert_eq!(event.unwrap(), Some(4));
    assert_eq!(
        stored(&service, made.key()).await.events()[3].overwrote(),
        None,
        "a blind set stays a blind set"
    );
}

/// Runs a transaction; before its first commit, another writer makes `meanwhile`. Returns how often
/// the closure ran.
async fn attempts(
    service: &SessionService,
    key: &SessionKey,
    meanwhile: Value,
    change: impl Fn(&State) + Sync,
) -> usize {
    let (other, address) = (service.clone(), key.clone());
    let commits = Arc::new(AtomicUsize::new(0));
    let store = Between::over(service.store(), move |call| {
        let first = matches!(call, Call::Append(_)) && commits.fetch_add(1, Ordering::SeqCst) == 0;
        let (other, address, meanwhile) = (other.clone(), address.clone(), meanwhile.clone());
        async move {
            if first {
                other.append_to(&address, setting(meanwhile)).await?;
            }
            Ok(())
        }
    });
    let runs = AtomicUsize::new(0);
    let transaction = SessionService::new(store);
    let done = transaction.transact(key, |state| {
        runs.fetch_add(1, Ordering::SeqCst);
        change(state);
        Ok(())
    });
    done.await.unwrap();
    runs.load(Ordering::SeqCst)
}

async fn of_a_transaction_stand_on_the_keys_it_read(service: SessionService) {
    let state = json!({"a": 1, "user:a": 1, "app:a": 1, "b": 1});
    let made = session(&service, "s", state).await;
    let read_and_write = |state: &State| {
        let sum = state.get::<u32>("a").unwrap_or(0) + state.get::<u32>("user:a").unwrap_or(0);
        state.set("sum", sum + state.get::<u32>("app:a").unwrap_or(0));
    };
    for (meanwhile, expected) in [
        (json!({"b": 2, "user:b": 2, "app:b": 2, "sum": 0}), 1),
        (json!({"a": 1, "user:a": 1.0}), 1),
        (json!({"a": 2}), 2),
        (json!({"user:a": 2}), 2),
        (json!({"app:a": 2}), 2),
    ] {
        let runs = attempts(&service, made.key(), meanwhile.clone(), read_and_write).await;
        assert_eq!(runs, expected, "{meanwhile}");
    }
    assert_eq!(stored(&service, made.key()).await.state().get::<u32>("sum"), Some(6));
    let blind = attempts(&service, made.key(), json!({"x": 1, "n": 5}), |state| {
        state.set("x", 2);
        state.add("n", 1);
    });
    assert_eq!(blind.await, 1, "what was not read may change");
    let read = stored(&service, made.key()).await;
    assert_eq!((read.state().get("x"), read.state().get("n")), (Some(2), Some(6)));
    let computed = attempts(&service, made.key(), json!({"n": 10}), |state| {
        state.modify("n", 0, |n: i64| n * 2);
    });
    assert_eq!(computed.await, 2);
    let own = attempts(&service, made.key(), json!({"n": 3}), |state| {
        state.set("n", 1);
        state.modify("n", 0, |n: i64| n + 1);
    });
    assert_eq!(own.await, 1, "it read its own value");
    let added = attempts(&service, made.key(), json!({"n": 7}), |state| {
        state.add("n", 1);
        state.set("seen", state.get::<i64>("n"));
    });
    assert_eq!(added.await, 2, "it read a value that depends on what is stored");
    let read = stored(&service, made.key()).await;
    assert_eq!((read.state().get("n"), read.state().get("seen")), (Some(8), Some(8)));
}

async fn of_a_transaction_stand_on_everything_if_it_lists_keys(service: SessionService) {
    let made = session(&service, "s", json!({"a": 1, "user:a": 1})).await;
    let count = |state: &State| state.set("count", state.keys().len());
    for (n, meanwhile) in [json!({"b": 1}), json!({"user:b": 1}), json!({"app:b": 1})].into_iter().enumerate()
    {
        let runs = attempts(&service, made.key(), meanwhile, count).await;
        assert_eq!(runs, 2);
        // The first count adds the key `count` itself.
        let counted = stored(&service, made.key()).await.state().get::<usize>("count");
        assert_eq!(counted, Some(n + 3 + usize::from(n > 0)));
    }
    let read = attempts(&service, made.key(), json!({"a": 2}), |state| {
        state.set("sum", state.to_map().len());
    });
    assert_eq!(read.await, 2);
}

async fn of_a_transaction_stand_on_absent_keys_too(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    let claim = |state: &State| {
        if !state.contains("user:owner") {
            state.set("user:owner", "me");
        }
        state.set("looked", true);
    };
    let runs = attempts(&service, made.key(), json!({"user:owner": "other"}), claim).await;
    assert_eq!(runs, 2);
    assert_eq!(
        stored(&service, made.key()).await.state().get::<String>("user:owner").as_deref(),
        Some("other")
    );
    let fallback = attempts(&service, made.key(), json!({"derived:risk": 0.5}), |state| {
        state.set("seen", state.get::<f64>("risk"));
    });
    assert_eq!(fallback.await, 2, "`risk` is read from `derived:risk`, so that key counts as read");
    assert_eq!(stored(&service, made.key()).await.state().get::<f64>("seen"), Some(0.5));
}
