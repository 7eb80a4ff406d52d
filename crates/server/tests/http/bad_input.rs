use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use sessile_server::{Apps, Limits, Server};
use sessile_session::{MemoryStore, SessionService};

use crate::client::{Answer, Client};

const SESSIONS: &str = "/apps/shop/users/ada/sessions";
const CART: &str = "/apps/shop/users/ada/sessions/cart";

async fn post(api: &Client, body: &str) -> Answer {
    api.send(Method::POST, SESSIONS, Some(body.to_owned())).await
}

#[tokio::test]
async fn wrong_types_are_listed_as_adk_lists_them() {
    let api = Client::empty();
    let detail = post(&api, r#"{"session_id":5,"state":[],"events":{},"options":4}"#).await.fails(422);
    let problem = |kind, field, msg, input: Value| json!({"type": kind, "loc": ["body", field], "msg": msg, "input": input});
    assert_eq!(
        detail,
        json!([
            problem("string_type", "session_id", "Input should be a valid string", json!(5)),
            problem("dict_type", "state", "Input should be a valid dictionary", json!([])),
            problem("list_type", "events", "Input should be a valid list", json!({})),
            problem("dict_type", "options", "Input should be a valid dictionary", json!(4)),
        ])
    );
    let detail = post(&api, r#"{"events":[{"author":"u","content":{"parts":[{"text":"x","foo":1}]}}]}"#)
        .await
        .fails(422);
    assert_eq!(
        detail,
        json!([{"type": "extra_forbidden", "loc": ["body", "events", 0, "content", "parts", 0, "foo"],
                "msg": "Extra inputs are not permitted", "input": 1}])
    );
    let detail = post(&api, r#"{"events":[{"author":"u","timestamp":"x"}]}"#).await.fails(422);
    assert_eq!(detail[0]["type"], "float_parsing");
    let detail = post(&api, "[]").await.fails(422);
    let msg = "Input should be a valid dictionary or object to extract fields from";
    assert_eq!(detail, json!([{"type": "model_attributes_type", "loc": ["body"], "msg": msg, "input": []}]));
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let api = Client::empty();
    post(&api, r#"{"sessionId":"cart"}"#).await.ok();
    let missing = |loc: Value, input: Value| json!([{"type": "missing", "loc": loc, "msg": "Field required", "input": input}]);
    assert_eq!(
        api.patch(CART, json!({})).await.fails(422),
        missing(json!(["body", "stateDelta"]), json!({}))
    );
    let detail = api.send(Method::PATCH, CART, None).await.fails(422);
    assert_eq!(detail, missing(json!(["body"]), Value::Null));
    let detail = api.patch(CART, json!({"stateDelta": null})).await.fails(422);
    assert_eq!(detail[0]["type"], "dict_type");
}

#[tokio::test]
async fn a_body_that_is_not_json_is_refused_with_its_position() {
    let api = Client::empty();
    let detail = post(&api, r#"{"sessionId":"#).await.fails(422);
    assert_eq!(
        detail,
        json!([{"type": "json_invalid", "loc": ["body", 13], "msg": "JSON decode error", "input": {},
                "ctx": {"error": "Expecting value"}}])
    );
    let request =
        Request::post(SESSIONS).header("content-type", "application/json").body(Body::from(&b"\"\xff\""[..]));
    assert_eq!(api.call(request.unwrap()).await.fails(400), "There was an error parsing the body");
    let request = Request::post(SESSIONS).header("content-type", "text/plain").body(Body::from("{}"));
    assert_eq!(api.call(request.unwrap()).await.fails(422)[0]["input"], "{}");
}

#[tokio::test]
async fn what_would_spoil_a_session_is_refused_and_the_session_stays_readable() {
    let api = Client::empty();
    post(&api, r#"{"sessionId":"cart","state":{"k":1}}"#).await.ok();
    let deep = format!("{{\"stateDelta\":{{\"k\":{}1{}}}}}", "[".repeat(300), "]".repeat(300));
    let bodies = [
        r#"{"stateDelta":{"k":2,"k":3}}"#,
        r#"{"stateDelta":{"k":"\ud800"}}"#,
        r#"{"stateDelta":{"\udfff":1}}"#,
        r#"{"stateDelta":{"k":NaN}}"#,
        r#"{"stateDelta":{"k":Infinity}}"#,
        r#"{"stateDelta":{"k":1e999}}"#,
        r#"{"stateDelta":{"k":2},"state_delta":{"k":3}}"#,
        r#"{"stateDelta":{"app:app:k":3}}"#,
        &deep,
    ];
    for body in bodies {
        api.send(Method::PATCH, CART, Some(body.to_owned())).await.fails(422);
        assert_eq!(api.get(CART).await.ok()["state"], json!({"k": 1}), "{body}");
    }
    assert_eq!(api.get(CART).await.ok()["events"], json!([]));
}

#[tokio::test]
async fn ids_that_cannot_be_used_are_refused_by_name() {
    let api = Client::empty();
    let long = "x".repeat(129);
    let detail = post(&api, &json!({"sessionId": long}).to_string()).await.fails(422);
    assert!(detail.as_str().unwrap().contains("is longer than 128 characters"), "{detail}");
    let detail = post(&api, r#"{"sessionId":"a\u0000b"}"#).await.fails(422);
    assert!(detail.as_str().unwrap().contains("U+0000"), "{detail}");
    api.get(&format!("/apps/{long}/users/u/sessions")).await.fails(422);
    api.get("/apps/a/users/%FF/sessions").await.fails(400);
}

#[tokio::test]
async fn exceeding_a_limit_is_an_error_that_names_it() {
    let mut limits = Limits::default();
    (limits.body, limits.state, limits.key_length, limits.events) = (2000, 200, 20, 2);
    let server = Server::new(SessionService::new(MemoryStore::new()), Apps::new()).with_limits(limits);
    let api = Client::new(server);
    let detail = post(&api, &" ".repeat(2001)).await.fails(413);
    assert_eq!(detail, "The body is longer than 2000 bytes");
    let detail = post(&api, &json!({"state": {"k": "x".repeat(300)}}).to_string()).await.fails(413);
    assert_eq!(
        detail,
        "the session state would be 303 bytes, and at most 200 are kept; remove keys, or store large values as artifacts"
    );
    let detail = post(&api, &json!({"state": {"k".repeat(21): 1}}).to_string()).await.fails(422);
    assert_eq!(detail[0]["msg"], "State keys have at most 20 characters");
    let event = json!({"author": "user"});
    post(&api, &json!({"events": [event, event, event]}).to_string()).await.fails(422);

    post(&api, r#"{"sessionId":"cart"}"#).await.ok();
    for key in ["user:a", "user:b"] {
        let status = api.patch(CART, json!({"stateDelta": {key: "x".repeat(120)}})).await.status;
        assert_eq!(status.as_u16(), if key == "user:a" { 200 } else { 413 });
    }
    api.patch(CART, json!({"stateDelta": {"user:b": "x".repeat(120)}, "stateRemove": ["user:a"]})).await.ok();
}

#[tokio::test]
async fn unknown_routes_and_methods_are_answered_in_json() {
    let api = Client::empty();
    assert_eq!(api.get("/nope").await.fails(404), "Not Found");
    assert_eq!(api.send(Method::PUT, CART, None).await.fails(405), "Method Not Allowed");
    assert_eq!(api.post("/health", json!({})).await.fails(405), "Method Not Allowed");
    assert_eq!(api.get("/apps/../../etc/passwd").await.fails(404), "Not Found");
}

#[tokio::test]
async fn a_body_of_wrong_items_is_answered_with_a_few_of_them() {
    let api = Client::empty();
    api.post(CART, json!({})).await.ok();
    let wrong = vec![1; 100_000];
    let detail = api.patch(CART, json!({"stateDelta": {}, "stateRemove": wrong})).await.fails(422);
    assert_eq!(detail.as_array().map(Vec::len), Some(100));
}

#[tokio::test]
async fn a_time_beyond_all_events_is_not_an_error() {
    let api = Client::empty();
    api.post(CART, json!({})).await.ok();
    api.get(&format!("{CART}?afterTimestamp=1e300")).await.ok();
    api.get(&format!("{CART}?afterTimestamp=-1e300")).await.ok();
}
