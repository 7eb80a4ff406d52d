//! Operations on state: computed from what is stored when they are committed, over every route that
//! changes state.

use serde_json::{Value, json};
use sessile_server::{Apps, Limits, Server};
use sessile_session::{MemoryStore, SessionService};

use crate::apps::client;
use crate::client::{Answer, Client};
use crate::runs::says;

const SESSIONS: &str = "/apps/echo/users/ada/sessions";
const S: &str = "/apps/echo/users/ada/sessions/s";
const EVENTS: &str = "/apps/echo/users/ada/sessions/s/events";
const USER: &str = "/apps/echo/users/ada/state";
const APP: &str = "/apps/echo/state";

/// A route that takes changes of state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Session,
    User,
    App,
    Events,
    Create,
    Run,
    RunSse,
}

impl Route {
    pub(crate) const ALL: [Self; 7] =
        [Self::Session, Self::User, Self::App, Self::Events, Self::Create, Self::Run, Self::RunSse];

    /// Sends the fields of a change in their place.
    pub(crate) async fn send(self, api: &Client, change: Value) -> Answer {
        match self {
            Self::Session => api.patch(S, change).await,
            Self::User => api.patch(USER, change).await,
            Self::App => api.patch(APP, change).await,
            Self::Events => api.post(EVENTS, json!({"author": "x", "actions": change})).await,
            Self::Create => {
                let mut body = change;
                let fields = body.as_object_mut().unwrap();
                for name in ["stateDelta", "state_delta"] {
                    if let Some(state) = fields.remove(name) {
                        fields.insert("state".to_owned(), state);
                    }
                }
                api.post(SESSIONS, body).await
            }
            Self::Run | Self::RunSse => {
                let mut body = says("hello");
                let fields = change.as_object().unwrap().clone();
                body.as_object_mut().unwrap().extend(fields);
                api.post(if self == Self::Run { "/run" } else { "/run_sse" }, body).await
            }
        }
    }

    /// The place of a field in a body.
    fn loc(self, path: &[&str]) -> Value {
        let inside: &[&str] = if self == Self::Events { &["body", "actions"] } else { &["body"] };
        json!([inside, path].concat())
    }
}

async fn with_session() -> Client {
    let api = client();
    api.post(S, json!({})).await.ok();
    api
}

/// Everything that is stored, to see that nothing was changed.
pub(crate) async fn stored(api: &Client) -> Value {
    let sessions = api.get(SESSIONS).await.ok();
    json!([sessions, api.get(S).await.ok(), api.get(USER).await.ok(), api.get(APP).await.ok()])
}

#[tokio::test]
async fn operations_in_a_session_reach_every_scope() {
    let api = with_session().await;
    let body = json!({"stateOps": {
        "n": {"add": 2}, "user:n": {"add": 0.5}, "app:n": [{"add": 1}, {"add": 1, "max": 5}],
        "log": {"append": ["a", {"b": 1}]}, "user:tags": {"union": ["x", "y", "x"]},
        "app:address": {"union": {"city": "Paris"}},
    }, "stateDelta": {"plain": null, "temp:t": 1}});
    let first = api.patch(S, body.clone()).await.ok();
    let results = json!({
        "n": 2, "user:n": 0.5, "app:n": 2, "log": ["a", {"b": 1}], "user:tags": ["x", "y"],
        "app:address": {"city": "Paris"}, "plain": null,
    });
    assert_eq!(first["state"], results);
    let event = &first["events"][0];
    assert_eq!(event["actions"]["stateDelta"], results);
    assert!(event["actions"].get("stateOps").is_none(), "{event}");
    assert_eq!(event["customMetadata"]["sessile:ops"]["n"], json!({"add": 2}));
    let second = json!({"state_ops": {
        "n": {"add": -3}, "user:n": {"add": 1}, "app:n": {"add": 1},
        "log": {"append": ["a"]}, "user:tags": {"union": ["y", 1, 1.0, "z"]},
        "app:address": {"union": {"zip": "75001", "city": "Lyon"}},
    }});
    let second = api.patch(S, second).await.ok();
    assert_eq!(
        second["state"],
        json!({
            "n": -1, "user:n": 1.5, "app:n": 3, "log": ["a", {"b": 1}, "a"], "user:tags": ["x", "y", 1, "z"],
            "app:address": {"city": "Lyon", "zip": "75001"}, "plain": null,
        })
    );
    assert_eq!(api.get(S).await.ok(), second);
    assert_eq!(api.get(USER).await.ok(), json!({"n": 1.5, "tags": ["x", "y", 1, "z"]}));
}

