//! State that sessions share: its versions, writes without a session, and the history of its
//! changes.

use std::sync::Arc;

use serde_json::json;
use sessile_session::{
    ChangeWindow, ChangedBy, CreateSession, ScopeKey, ScopeState, SessionError, SessionService, StateMap,
    StateWrite, Version,
};
use sessile_state::{Change, Delta, Operation, State};

use super::{
    app_scope, cases, changing, concurrency::at_once, create, delta, empty, json_of, key, named, same_state,
    session, setting, user_scope, value,
};

cases!(
    a_write_returns_the_version_and_the_whole_state,
    an_unwritten_scope_has_version_zero,
    versions_grow_by_one_with_every_change,
    what_changes_nothing_has_no_version,
    another_version_than_expected_is_a_conflict,
    a_request_sent_again_changes_nothing,
    a_request_sent_again_answers_with_the_state_as_of_then,
    a_request_sent_again_is_answered_whatever_is_expected,
    a_request_sent_by_many_at_once_is_made_once,
    another_change_under_the_request_is_a_conflict,
    requests_of_different_scopes_are_different,
    the_history_tells_who_changed_what,
    the_history_is_read_newest_first,
    undoing_the_history_gives_back_every_state,
    scopes_have_histories_of_their_own,
    the_history_of_parallel_writers_is_complete,
);

fn scopes() -> [ScopeKey; 2] {
    [user_scope(), app_scope()]
}

async fn write(service: &SessionService, scope: &ScopeKey, delta: impl Into<Delta>) -> Version {
    service.write_state(StateWrite::new(scope.clone(), delta)).await.unwrap().version
}

fn requested(scope: &ScopeKey, request: &str, delta: impl Into<Delta>) -> StateWrite {
    StateWrite { request: Some(request.to_owned()), ..StateWrite::new(scope.clone(), delta) }
}

async fn read(service: &SessionService, scope: &ScopeKey) -> ScopeState {
    service.scope_state(scope).await.unwrap()
}

async fn a_write_returns_the_version_and_the_whole_state(service: SessionService) {
    for scope in scopes() {
        let written =
            service.write_state(StateWrite::new(scope.clone(), json!({"a": 1, "b": [null]}))).await.unwrap();
        assert_eq!((written.version, json_of(&written.state)), (1, json!({"a": 1, "b": [null]})));
        let change = delta(|delta| {
            delta.remove("a");
            delta.append("b", [json!(2)]);
            delta.add("c", 1);
        });
        let written = service.write_state(StateWrite::new(scope.clone(), change)).await.unwrap();
        assert_eq!((written.version, json_of(&written.state)), (2, json!({"b": [null, 2], "c": 1})));
        assert!(written.known.is_none());
        let now = read(&service, &scope).await;
        assert_eq!((now.version, &now.state), (2, &written.state));
    }
    let made = session(&service, "s", empty()).await;
    assert_eq!(
        super::state_of(&made),
        json!({"user:b": [null, 2], "user:c": 1, "app:b": [null, 2], "app:c": 1})
    );
}

async fn an_unwritten_scope_has_version_zero(service: SessionService) {
    session(&service, "s", json!({"own": 1})).await;
    for scope in scopes() {
        assert_eq!(read(&service, &scope).await, ScopeState { version: 0, state: Arc::default() });
        assert!(service.store().scope_changes(&scope, ChangeWindow::newest(10)).await.unwrap().is_empty());
        let write = StateWrite { expect: Some(0), ..StateWrite::new(scope, json!({"first": 1})) };
        assert_eq!(service.write_state(write).await.unwrap().version, 1);
    }
}

