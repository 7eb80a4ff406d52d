//! Guards: a change that was computed from a value is refused, or tells it, if the key holds
//! something else by now.

use serde_json::{Value, json};

use crate::apps::{client, server, sessions};
use crate::client::Client;
use crate::state_ops::{Route, stored};

const S: &str = "/apps/echo/users/ada/sessions/s";
const USER: &str = "/apps/echo/users/ada/state";
const APP: &str = "/apps/echo/state";

/// The routes whose changes can be guarded.
const GUARDED: [Route; 4] = [Route::Session, Route::User, Route::App, Route::Events];

/// A session and shared state with the same values under every kind of key.
async fn with_state() -> Client {
    let api = client();
    let state = json!({"n": 5, "null": null, "list": [1, {"a": 1.0}], "text": "x"});
    api.post(S, state.clone()).await.ok();
    for place in [USER, APP] {
        api.patch(place, json!({"stateDelta": state})).await.ok();
    }
    api
}

#[tokio::test]
async fn a_change_is_made_if_keys_hold_what_was_read() {
    for route in GUARDED {
        let api = with_state().await;
        let change = json!({
            "stateDelta": {"n": 6, "new": 1},
            "stateRead": {"n": 5.0, "null": null, "list": [1.0, {"a": 1}], "text": "x"},
            "stateAbsent": ["new", "other"],
        });
        route.send(&api, change).await.ok();
        let change = json!({
            "state_delta": {"n": 7}, "state_read": {"n": 6}, "state_absent": [], "on_overwrite": "refuse",
        });
        route.send(&api, change).await.ok();
        let read = |value: Value| {
            if value.get("state").is_some() { value["state"]["n"].clone() } else { value["n"].clone() }
        };
        let place = match route {
            Route::User => USER,
            Route::App => APP,
            _ => S,
        };
        assert_eq!(read(api.get(place).await.ok()), 7, "{route:?}");
    }
}

#[tokio::test]
async fn a_change_is_refused_with_the_current_values_and_nothing_is_stored() {
    for route in GUARDED {
        let api = with_state().await;
        let before = stored(&api).await;
        let refused = [
            (json!({"stateRead": {"n": 4}}), json!({"n": 5}), json!([]), "key \"n\" was"),
            (json!({"stateRead": {"n": null}}), json!({"n": 5}), json!([]), "key \"n\" was"),
            (json!({"stateRead": {"null": 1}}), json!({"null": null}), json!([]), "key \"null\" was"),
            (json!({"stateRead": {"none": null}}), json!({}), json!(["none"]), "key \"none\" was"),
            (json!({"stateAbsent": ["null"]}), json!({"null": null}), json!([]), "key \"null\" was"),
            (
                json!({"stateRead": {"n": "5", "text": "x", "none": 1}, "stateAbsent": ["list", "absent"]}),
                json!({"n": 5, "list": [1, {"a": 1.0}]}),
                json!(["none"]),
                "keys \"list\" and \"n\" and \"none\" were",
            ),
        ];
        for (guards, current, absent, named) in refused {
            for mode in [None, Some("refuse")] {
                let mut change = guards.clone();
                change["stateDelta"] = json!({"n": 9, "other": 1});
                change["stateOps"] = json!({"count": {"add": 1}});
                if let Some(mode) = mode {
                    change["onOverwrite"] = json!(mode);
                }
                let answer = route.send(&api, change).await;
                let body = answer.json();
                assert_eq!(answer.status, 409, "{body}");
                let detail = format!(
                    "the state {named} changed since it was read; read the current value, compute again, and retry"
                );
                assert_eq!(
                    body,
                    json!({"detail": detail, "current": current, "absent": absent}),
                    "{route:?}"
                );
            }
        }
        assert_eq!(stored(&api).await, before, "{route:?}");
    }
}

#[tokio::test]
async fn keys_of_all_scopes_are_compared_in_a_session() {
    let api = with_state().await;
    let holds =
        json!({"stateRead": {"n": 5, "user:n": 5, "app:n": 5}, "stateAbsent": ["x", "user:x", "app:x"]});
    let mut change = holds.clone();
    change["stateDelta"] = json!({"user:n": 6});
    api.patch(S, change.clone()).await.ok();
    let answer = api.patch(S, change).await;
    let current = answer.json()["current"].clone();
    answer.fails(409);
    assert_eq!(current, json!({"user:n": 6}));
    // A guard needs no change of its key, and a change needs none at all.
    api.patch(S, json!({"stateDelta": {}, "stateRead": {"app:n": 5}})).await.ok();
    api.patch(S, json!({"stateDelta": {}, "stateAbsent": ["app:n"]})).await.fails(409);
}