#[tokio::test]
async fn operations_change_shared_state_without_a_session() {
    let api = with_session().await;
    for place in [USER, APP] {
        let ops = json!({"points": {"add": 3}, "log": {"append": [1]}, "tags": {"union": ["a"]}});
        let expected = json!({"points": 3, "log": [1], "tags": ["a"], "name": "x"});
        let body = json!({"stateOps": ops, "stateDelta": {"name": "x"}});
        assert_eq!(api.patch(place, body).await.ok(), expected);
        let body = json!({"stateOps": ops, "stateRemove": ["name"]});
        let expected = json!({"points": 6, "log": [1, 1], "tags": ["a"]});
        assert_eq!(api.patch(place, body).await.ok(), expected);
        assert_eq!(api.get(place).await.ok(), expected);
    }
}

#[tokio::test]
async fn an_appended_event_is_answered_with_what_its_operations_came_to() {
    let api = with_session().await;
    api.patch(S, json!({"stateDelta": {"n": 1, "gone": 1, "user:gone": 2}})).await.ok();
    let event = json!({"id": "e1", "author": "x", "actions": {
        "stateDelta": {"a": null}, "stateRemove": ["gone", "user:gone"], "stateOps": {"n": {"add": 1}, "user:n": {"add": 1}},
    }});
    let first = api.post(EVENTS, event.clone()).await;
    assert_eq!(first.version(), 2);
    let (etag, first) = (first.etag(), first.ok());
    let results = json!({"a": null, "gone": null, "user:gone": null, "n": 2, "user:n": 1});
    assert_eq!(first["actions"]["stateDelta"], results);
    let fields = first["actions"].as_object().unwrap();
    for name in ["stateOps", "stateRemove", "stateRead", "stateAbsent", "onOverwrite"] {
        assert!(!fields.contains_key(name), "{first}");
    }
    assert_eq!(first["customMetadata"]["sessile:ops"], json!({"n": {"add": 1}, "user:n": {"add": 1}}));
    assert_eq!(first["customMetadata"]["sessile:removed"], json!(["gone", "user:gone"]));
    assert_eq!(api.get(S).await.ok()["state"], json!({"a": null, "n": 2, "user:n": 1}));
    let again = api.post(EVENTS, event.clone()).await;
    assert_eq!((again.etag(), again.ok()), (etag, first));
    for other in [json!({"n": {"add": 5}, "user:n": {"add": 1}}), json!({"n": {"add": 1}})] {
        let mut event = event.clone();
        event["actions"]["stateOps"] = other;
        api.post(EVENTS, event).await.fails(409);
    }
    let mut snake = event;
    snake["actions"] = json!({"state_delta": {"a": null}, "state_remove": ["user:gone", "gone"],
                              "state_ops": {"user:n": {"add": 1}, "n": {"add": 1}}});
    assert_eq!(api.post(EVENTS, snake).await.version(), 2);
    assert_eq!(api.get(S).await.ok()["state"], json!({"a": null, "n": 2, "user:n": 1}));
}