async fn versions_grow_by_one_with_every_change(service: SessionService) {
    let made = session(&service, "s", json!({"user:n": 0, "app:n": 0})).await;
    assert_eq!(made.versions().user, Some(1));
    service.append_to(made.key(), setting(json!({"user:a": 1, "user:b": 1, "own": 1}))).await.unwrap();
    service.append_to(made.key(), setting(json!({"own": 2}))).await.unwrap();
    service.append_to(made.key(), changing(|delta| delta.add("user:n", 1))).await.unwrap();
    service.append_to(made.key(), changing(|delta| delta.remove("app:n"))).await.unwrap();
    write(&service, &user_scope(), json!({"c": 1})).await;
    let set = |state: &State| state.try_set("app:x", 1).map_err(Into::into);
    service.transact(made.key(), set).await.unwrap();
    create(&service, "shop", "bob", "b", json!({"user:bob": 1})).await;
    assert_eq!(read(&service, &user_scope()).await.version, 4);
    assert_eq!(read(&service, &app_scope()).await.version, 3);
    let session = super::stored(&service, made.key()).await;
    assert_eq!((session.versions().user, session.versions().app), (Some(4), Some(3)));
    for (scope, count) in [(user_scope(), 4), (app_scope(), 3)] {
        let changes = service.store().scope_changes(&scope, ChangeWindow::newest(100)).await.unwrap();
        let versions: Vec<_> = changes.iter().map(|change| change.version).collect();
        assert_eq!(versions, (1..=count).rev().collect::<Vec<_>>());
    }
}

async fn what_changes_nothing_has_no_version(service: SessionService) {
    let made = session(&service, "s", json!({"user:a": 1})).await;
    for scope in scopes() {
        let before = read(&service, &scope).await;
        let written = service.write_state(StateWrite::new(scope.clone(), Delta::new())).await.unwrap();
        assert_eq!((written.version, &written.state), (before.version, &before.state));
        assert_eq!(read(&service, &scope).await, before);
    }
    service.append_to(made.key(), setting(json!({"own": 1, "temp:x": 1}))).await.unwrap();
    assert_eq!(read(&service, &user_scope()).await.version, 1);
    assert_eq!(read(&service, &app_scope()).await.version, 0);
}

async fn another_version_than_expected_is_a_conflict(service: SessionService) {
    for scope in scopes() {
        write(&service, &scope, json!({"n": 1})).await;
        write(&service, &scope, json!({"n": 2})).await;
        let expecting =
            |version| StateWrite { expect: Some(version), ..StateWrite::new(scope.clone(), json!({"n": 9})) };
        for wrong in [0, 1, 3] {
            let refused = service.write_state(expecting(wrong)).await.unwrap_err();
            let text = refused.to_string();
            assert!(text.contains(&scope.to_string()) && text.contains("read it again"), "{text}");
            let SessionError::ScopeConflict { scope: named, expected, actual } = refused else {
                panic!("{text}")
            };
            assert_eq!((named, expected, actual), (scope.clone(), wrong, 2));
        }
        assert_eq!(json_of(&read(&service, &scope).await.state), json!({"n": 2}));
        assert_eq!(service.write_state(expecting(2)).await.unwrap().version, 3);
    }
}

async fn a_request_sent_again_changes_nothing(service: SessionService) {
    for scope in scopes() {
        let change = || delta(|delta| delta.add("n", 1));
        let first = service.write_state(requested(&scope, "r1", change())).await.unwrap();
        assert!(first.known.is_none());
        let before = service.store().scope_changes(&scope, ChangeWindow::newest(10)).await.unwrap();
        for _ in 0..2 {
            let again = service.write_state(requested(&scope, "r1", change())).await.unwrap();
            assert_eq!((again.version, &again.state), (first.version, &first.state));
            assert!(again.known.is_some());
        }
        assert_eq!(service.store().scope_changes(&scope, ChangeWindow::newest(10)).await.unwrap(), before);
        assert_eq!(read(&service, &scope).await.version, 1);
        service.write_state(requested(&scope, "r2", change())).await.unwrap();
        assert_eq!(json_of(&read(&service, &scope).await.state), json!({"n": 2}));
    }
}

