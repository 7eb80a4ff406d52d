//! A schema over HTTP: what it refuses is a 422 that names the key, the declared type and what was
//! given.

use serde_json::{Value, json};
use sessile_state::{StateSchema, ValueType};

use crate::apps::{server, sessions};
use crate::client::Client;
use crate::state_ops::Route;

const S: &str = "/apps/echo/users/ada/sessions/s";

/// A server whose application has a schema, and a session in it.
async fn ready() -> Client {
    let points = || ValueType::integer().at_least(0);
    let names = || ValueType::list(ValueType::string());
    let schema = StateSchema::new()
        .key::<String>("last")
        .declare("points", points())
        .declare("user:points", points())
        .declare("app:points", points())
        .declare("names", names())
        .declare("user:names", names())
        .declare("app:names", names());
    let api = Client::new(server(sessions().with_schema("echo", schema)));
    api.post(S, json!({"points": 1, "user:points": 1, "app:points": 1})).await.ok();
    api
}

#[tokio::test]
async fn every_route_refuses_what_the_schema_does_not_allow() {
    let api = ready().await;
    let before = api.get(S).await.ok();
    for route in Route::ALL {
        let key = |name: &str| match route {
            Route::User | Route::App => name.to_owned(),
            _ => format!("user:{name}"),
        };
        let stored =
            |name: &str| if route == Route::App { format!("app:{name}") } else { format!("user:{name}") };
        let misfits = [
            (json!({"stateDelta": {key("points"): "many"}}), "points", "`integer` and cannot hold a string"),
            (
                json!({"stateDelta": {key("points"): -1}}),
                "points",
                "cannot hold -1, which is below the minimum 0",
            ),
            (
                json!({"stateDelta": {key("pionts"): 1}}),
                "pionts",
                "is not declared in the schema, and a number was given",
            ),
            (
                json!({"stateOps": {key("points"): {"add": 0.5}}}),
                "points",
                "cannot take this `add`: 0.5 has a fraction",
            ),
            (
                json!({"stateOps": {key("names"): {"append": [1]}}}),
                "names",
                "`list of string` and cannot take this `append`: item 0 is a number",
            ),
        ];
        for (change, name, told) in misfits {
            if route == Route::RunSse {
                let answer = route.send(&api, change).await;
                assert!(answer.text.contains(&stored(name)) && answer.text.contains(told), "{}", answer.text);
                continue;
            }
            let detail = route.send(&api, change).await.fails(422);
            let detail = detail.as_str().unwrap();
            assert!(
                detail.contains(&format!("{:?}", stored(name))) && detail.contains(told),
                "{route:?}: {detail}"
            );
        }
    }
    assert_eq!(api.get(S).await.ok(), before, "nothing was stored");
}

#[tokio::test]
async fn every_route_keeps_additions_within_the_declared_bounds() {
    let api = ready().await;
    for route in [Route::Session, Route::User, Route::App, Route::Events, Route::Create, Route::Run] {
        let key = match route {
            Route::User | Route::App => "points",
            _ => "user:points",
        };
        let detail = route.send(&api, json!({"stateOps": {key: {"add": -2}}})).await.fails(409);
        assert!(detail.as_str().unwrap().contains("below the minimum 0"), "{route:?}: {detail}");
        route.send(&api, json!({"stateOps": {key: {"add": 1}}})).await.ok();
        route.send(&api, json!({"stateOps": {key: {"add": -1}}})).await.ok();
    }
    let state = api.get(S).await.ok()["state"].clone();
    assert_eq!((&state["user:points"], &state["app:points"]), (&json!(1), &json!(1)));
}

#[tokio::test]
async fn other_applications_and_removals_are_free() {
    let api = ready().await;
    api.post("/apps/steps/users/ada/sessions/s", json!({"anything": [1], "user:points": "many"})).await.ok();
    let answer = api.patch(S, json!({"stateRemove": ["points"]})).await.ok();
    assert_eq!(answer["state"].get("points"), None::<&Value>);
}
