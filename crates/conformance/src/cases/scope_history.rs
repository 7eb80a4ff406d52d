//! The history of shared state: who changed what, what the state was, and how long that is known.

use std::time::Duration;

use serde_json::{Value, json};
use sessile_session::{
    ChangeWindow, ChangedBy, Clock, Guards, HistoryPage, OnOverwrite, ScopeChange, ScopeKey, ScopeWatch,
    SessionError, SessionService, StateMap, StateWrite, Version,
};

use super::{
    app_scope, cases, changing, delta, empty, json_of, key, named, same_state, session, setting, user_scope,
};

cases!(
    comes_in_pages_that_neither_skip_nor_repeat,
    of_one_key_has_only_its_changes,
    names_who_set_a_key_also_after_the_session_was_deleted,
    windows_are_read_from_either_end,
    state_at_every_version_is_what_was_read_then,
    state_at_a_version_to_come_is_refused,
    trimming_keeps_the_newest_change_and_the_version,
    trimming_goes_in_small_steps,
    trimming_leaves_what_is_young_enough,
    a_write_that_reports_tells_what_it_overwrote,
    a_watch_sees_every_change_of_its_scope_once_in_order,
    a_watch_goes_on_after_a_version,
    a_watch_sees_what_another_service_writes,
);

fn scopes() -> [ScopeKey; 2] {
    [user_scope(), app_scope()]
}

fn versions(changes: &[ScopeChange]) -> Vec<Version> {
    changes.iter().map(|change| change.version).collect()
}

async fn comes_in_pages_that_neither_skip_nor_repeat(service: SessionService) {
    for scope in scopes() {
        for n in 1..=23 {
            service.write_state(StateWrite::new(scope.clone(), json!({"n": n}))).await.unwrap();
        }
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = HistoryPage { before, limit: 5 };
            let page = service.scope_history(&scope, None, page).await.unwrap();
            assert!(page.changes.len() <= 5 && (page.changes.len() == 5 || page.next.is_none()));
            found.extend(versions(&page.changes));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(found, (1..=23).rev().collect::<Vec<_>>());
        let whole = service.scope_history(&scope, None, HistoryPage::default()).await.unwrap();
        assert_eq!((versions(&whole.changes), whole.next), (found, None));
    }
    let other = ScopeKey::User("shop".to_owned(), "eve".to_owned());
    assert_eq!(service.scope_history(&other, None, HistoryPage::default()).await.unwrap().changes, []);
}

async fn of_one_key_has_only_its_changes(service: SessionService) {
    session(&service, "s", json!({"user:points": 1, "user:name": "ada"})).await;
    for n in 0..6 {
        let name = if n % 3 == 0 { "user:points" } else { "user:name" };
        service.append_to(&key("s"), setting(json!({ name: n }))).await.unwrap();
    }
    service.append_to(&key("s"), changing(|delta| delta.remove("user:points"))).await.unwrap();
    let page = |before, limit| HistoryPage { before, limit };
    let found = service.scope_history(&user_scope(), Some("points"), page(None, 2)).await.unwrap();
    assert_eq!(versions(&found.changes), [8, 5]);
    let found = service.scope_history(&user_scope(), Some("points"), page(found.next, 2)).await.unwrap();
    assert_eq!((versions(&found.changes), found.next), (vec![2, 1], None));
    let absent = service.scope_history(&user_scope(), Some("none"), page(None, 2)).await.unwrap();
    assert_eq!((absent.changes, absent.next), (vec![], None));
}

async fn names_who_set_a_key_also_after_the_session_was_deleted(service: SessionService) {
    session(&service, "s", json!({"user:points": 0})).await;
    let event = named("e1", setting(json!({"user:points": 1000, "app:record": 1000})));
    service.append_to(&key("s"), event).await.unwrap();
    service.delete(&key("s")).await.unwrap();
    for (scope, name) in [(user_scope(), "points"), (app_scope(), "record")] {
        let found = service.scope_history(&scope, Some(name), HistoryPage::default()).await.unwrap();
        let ChangedBy::Event { user, session, event, author } = &found.changes[0].by else {
            panic!("{found:?}")
        };
        assert_eq!((&**user, &**session, &**event, author.as_deref()), ("ada", "s", "e1", Some("agent")));
        assert_eq!(found.changes[0].change, delta(|delta| delta.set(name, json!(1000))));
    }
}