const BIG: &str = "123456789012345678901234567890";

/// Changes of every kind, one after the other.
const LATER: [fn(&mut Delta); 15] = [
    |delta| delta.set("text", json!("changed")),
    |delta| delta.set("fresh", json!(1)),
    |delta| delta.remove("gone"),
    |delta| delta.add("n", 40),
    |delta| delta.add("float", 0.1),
    |delta| delta.append("list", [value("1"), value(BIG), value("[]")]),
    |delta| delta.union("set", [json!("a").into(), json!("c").into(), value(BIG)]),
    |delta| delta.operate("map", Operation::union_fields([("b", json!(3)), ("c", json!(4))])),
    |delta| delta.operate("map", Operation::union_fields([("c", value("5")), ("d", value(BIG))])),
    |delta| delta.append("new_list", [json!(1)]),
    |delta| delta.append("new_list", [json!(2)]),
    |delta| delta.remove("new_list"),
    |delta| delta.set("gone", json!("back")),
    |delta| delta.add("counter", 1),
    |delta| {
        delta.append("list", [json!(9)]);
        delta.union("list", [json!(9), json!(10)]);
        delta.remove("request");
        delta.set("n", json!("no number any more"));
    },
];

/// The same changes of keys with a prefix.
fn prefixed(prefix: &str, changes: &Delta) -> Delta {
    delta(|delta| {
        for (name, change) in changes.iter() {
            let key = format!("{prefix}{name}");
            match change {
                Change::Set(value) => delta.set(key, value.clone()),
                Change::Remove => delta.remove(key),
                Change::Operate(operations) => delta.operate(key, operations.clone()),
            }
        }
    })
}

/// The state is computed backwards over all later changes.
async fn a_request_sent_again_answers_with_the_state_as_of_then(service: SessionService) {
    let made = session(&service, "s", json!({
        "user:n": 1, "user:list": [1], "user:set": ["a"], "user:map": {"a": 1, "b": 2}, "user:gone": {"x": [null]},
        "user:text": "t", "user:float": 0.5,
    }))
    .await;
    let scope = user_scope();
    let change = || {
        delta(|delta| {
            delta.add("n", 1);
            delta.set("request", json!(true));
            delta.union("set", [json!("b")]);
        })
    };
    let first = service.write_state(requested(&scope, "r1", change())).await.unwrap();
    for (n, build) in LATER.iter().enumerate() {
        let later = delta(build);
        // By a request, and by an event of a session.
        match n % 2 {
            0 => drop(write(&service, &scope, later).await),
            _ => {
                let event = changing(|delta| *delta = prefixed("user:", &later));
                service.append_to(made.key(), event).await.unwrap();
            }
        }
        let again = service.write_state(requested(&scope, "r1", change())).await.unwrap();
        assert_eq!(again.version, first.version, "after {n}");
        assert!(same_state(&again.state, &first.state), "after {n}: {:?} and {:?}", again.state, first.state);
    }
    assert_eq!(read(&service, &scope).await.version, 2 + LATER.len() as u64);
}

async fn a_request_sent_again_is_answered_whatever_is_expected(service: SessionService) {
    let scope = app_scope();
    let request = || {
        let change = delta(|delta| delta.operate("stock", Operation::add(-1).at_least(0)));
        let guards =
            sessile_session::Guards::new(sessile_session::OnOverwrite::Refuse).with_read("stock", json!(1));
        StateWrite { expect: Some(1), guards, ..requested(&scope, "r1", change) }
    };
    write(&service, &scope, json!({"stock": 1})).await;
    let first = service.write_state(request()).await.unwrap();
    assert_eq!((first.version, json_of(&first.state)), (2, json!({"stock": 0})));
    let again = service.write_state(request()).await.unwrap();
    assert_eq!((again.version, json_of(&again.state)), (2, json!({"stock": 0})));
    let limited = service.clone().with_max_scope_bytes(1);
    assert_eq!(limited.write_state(request()).await.unwrap().version, 2);
}