#[tokio::test]
async fn a_change_that_reports_is_made_and_its_event_tells() {
    let api = with_state().await;
    let change = json!({
        "stateDelta": {"n": 6, "user:text": "y"}, "stateOps": {"app:n": {"add": 1}},
        "stateRead": {"n": 4, "user:text": "x", "null": 1}, "stateAbsent": ["app:n", "list"], "onOverwrite": "report",
    });
    for route in [Route::Session, Route::Events] {
        let api = with_state().await;
        let answer = route.send(&api, change.clone()).await.ok();
        let event = if route == Route::Session { &answer["events"][0] } else { &answer };
        let overwrote = json!({
            "n": {"read": 4, "found": 5}, "null": {"read": 1, "found": null}, "app:n": {"found": 5},
            "list": {"found": [1, {"a": 1.0}]},
        });
        assert_eq!(event["customMetadata"]["sessile:overwrote"], overwrote);
        assert_eq!(event["actions"]["stateDelta"], json!({"n": 6, "user:text": "y", "app:n": 6}));
        assert!(event["actions"].get("stateRead").is_none() && event["actions"].get("onOverwrite").is_none());
        assert_eq!(api.get(S).await.ok()["state"]["n"], 6);
    }
    let absent = json!({"stateDelta": {"z": 1}, "stateRead": {"z": 0}, "onOverwrite": "report"});
    let told = &api.patch(S, absent).await.ok()["events"][0]["customMetadata"]["sessile:overwrote"];
    assert_eq!(*told, json!({"z": {"read": 0}}));
    let same = json!({"stateDelta": {"z": 2}, "stateRead": {"z": 1}, "onOverwrite": "report"});
    let event = &api.patch(S, same).await.ok()["events"][1];
    assert!(event.get("customMetadata").is_none(), "{event}");
}