#[tokio::test]
async fn a_session_is_created_with_operations_on_what_is_shared() {
    let api = with_session().await;
    for n in 1..=3 {
        let body = json!({"state": {"k": 1}, "stateOps": {
            "user:sessions": {"add": 1}, "app:log": {"append": [n]}, "own": [{"add": 1}, {"add": n}]}});
        let created = api.post(SESSIONS, body).await.ok();
        let log: Vec<u64> = (1..=n).collect();
        assert_eq!(created["state"], json!({"k": 1, "user:sessions": n, "app:log": log, "own": 1 + n}));
        assert_eq!(created["events"], json!([]));
    }
    let before = stored(&api).await;
    let detail = api.post(SESSIONS, json!({"stateOps": {"app:log": {"add": 1}}})).await.fails(409);
    assert!(detail.as_str().unwrap().contains("\"app:log\" of application echo"), "{detail}");
    api.post(SESSIONS, json!({"stateOps": {"own": {"add": -1, "min": 0}}})).await.fails(422);
    assert_eq!(stored(&api).await, before);
}

#[tokio::test]
async fn a_run_commits_its_operations_with_the_message() {
    let api = with_session().await;
    for (n, route) in [Route::Run, Route::RunSse].into_iter().enumerate() {
        let body =
            json!({"stateDelta": {"gone": 1}, "stateOps": {"n": {"add": 2}, "user:log": {"append": ["x"]}}});
        assert_eq!(route.send(&api, body).await.status, 200);
        let session = api.get(S).await.ok();
        assert_eq!(session["state"]["n"], 2 * (n + 1), "{route:?}");
        assert_eq!(session["state"]["user:log"], json!(vec!["x"; n + 1]));
        assert_eq!(session["events"][2 * n]["actions"]["stateDelta"]["n"], 2 * (n + 1));
        assert_eq!(session["events"][2 * n]["customMetadata"]["sessile:ops"]["n"], json!({"add": 2}));
    }
    assert_eq!(Route::Run.send(&api, json!({"stateRemove": ["gone"]})).await.status, 200);
    assert!(api.get(S).await.ok()["state"].get("gone").is_none());
    let before = stored(&api).await;
    for route in [Route::Run, Route::RunSse] {
        let detail = route.send(&api, json!({"stateOps": {"n": {"add": -9, "min": 0}}})).await.fails(409);
        assert!(detail.as_str().unwrap().contains("below the minimum 0"), "{detail}");
    }
    assert_eq!(stored(&api).await, before, "not even the message");
}

#[tokio::test]
async fn many_at_once_lose_nothing() {
    let api = with_session().await;
    let body = json!({"stateOps": {"n": {"add": 1}, "user:n": {"add": 1}, "app:n": {"add": 1}}});
    let shared = json!({"stateOps": {"n": {"add": 1}}});
    let sent = (0..200).map(async |n| match n % 4 {
        0 => api.patch(S, body.clone()).await.ok(),
        1 => api.post(EVENTS, json!({"author": "x", "actions": body.clone()})).await.ok(),
        2 => api.patch(USER, shared.clone()).await.ok(),
        _ => api.patch(APP, shared.clone()).await.ok(),
    });
    futures_util::future::join_all(sent).await;
    assert_eq!(api.get(S).await.ok()["state"], json!({"n": 100, "user:n": 150, "app:n": 150}));
}

#[tokio::test]
async fn a_stock_is_never_oversold() {
    let api = with_session().await;
    api.patch(APP, json!({"stateDelta": {"stock": 10}})).await.ok();
    let take = json!({"stateOps": {"app:stock": {"add": -1, "min": 0}}});
    let sent = (0..25).map(|_| api.patch(S, take.clone()));
    let answers = futures_util::future::join_all(sent).await;
    let sold = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!((sold, refused), (10, 15));
    assert_eq!(api.get(APP).await.ok(), json!({"stock": 0}));
    assert_eq!(api.get(S).await.version(), 10);
}