async fn windows_are_read_from_either_end(service: SessionService) {
    for n in 1..=9 {
        service.write_app_state("shop", json!({"n": n})).await.unwrap();
    }
    for (after, until, limit, oldest_first, expected) in [
        (0, None, 3, false, vec![9, 8, 7]),
        (0, None, 3, true, vec![1, 2, 3]),
        (6, None, 9, true, vec![7, 8, 9]),
        (2, Some(5), 9, false, vec![5, 4, 3]),
        (2, Some(5), 2, true, vec![3, 4]),
        (9, None, 9, true, vec![]),
        (3, Some(3), 9, false, vec![]),
        (0, Some(100), 2, false, vec![9, 8]),
        (0, None, 0, false, vec![]),
    ] {
        let window = ChangeWindow { after, until, limit, oldest_first };
        let found = service.store().scope_changes(&app_scope(), window).await.unwrap();
        assert_eq!(versions(&found), expected, "{window:?}");
    }
}

/// A long and varied life of both scopes, by events, several at once, and by direct writes.
async fn state_at_every_version_is_what_was_read_then(service: SessionService) {
    session(&service, "s", json!({"user:n": 1, "user:list": [1], "app:map": {"a": 1}})).await;
    let mut seen: Vec<(ScopeKey, Version, StateMap)> = Vec::new();
    for round in 0..12_u32 {
        for scope in scopes() {
            let change = delta(|delta| match round % 6 {
                0 => delta.add("n", round),
                1 => delta.append("list", [json!(round), json!({"deep": [null]})]),
                2 => delta.operate(
                    "map",
                    sessile_state::Operation::union_fields([("a", json!(round)), ("b", json!(1.5))]),
                ),
                3 => delta.set("odd \"key\" \\ ключ", json!([round, "ü"])),
                4 => delta.remove("odd \"key\" \\ ключ"),
                _ => delta.union("list", [json!(1), json!("x"), json!(round)]),
            });
            if round % 2 == 0 {
                service.write_state(StateWrite::new(scope.clone(), change)).await.unwrap();
            } else {
                let prefixed = changing(|delta| {
                    for (name, one) in change.iter() {
                        let name = scope.scope().key(name);
                        match one {
                            sessile_state::Change::Set(value) => delta.set(name, value.clone()),
                            sessile_state::Change::Remove => delta.remove(name),
                            sessile_state::Change::Operate(operations) => {
                                delta.operate(name, operations.clone())
                            }
                        }
                    }
                });
                service.append_to(&key("s"), prefixed).await.unwrap();
            }
            let state = service.scope_state(&scope).await.unwrap();
            seen.push((scope, state.version, (*state.state).clone()));
        }
    }
    for (scope, version, expected) in &seen {
        let found = service.scope_state_at(scope, *version).await.unwrap();
        assert!(same_state(&found, expected), "{scope} at {version}: {found:?} and {expected:?}");
    }
    assert!(service.scope_state_at(&user_scope(), 0).await.unwrap().is_empty());
}

async fn state_at_a_version_to_come_is_refused(service: SessionService) {
    service.write_app_state("shop", json!({"n": 1})).await.unwrap();
    let refused = service.scope_state_at(&app_scope(), 2).await.unwrap_err();
    assert!(
        matches!(refused, SessionError::NotInScopeHistory { oldest: None, newest: 1, .. }),
        "{refused:?}"
    );
    assert!(
        refused.to_string().contains("version 2") && refused.to_string().contains("version is 1"),
        "{refused}"
    );
    assert!(service.scope_state_at(&user_scope(), 0).await.unwrap().is_empty());
}