#[tokio::test]
async fn a_read_value_is_told_apart_to_the_last_digit() {
    let api = with_state().await;
    let set = r#"{"stateDelta": {"big": 123456789012345678901234567890}}"#;
    let patch = async |body: &str| api.send(axum::http::Method::PATCH, S, Some(body.to_owned())).await;
    patch(set).await.ok();
    let other = r#"{"stateDelta": {}, "stateRead": {"big": 123456789012345678901234567891}}"#;
    let answer = patch(other).await;
    assert_eq!(answer.status, 409);
    assert!(answer.text.contains(r#""current":{"big":123456789012345678901234567890}"#), "{}", answer.text);
    patch(r#"{"stateDelta": {}, "stateRead": {"big": 123456789012345678901234567890}}"#).await.ok();
}

#[tokio::test]
async fn current_values_are_sent_without_the_secrets_of_credentials() {
    let api = with_state().await;
    let credential = json!({"authType": "oauth2", "oauth2": {"clientId": "me", "clientSecret": "hush"}});
    let change = json!({"stateDelta": {"c": credential, "user:c": credential}});
    api.patch(S, change).await.ok();
    let shown = json!({"authType": "oauth2", "oauth2": {"clientId": "me"}});
    for (place, change) in
        [(S, json!({"stateAbsent": ["c", "user:c"]})), (USER, json!({"stateRead": {"c": 1}}))]
    {
        let mut change = change;
        change["stateDelta"] = json!({});
        let answer = api.patch(place, change).await;
        assert!(!answer.text.contains("hush"), "{}", answer.text);
        assert_eq!(answer.json()["current"]["c"], shown);
        answer.fails(409);
    }
    let change = json!({"stateDelta": {"c": 1}, "stateAbsent": ["c"], "onOverwrite": "report"});
    let answer = api.patch(S, change).await;
    assert!(!answer.text.contains("hush"), "{}", answer.text);
    let events = answer.ok()["events"].clone();
    assert_eq!(events[1]["customMetadata"]["sessile:overwrote"]["c"]["found"], shown);
}

#[tokio::test]
async fn invalid_guards_are_refused() {
    let api = with_state().await;
    let before = stored(&api).await;
    for route in GUARDED {
        let send = async |guards: Value| {
            let mut change = guards;
            change["stateDelta"] = json!({"n": 1});
            route.send(&api, change).await.fails(422)
        };
        let both = send(json!({"stateRead": {"k": 1}, "stateAbsent": ["j", "k"]})).await;
        assert_eq!(both, "The key \"k\" is both in stateRead and in stateAbsent; choose one", "{route:?}");
        for (guards, kind) in [
            (json!({"stateRead": ["n"]}), "dict_type"),
            (json!({"stateAbsent": {"n": 1}}), "list_type"),
            (json!({"stateAbsent": [1]}), "string_type"),
            (json!({"onOverwrite": "ignore"}), "literal_error"),
            (json!({"onOverwrite": true}), "literal_error"),
            (json!({"stateRead": {}, "state_read": {}}), "given_twice"),
        ] {
            assert_eq!(send(guards.clone()).await[0]["type"], kind, "{route:?} {guards}");
        }
        let word = &send(json!({"onOverwrite": "Refuse"})).await[0];
        assert_eq!(word["msg"], "Input should be 'refuse' or 'report'");
        if [Route::Session, Route::Events].contains(&route) {
            for guards in [json!({"stateRead": {"temp:k": 1}}), json!({"stateAbsent": ["temp:k"]})] {
                let problem = &send(guards).await[0];
                assert_eq!(
                    problem["msg"],
                    "temp: keys are never stored, so there is nothing to compare with"
                );
                assert!(problem["loc"].to_string().contains("state"), "{problem}");
            }
            let problem = &send(json!({"stateAbsent": ["app:app:k"]})).await[0];
            assert_eq!(problem["msg"], "The key has the prefix app: twice; write it once");
        }
    }
    for (route, prefix) in [(Route::User, "user:"), (Route::App, "app:")] {
        let change = json!({"stateDelta": {"n": 1}, "stateRead": {format!("{prefix}n"): 5}});
        let detail = route.send(&api, change).await.fails(422);
        assert_eq!(detail[0]["msg"], format!("Keys are without their prefix {prefix} here"));
    }
    assert_eq!(stored(&api).await, before);
}

#[tokio::test]
async fn guards_are_refused_where_nothing_is_compared() {
    let api = with_state().await;
    let before = stored(&api).await;
    let told = "A new session has no state to compare with; use stateRead and stateAbsent with PATCH or with \
                an appended event";
    for (field, value) in
        [("stateRead", json!({"n": 5})), ("state_absent", json!(["x"])), ("onOverwrite", json!("report"))]
    {
        let detail = Route::Create.send(&api, json!({field: value})).await.fails(422);
        assert_eq!(detail[0]["msg"], told, "{field}");
    }
    assert_eq!(stored(&api).await, before);
}

#[tokio::test]
async fn a_run_begins_if_keys_hold_what_was_read() {
    let api = with_state().await;
    for (n, route) in [Route::Run, Route::RunSse].into_iter().enumerate() {
        let n = n + 5;
        let before = stored(&api).await;
        let stale = json!({"stateDelta": {"n": 1}, "stateRead": {"n": n - 1}, "stateAbsent": ["user:n"]});
        let detail = route.send(&api, stale.clone()).await.fails(409);
        assert!(detail.to_string().contains("changed since"), "{detail}");
        assert_eq!(stored(&api).await, before, "not even the message");

        let fresh = json!({"stateDelta": {"n": n + 1}, "stateRead": {"n": n}, "state_absent": ["none"]});
        assert_eq!(route.send(&api, fresh).await.status, 200);
        assert_eq!(api.get(S).await.ok()["state"]["n"], n + 1);
    }
    let mut stale = json!({"stateDelta": {"n": 9}, "stateRead": {"n": 1}});
    stale["onOverwrite"] = json!("report");
    assert_eq!(Route::Run.send(&api, stale).await.status, 200);
    let events = api.get(S).await.ok()["events"].clone();
    let message = events.as_array().unwrap().iter().rev().find(|event| event["author"] == "user").unwrap();
    assert_eq!(message["customMetadata"]["sessile:overwrote"], json!({"n": {"read": 1, "found": 7}}));
}

#[tokio::test]
async fn a_key_with_a_reducer_changes_by_the_difference_from_what_was_read() {
    let schema = sessile_state::StateSchema::new()
        .reducer("n", sessile_state::Reducer::Add)
        .reducer("user:n", sessile_state::Reducer::Add)
        .reducer("app:n", sessile_state::Reducer::Add);
    let api = Client::new(server(sessions().with_schema("echo", open_schema(schema))));
    api.post(S, json!({"n": 5, "user:n": 5, "app:n": 5})).await.ok();
    for route in GUARDED {
        // Both clients read 5 and say so; the second is not refused, and both count.
        let names = match route {
            Route::Session | Route::Events => ["n", "user:n", "app:n"].as_slice(),
            _ => &["n"],
        };
        for _ in 0..2 {
            let delta: Value = names.iter().map(|name| ((*name).to_owned(), json!(6))).collect();
            let read: Value = names.iter().map(|name| ((*name).to_owned(), json!(5))).collect();
            let answer = route.send(&api, json!({"stateDelta": delta, "stateRead": read})).await;
            assert_eq!(answer.status, 200, "{route:?}");
        }
    }
    let state = api.get(S).await.ok()["state"].clone();
    assert_eq!(state, json!({"n": 9, "user:n": 11, "app:n": 11}));

    let text = json!({"stateDelta": {"n": "six"}, "stateRead": {"n": 9}});
    let detail = api.patch(S, text).await.fails(422);
    assert!(detail.to_string().contains("leave out the value that was read"), "{detail}");
    api.patch(S, json!({"stateDelta": {"n": "replaced"}})).await.ok();
    assert_eq!(api.get(S).await.ok()["state"]["n"], "replaced");
}

/// The schema with the keys of the tests declared as anything.
fn open_schema(schema: sessile_state::StateSchema) -> sessile_state::StateSchema {
    let any = sessile_state::ValueType::any;
    schema.declare("n", any()).declare("user:n", any()).declare("app:n", any())
}