#[tokio::test]
async fn what_cannot_be_applied_is_told_with_key_owner_and_what_is_stored() {
    let api = with_session().await;
    let big = "18446744073709551615";
    let body = format!(
        r#"{{"stateDelta": {{"n": 3, "text": "hush", "list": [1], "object": {{}}, "null": null, "big": {big},
            "huge": 123456789012345678901234567890, "user:n": 3, "app:n": 3}}}}"#
    );
    api.send(axum::http::Method::PATCH, S, Some(body)).await.ok();
    let before = stored(&api).await;
    let refused = [
        (
            json!({"n": {"add": -4, "min": 0}}),
            "cannot change the state key \"n\" of session echo/ada/s, which holds 3: the sum would be -1, which is below \
             the minimum 0; read the value and change it by less; nothing was stored",
        ),
        (
            json!({"user:n": {"add": 0.5, "max": 3}}),
            "cannot change the state key \"user:n\" of user ada of application echo, which holds 3: the sum would be 3.5, \
             which is above the maximum 3; read the value and change it by less; nothing was stored",
        ),
        (
            json!({"new": {"add": 1, "min": 2}}),
            "cannot change the state key \"new\" of session echo/ada/s, which is absent: the sum would be 1, which is \
             below the minimum 2; read the value and change it by less; nothing was stored",
        ),
        (
            json!({"big": {"add": 1}}),
            "cannot change the state key \"big\" of session echo/ada/s, which holds 18446744073709551615: the sum is beyond \
             what 64-bit integers can hold; replace the whole value; nothing was stored",
        ),
        (
            json!({"huge": {"add": 1}}),
            "cannot change the state key \"huge\" of session echo/ada/s, which holds 123456789012345678901234567890: the sum \
             is beyond what 64-bit integers can hold; replace the whole value; nothing was stored",
        ),
        (
            json!({"text": {"add": 1}}),
            "cannot change the state key \"text\" of session echo/ada/s: it holds a string, and `add` needs a number; set it \
             to a number first, or replace the whole value; nothing was stored",
        ),
        (
            json!({"object": {"append": [1]}}),
            "cannot change the state key \"object\" of session echo/ada/s: it holds an object, and `append` needs a list; set \
             it to a list first, or replace the whole value; nothing was stored",
        ),
        (
            json!({"null": {"union": ["a"]}}),
            "cannot change the state key \"null\" of session echo/ada/s: it holds null, and `union` needs a list; set it to a \
             list first, or replace the whole value; nothing was stored",
        ),
        (
            json!({"list": {"union": {"a": 1}}}),
            "cannot change the state key \"list\" of session echo/ada/s: it holds an array, and `union` needs an object; set \
             it to an object first, or replace the whole value; nothing was stored",
        ),
        (
            json!({"app:n": [{"add": 1}, {"append": [1]}]}),
            "cannot change the state key \"app:n\" of application echo: it holds a number, and `append` needs a list; set it \
             to a list first, or replace the whole value; nothing was stored",
        ),
    ];
    for (ops, told) in refused {
        // Nothing of the change is stored, in no scope.
        let change = json!({"stateOps": ops, "stateDelta": {"other": 1, "user:other": 1, "app:other": 1}});
        for route in [Route::Session, Route::Events] {
            assert_eq!(route.send(&api, change.clone()).await.fails(409), told, "{route:?}");
        }
        assert_eq!(stored(&api).await, before, "{ops}");
    }
    for (route, owner) in [(Route::User, "user ada of application echo"), (Route::App, "application echo")] {
        let change = json!({"stateOps": {"n": {"add": -4, "min": 0}}, "stateDelta": {"other": 1}});
        let detail = route.send(&api, change).await.fails(409);
        assert!(detail.as_str().unwrap().contains(&format!("of {owner}, which holds 3")), "{detail}");
    }
    assert_eq!(stored(&api).await, before);
}