async fn a_request_sent_by_many_at_once_is_made_once(service: SessionService) {
    let written = at_once(16, |n| {
        let service = if n % 2 == 0 { service.clone() } else { SessionService::over(service.store()) };
        let write = requested(&user_scope(), "r1", delta(|delta| delta.append("list", [json!("once")])));
        async move { service.write_state(write).await.unwrap() }
    })
    .await;
    assert!(written.iter().all(|written| written.version == 1));
    assert!(written.iter().all(|written| json_of(&written.state) == json!({"list": ["once"]})));
    assert_eq!(written.iter().filter(|written| written.known.is_none()).count(), 1);
    assert_eq!(read(&service, &user_scope()).await.version, 1);
}

async fn another_change_under_the_request_is_a_conflict(service: SessionService) {
    for scope in scopes() {
        let change = || delta(|delta| delta.add("n", 1));
        service.write_state(requested(&scope, "r1", change())).await.unwrap();
        let before = read(&service, &scope).await;
        for other in [
            delta(|delta| delta.add("n", 5)),
            delta(|delta| delta.add("m", 1)),
            delta(|delta| delta.remove("n")),
            Delta::from(json!({"n": 1})),
            delta(|delta| {
                delta.add("n", 1);
                delta.set("m", json!(1));
            }),
        ] {
            let refused = service.write_state(requested(&scope, "r1", other)).await.unwrap_err();
            let text = refused.to_string();
            assert!(text.contains("r1") && text.contains(&scope.to_string()), "{text}");
            assert!(matches!(refused, SessionError::RequestConflict { .. }));
        }
        assert_eq!(read(&service, &scope).await, before);
        let same = delta(|delta| delta.add("n", 1.0));
        assert_eq!(service.write_state(requested(&scope, "r1", same)).await.unwrap().version, 1, "1 is 1.0");
    }
    let blank = service.write_state(requested(&app_scope(), " ", json!({"n": 1}))).await;
    assert!(matches!(blank, Err(SessionError::InvalidId(_))));
}

async fn requests_of_different_scopes_are_different(service: SessionService) {
    let bob = ScopeKey::User("shop".to_owned(), "bob".to_owned());
    let other = ScopeKey::User("game".to_owned(), "ada".to_owned());
    for scope in [user_scope(), app_scope(), bob, other, ScopeKey::App("game".to_owned())] {
        let write = requested(&scope, "r1", json!({"who": scope.to_string()}));
        let written = service.write_state(write).await.unwrap();
        assert_eq!((written.version, json_of(&written.state)), (1, json!({"who": scope.to_string()})));
    }
}