/// A clock that is so many seconds ahead.
struct Ahead(f64);

impl Clock for Ahead {
    fn now(&self) -> f64 {
        sessile_session::SystemClock.now() + self.0
    }
}

const DAY: f64 = 24.0 * 3600.0;

/// The same store, as a service sees it after days.
fn after_days(service: &SessionService, days: f64) -> SessionService {
    SessionService::over(service.store()).with_clock(Ahead(days * DAY))
}

async fn trimming_keeps_the_newest_change_and_the_version(service: SessionService) {
    session(&service, "s", json!({"user:n": 0, "app:n": 0})).await;
    for n in 1..=4 {
        service.append_to(&key("s"), setting(json!({"user:n": n, "app:n": n}))).await.unwrap();
    }
    assert!(after_days(&service, 91.0).trim_history().await.unwrap() >= 2);
    for scope in scopes() {
        let history = service.scope_history(&scope, None, HistoryPage::default()).await.unwrap();
        assert_eq!(
            history.changes.last().map(|change| change.version),
            history.changes.first().map(|change| change.version)
        );
        assert_eq!(history.changes[0].version, 5);
        let state = service.scope_state(&scope).await.unwrap();
        assert_eq!((state.version, json_of(&state.state)), (5, json!({"n": 4})));
        assert_eq!(json_of(&service.scope_state_at(&scope, 4).await.unwrap()), json!({"n": 3}));
        let refused = service.scope_state_at(&scope, 3).await.unwrap_err();
        assert!(
            matches!(refused, SessionError::NotInScopeHistory { oldest: Some(4), newest: 5, .. }),
            "{refused:?}"
        );
        assert!(refused.to_string().contains("from version 4 on"), "{refused}");
    }
    service.write_user_state("shop", "ada", json!({"n": 9})).await.unwrap();
    assert_eq!(service.scope_state(&user_scope()).await.unwrap().version, 6);
    assert_eq!(json_of(&service.scope_state_at(&user_scope(), 5).await.unwrap()), json!({"n": 4}));
}

async fn trimming_goes_in_small_steps(service: SessionService) {
    for user in ["a", "b", "c", "d", "e"] {
        for n in 0..4 {
            service.write_user_state("shop", user, json!({"n": n})).await.unwrap();
        }
    }
    for n in 0..4 {
        service.write_app_state("shop", json!({"n": n})).await.unwrap();
    }
    let before = Ahead(DAY).now();
    let (mut removed, mut after, mut steps) = (0, None, 0);
    loop {
        let step = service.store().trim_changes(before, after.as_ref(), 2).await.unwrap();
        assert!(step.removed <= 2, "{step:?}");
        removed += step.removed;
        steps += 1;
        after = step.next;
        if after.is_none() {
            break;
        }
    }
    assert!(steps >= 3, "{steps}");
    // A step may leave changes of its last scope to the next round.
    for _ in 0..10 {
        let mut after = None;
        loop {
            let step = service.store().trim_changes(before, after.as_ref(), 2).await.unwrap();
            removed += step.removed;
            after = step.next;
            if after.is_none() {
                break;
            }
        }
    }
    assert_eq!(removed, 18, "three of four, in six scopes");
}

async fn trimming_leaves_what_is_young_enough(service: SessionService) {
    for n in 0..5 {
        service.write_user_state("shop", "ada", json!({"n": n})).await.unwrap();
    }
    assert_eq!(service.trim_history().await.unwrap(), 0);
    assert_eq!(after_days(&service, 89.0).trim_history().await.unwrap(), 0);
    let for_ever = after_days(&service, 1000.0).with_history_kept(None);
    assert_eq!(for_ever.trim_history().await.unwrap(), 0);
    let for_a_day = after_days(&service, 2.0).with_history_kept(Some(Duration::from_secs(24 * 3600)));
    assert_eq!(for_a_day.trim_history().await.unwrap(), 4);
    assert_eq!(for_a_day.trim_history().await.unwrap(), 0);
}