#[tokio::test]
async fn an_invalid_operation_is_refused_with_its_path() {
    let api = with_session().await;
    let before = stored(&api).await;
    let shapes = "an operation is {\"add\": number, \"min\"?: number, \"max\"?: number}, {\"append\": [items]}, \
                  {\"union\": [items]} or {\"union\": {fields}}";
    let wrong = [
        (json!({"multiply": 2}), format!("Value error, unknown operation [\"multiply\"]; {shapes}")),
        (json!({}), format!("Value error, unknown operation []; {shapes}")),
        (json!(5), format!("Value error, a number is not an operation; {shapes}")),
        (json!([]), format!("Value error, the list is empty; {shapes}")),
        (json!([{"add": 1}, 5]), format!("Value error, a number is not an operation; {shapes}")),
        (json!({"add": "1"}), "Value error, `add` must be a number, not a string".to_owned()),
        (json!({"add": 1, "min": null}), "Value error, `min` must be a number, not null".to_owned()),
        (json!({"add": 1, "append": [1]}), format!("Value error, `add` has no field \"append\"; {shapes}")),
        (json!({"append": [1], "min": 1}), format!("Value error, `append` has no field \"min\"; {shapes}")),
        (json!({"append": "x"}), "Value error, `append` takes a list, not a string".to_owned()),
        (json!({"union": 1}), "Value error, `union` takes a list or an object, not a number".to_owned()),
        (json!({"Add": 1}), format!("Value error, unknown operation [\"Add\"]; {shapes}")),
    ];
    for route in Route::ALL {
        for (operation, msg) in &wrong {
            let change = json!({"stateOps": {"good": {"add": 1}, "k": operation}});
            let detail = route.send(&api, change).await.fails(422);
            let problem = json!([{"type": "value_error", "loc": route.loc(&["stateOps", "k"]), "msg": msg, "input": operation}]);
            assert_eq!(detail, problem, "{route:?}");
        }
        let detail = route.send(&api, json!({"stateOps": [1]})).await.fails(422);
        assert_eq!((&detail[0]["type"], &detail[0]["loc"]), (&json!("dict_type"), &route.loc(&["stateOps"])));
        let twice = json!({"stateOps": {"k": {"add": 1}}, "state_ops": {"j": {"add": 1}}});
        assert_eq!(route.send(&api, twice).await.fails(422)[0]["type"], "given_twice", "{route:?}");
    }
    let large = r#"{"stateOps": {"k": {"add": 123456789012345678901234567890}}}"#;
    let detail = api.send(axum::http::Method::PATCH, S, Some(large.to_owned())).await.fails(422);
    assert_eq!(detail[0]["msg"], "Value error, `add` is beyond 64-bit integers");
    assert_eq!(stored(&api).await, before);
}

#[tokio::test]
async fn a_key_is_changed_in_one_way() {
    let api = with_session().await;
    let before = stored(&api).await;
    let text = |how: &str| json!(format!("The key \"k\" is both {how}; choose one"));
    for route in Route::ALL {
        let change = json!({"stateDelta": {"k": 1}, "stateOps": {"k": {"add": 1}}});
        assert_eq!(route.send(&api, change).await.fails(422), text("set and operated on"), "{route:?}");
        if route == Route::Create {
            continue;
        }
        let change = json!({"stateDelta": {"k": 1, "j": 2}, "stateRemove": ["x", "k"]});
        assert_eq!(route.send(&api, change).await.fails(422), text("set and removed"), "{route:?}");
        let change = json!({"stateRemove": ["k"], "stateOps": {"k": {"add": 1}}});
        assert_eq!(route.send(&api, change).await.fails(422), text("removed and operated on"), "{route:?}");
    }
    assert_eq!(stored(&api).await, before);
    let detail = Route::Create.send(&api, json!({"stateRemove": ["user:k"]})).await.fails(422);
    assert_eq!(detail[0]["msg"], "A new session has nothing to remove; remove keys with PATCH");
    assert_eq!(stored(&api).await, before);
}