async fn the_history_tells_who_changed_what(service: SessionService) {
    let state = delta(|delta| {
        delta.set("own", json!(1));
        delta.add("user:a", 1);
        delta.set("app:a", json!(1));
    });
    let new = CreateSession::new("shop", "ada").with_id("s").with_state(state);
    let made = service.create(new).await.unwrap();
    let event = changing(|delta| {
        delta.add("user:a", 1);
        delta.append("user:list", [json!("x")]);
        delta.set("own", json!(2));
    });
    service.append_to(made.key(), named("e1", event.with_timestamp(77.5))).await.unwrap();
    let write = StateWrite {
        principal: Some("admin".to_owned()),
        ..requested(&user_scope(), "r1", delta(|delta| delta.remove("a")))
    };
    service.write_state(write).await.unwrap();
    service.write_user_state("shop", "ada", json!({"b": 1})).await.unwrap();
    let changes = service.store().scope_changes(&user_scope(), ChangeWindow::newest(10)).await.unwrap();
    let [anonymous, request, event, creation] = &changes[..] else { panic!("{changes:?}") };

    let by = |event: &str| ChangedBy::Event {
        user: "ada".into(),
        session: "s".into(),
        event: event.into(),
        author: (!event.is_empty()).then(|| "agent".into()),
    };
    assert_eq!((creation.version, &creation.by), (1, &by("")));
    let expected = delta(|delta| delta.add("a", 1));
    assert_eq!(creation.change, expected, "the intent, names without prefix, of this scope only");
    assert_eq!((event.version, &event.by, event.time), (2, &by("e1"), 77.5));
    let intent = delta(|delta| {
        delta.add("a", 1);
        delta.append("list", [json!("x")]);
    });
    assert_eq!(event.change, intent, "the intent, not the result");
    let expected = ChangedBy::Request { request: "r1".to_owned(), principal: Some("admin".to_owned()) };
    assert_eq!((request.version, &request.by), (3, &expected));
    assert_eq!(request.change, delta(|delta| delta.remove("a")));
    let ChangedBy::Request { request: id, principal: None } = &anonymous.by else { panic!("{anonymous:?}") };
    assert!(!id.is_empty());
    assert!(anonymous.time > 1.6e9);
    let of_app = service.store().scope_changes(&app_scope(), ChangeWindow::newest(10)).await.unwrap();
    assert_eq!(of_app.iter().map(|change| &change.by).collect::<Vec<_>>(), [&by("")]);
}