async fn a_write_that_reports_tells_what_it_overwrote(service: SessionService) {
    let long = "x".repeat(2000);
    for scope in scopes() {
        service.write_state(StateWrite::new(scope.clone(), json!({"n": 6, "long": long}))).await.unwrap();
        let guards = Guards::new(OnOverwrite::Report)
            .with_read("n", json!(5))
            .with_read("gone", json!(1))
            .with_absent("long");
        let write = || StateWrite {
            guards: guards.clone(),
            request: Some("r1".to_owned()),
            ..StateWrite::new(scope.clone(), json!({"n": 7}))
        };
        let written = service.write_state(write()).await.unwrap();
        let name = |name: &str| scope.scope().key(name);
        let told = json_of(&written.overwrote);
        let digest = told[name("long")]["found"]["sha256"].clone();
        assert!(digest.is_string(), "{told}");
        let expected = json!({
            name("n"): {"read": 5, "found": 6},
            name("gone"): {"read": 1},
            name("long"): {"found": {"bytes": 2002, "sha256": digest}},
        });
        assert_eq!(told, expected);
        let again = service.write_state(write()).await.unwrap();
        assert_eq!((again.version, json_of(&again.overwrote)), (written.version, expected.clone()));
        let history = service.scope_history(&scope, Some("n"), HistoryPage::default()).await.unwrap();
        assert_eq!(json_of(&history.changes[0].overwrote), expected);
        let current = StateWrite {
            guards: Guards::new(OnOverwrite::Report).with_read("n", json!(7)),
            ..StateWrite::new(scope.clone(), json!({"n": 8}))
        };
        assert!(service.write_state(current).await.unwrap().overwrote.is_empty());
        assert_eq!(json_of(&service.scope_state(&scope).await.unwrap().state)["n"], json!(8));
    }
}

async fn next(watch: &mut ScopeWatch) -> (Version, Value) {
    let waited = tokio::time::timeout(Duration::from_secs(30), watch.next()).await.expect("a change comes");
    let change = waited.expect("the history is read");
    (change.version, serde_json::to_value(&change.change).expect("a change is JSON"))
}

async fn a_watch_sees_every_change_of_its_scope_once_in_order(service: SessionService) {
    let (mut user, mut app) = (service.watch_user("shop", "ada", 0), service.watch_app("shop", 0));
    let writer = {
        let service = service.clone();
        tokio::spawn(async move {
            session(&service, "s", json!({"user:n": 0, "app:n": 0})).await;
            for n in 1..=20 {
                service.append_to(&key("s"), setting(json!({"user:n": n, "own": n}))).await.unwrap();
                service.write_app_state("shop", json!({"n": n})).await.unwrap();
                service.write_user_state("shop", "eve", json!({"n": n})).await.unwrap();
            }
        })
    };
    for n in 0..=20 {
        assert_eq!(next(&mut user).await, (n + 1, json!({"set": {"n": n}})));
        assert_eq!(next(&mut app).await, (n + 1, json!({"set": {"n": n}})));
    }
    writer.await.unwrap();
}

async fn a_watch_goes_on_after_a_version(service: SessionService) {
    session(&service, "s", empty()).await;
    for n in 1..=250 {
        service.write_user_state("shop", "ada", json!({"n": n})).await.unwrap();
    }
    let mut watch = service.watch_user("shop", "ada", 3);
    for n in 4..=250 {
        assert_eq!(next(&mut watch).await, (n, json!({"set": {"n": n}})));
    }
}

async fn a_watch_sees_what_another_service_writes(service: SessionService) {
    let watching = SessionService::over(service.store()).with_poll_interval(Duration::from_millis(20));
    let mut watch = watching.watch_app("shop", 0);
    for n in 1..=3 {
        service.write_app_state("shop", json!({"n": n})).await.unwrap();
        assert_eq!(next(&mut watch).await, (n, json!({"set": {"n": n}})));
    }
}