#[tokio::test]
async fn every_key_of_a_change_has_a_limit() {
    let mut limits = Limits::default();
    limits.key_length = 20;
    let api = Client::new(crate::apps::server(crate::apps::sessions()).with_limits(limits));
    api.post(S, json!({})).await.ok();
    let before = stored(&api).await;
    let (long, fits) = ("ü".repeat(21), "ü".repeat(20));
    for route in Route::ALL {
        for (field, value) in [
            ("stateDelta", json!({long.clone(): 1})),
            ("stateOps", json!({long.clone(): {"add": 1}})),
            ("stateRemove", json!(["short", long])),
            ("stateRead", json!({long.clone(): 1})),
            ("stateAbsent", json!([long])),
        ] {
            let takes = match route {
                Route::Create => ["stateDelta", "stateOps"].contains(&field),
                Route::Run | Route::RunSse => !["stateRead", "stateAbsent"].contains(&field),
                _ => true,
            };
            if !takes {
                continue;
            }
            let mut change = json!({"stateDelta": {}});
            change[field] = value;
            let detail = route.send(&api, change).await.fails(422);
            assert_eq!(detail[0]["type"], "string_too_long", "{route:?} {field}");
            assert_eq!(detail[0]["msg"], "State keys have at most 20 characters");
        }
    }
    assert_eq!(stored(&api).await, before);
    Route::Session.send(&api, json!({"stateOps": {fits: {"add": 1}}})).await.ok();
    let many: Vec<String> = (0..1000).map(|n| format!("{long}{n}")).collect();
    let detail = Route::Session.send(&api, json!({"stateRemove": many})).await.fails(422);
    assert_eq!(detail.as_array().unwrap().len(), 100, "an answer is not many times the size of its request");
}

#[tokio::test]
async fn what_operations_add_up_to_has_a_limit() {
    let mut limits = Limits::default();
    limits.state = 100;
    let api =
        Client::new(Server::new(SessionService::new(MemoryStore::new()), Apps::new()).with_limits(limits));
    api.post(S, json!({})).await.ok();
    let long = "x".repeat(40);
    for (route, key) in [
        (Route::Session, "log"),
        (Route::Session, "user:log"),
        (Route::Session, "app:log"),
        (Route::Events, "events"),
        (Route::User, "log2"),
    ] {
        let grow = json!({"stateOps": {key: {"append": [long]}}});
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(route.send(&api, grow.clone()).await);
        }
        let detail = answers.pop().unwrap().fails(413);
        assert!(detail.as_str().unwrap().contains("and at most 100 are kept"), "{detail}");
        // What does not let it grow is done, and room is made.
        route.send(&api, json!({"stateDelta": {key: []}})).await.ok();
        route.send(&api, grow).await.ok();
        route.send(&api, json!({"stateRemove": [key]})).await.ok();
    }
}

#[tokio::test]
async fn notes_that_only_sessile_writes_are_refused() {
    let api = with_session().await;
    let before = stored(&api).await;
    for name in ["sessile:ops", "sessile:overwrote", "sessile:removed", "sessile:anything"] {
        let notes = json!({"mine": 1, name: ["k"]});
        let event = json!({"author": "x", "customMetadata": notes, "actions": {"stateDelta": {"k": null}}});
        let detail = api.post(EVENTS, event.clone()).await.fails(422);
        assert_eq!(detail[0]["loc"], json!(["body", "customMetadata", name]));
        let msg = "Only Sessile writes notes whose names begin with sessile:; leave it out (an event removes keys \
                   with actions.stateRemove)";
        assert_eq!(detail[0]["msg"], msg);
        let said = json!({"author": "x", "custom_metadata": notes});
        let detail = api.post(SESSIONS, json!({"events": [said]})).await.fails(422);
        assert_eq!(detail[0]["loc"], json!(["body", "events", 0, "custom_metadata", name]));
        let detail = Route::Run.send(&api, json!({"customMetadata": notes})).await.fails(422);
        assert_eq!(detail[0]["loc"], json!(["body", "customMetadata", name]));
    }
    assert_eq!(stored(&api).await, before);
    let event = json!({"author": "x", "customMetadata": {"mine": 1, "Sessile:x": 2, "a:sessile:": 3}});
    api.post(EVENTS, event).await.ok();
}