async fn the_history_is_read_newest_first(service: SessionService) {
    for n in 1..=7 {
        write(&service, &app_scope(), json!({"n": n})).await;
    }
    let versions = async |after: Version, limit: usize| {
        let changes = service
            .store()
            .scope_changes(&app_scope(), ChangeWindow { after, ..ChangeWindow::newest(limit) })
            .await
            .unwrap();
        changes.iter().map(|change| change.version).collect::<Vec<_>>()
    };
    assert_eq!(versions(0, 100).await, [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(versions(0, 3).await, [7, 6, 5]);
    assert_eq!(versions(4, 100).await, [7, 6, 5]);
    assert_eq!(versions(4, 2).await, [7, 6]);
    assert_eq!(versions(7, 100).await, [0; 0]);
    assert_eq!(versions(0, 0).await, [0; 0]);
    assert_eq!(service.store().scope_changes(&user_scope(), ChangeWindow::newest(10)).await.unwrap(), []);
}

/// A generator of numbers that look random and are the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// A change of one of a few keys that may fail on what is stored.
    fn change(&mut self, delta: &mut Delta, prefix: &str) {
        let key = format!("{prefix}{}", ["a", "b", "c", "d.e", "f\"g"][self.below(5) as usize]);
        let item = [json!(1), json!(1.0), json!("x"), json!({"a": 1}), json!([2.5]), json!(null)];
        let item = item[self.below(6) as usize].clone();
        let big = value("[123456789012345678901234567890, 0.1]");
        match self.below(9) {
            0 => delta.set(key, item),
            1 => delta.set(key, json!({"a": 1, "b": [1]})),
            2 => delta.set(key, json!(["x", 1])),
            3 => delta.remove(key),
            4 => delta.add(key, self.below(100)),
            5 => delta.add(key, self.below(100) as f64 / 8.0),
            6 => delta.append(key, [item.into(), big]),
            7 => delta.union(key, [item.into(), json!(2).into(), big]),
            _ => delta.operate(key, Operation::union_fields([("a", item), ("z", json!(self.below(3)))])),
        }
    }
}

async fn undoing_the_history_gives_back_every_state(service: SessionService) {
    let made = session(&service, "s", empty()).await;
    for (scope, prefix, seed) in [(user_scope(), "user:", 0x5eed), (app_scope(), "app:", 0xfeed)] {
        let mut chance = Chance(seed);
        let mut seen: Vec<StateMap> = vec![StateMap::new()];
        while seen.len() <= 50 {
            let keys = 1 + chance.below(3);
            let mut changed = Delta::new();
            let by = chance.below(3);
            let prefix = if by == 0 { "" } else { prefix };
            for _ in 0..keys {
                let mut one = Delta::new();
                chance.change(&mut one, prefix);
                // One that cannot follow what is there already in this delta is left out.
                drop(changed.merge(&one));
            }
            let made = match by {
                0 => service.write_state(StateWrite::new(scope.clone(), changed)).await.map(drop),
                1 => {
                    let event = changing(|delta| *delta = changed);
                    service.append_to(made.key(), event).await.map(drop)
                }
                _ => service.create(CreateSession::new("shop", "ada").with_state(changed)).await.map(drop),
            };
            let now = service.store().scope_state(&scope).await.unwrap();
            match made {
                Ok(()) => seen.push((*now.state).clone()),
                Err(SessionError::Operation { .. } | SessionError::InvalidState { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            assert_eq!(now.version, seen.len() as u64 - 1);
            assert!(same_state(&now.state, &seen[seen.len() - 1]), "a refusal changed something");
        }
        let mut state = seen[seen.len() - 1].clone();
        let changes = service.store().scope_changes(&scope, ChangeWindow::newest(1000)).await.unwrap();
        assert_eq!(changes.len(), 50);
        for change in &changes {
            let expected = &seen[change.version as usize];
            assert!(same_state(&state, expected), "version {}: {state:?} and {expected:?}", change.version);
            change.undo(&mut state).unwrap();
        }
        assert!(state.is_empty(), "{state:?}");
    }
}

async fn scopes_have_histories_of_their_own(service: SessionService) {
    let ada = session(&service, "s", empty()).await;
    let bob = create(&service, "shop", "bob", "s", empty()).await;
    let game = create(&service, "game", "ada", "s", empty()).await;
    for made in [&ada, &bob, &game] {
        service.append_to(made.key(), setting(json!({"user:who": made.key().to_string()}))).await.unwrap();
    }
    for made in [&ada, &bob, &game] {
        let changes = service
            .store()
            .scope_changes(&ScopeKey::user_of(made.key()), ChangeWindow::newest(10))
            .await
            .unwrap();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].change, Delta::from(json!({"who": made.key().to_string()})));
    }
    assert_eq!(service.store().scope_changes(&app_scope(), ChangeWindow::newest(10)).await.unwrap(), []);
}

/// Commits that are written as a group have separate entries in the history.
async fn the_history_of_parallel_writers_is_complete(service: SessionService) {
    for n in 0..8 {
        session(&service, &format!("s{n}"), empty()).await;
    }
    at_once(64, |n| {
        let service = service.clone();
        async move {
            let change = |prefix: &str| {
                let name = format!("{prefix}list");
                delta(|delta| delta.append(name, [json!(n)]))
            };
            match n % 2 {
                0 => {
                    let event = named(&format!("e{n}"), changing(|delta| *delta = change("user:")));
                    service.append_to(&key(&format!("s{}", n % 8)), event).await.map(drop).unwrap();
                }
                _ => drop(write(&service, &user_scope(), change("")).await),
            }
        }
    })
    .await;
    let changes = service.store().scope_changes(&user_scope(), ChangeWindow::newest(1000)).await.unwrap();
    assert_eq!(
        changes.iter().map(|change| change.version).collect::<Vec<_>>(),
        (1..=64).rev().collect::<Vec<_>>()
    );
    let mut state = (*read(&service, &user_scope()).await.state).clone();
    for change in &changes {
        let list = state["list"].as_array().unwrap();
        assert_eq!(list.len() as u64, change.version);
        let added = list.last().unwrap().as_u64().unwrap();
        match &change.by {
            ChangedBy::Event { event, .. } => assert_eq!(*event, format!("e{added}")),
            ChangedBy::Request { .. } => assert_eq!(added % 2, 1),
            ChangedBy::External { .. } => panic!("{change:?}"),
        }
        change.undo(&mut state).unwrap();
    }
    assert!(state.is_empty());
}
