use axum::http::Method;
use serde_json::{Value, json};

use crate::client::Client;

const SESSIONS: &str = "/apps/shop/users/ada/sessions";
const CART: &str = "/apps/shop/users/ada/sessions/cart";

#[tokio::test]
async fn a_session_is_created_read_and_deleted() {
    let api = Client::empty();
    let state = json!({"step": 1, "user:name": "Ada", "app:tax": 0.2, "temp:x": 1});
    let created = api.post(SESSIONS, json!({"sessionId": "cart", "state": state})).await.ok();
    assert_eq!(created["id"], "cart");
    assert_eq!(created["appName"], "shop");
    assert_eq!(created["userId"], "ada");
    assert_eq!(created["state"], json!({"step": 1, "user:name": "Ada", "app:tax": 0.2}));
    assert_eq!(created["events"], json!([]));
    assert!(created["lastUpdateTime"].is_f64());
    assert_eq!(api.get(CART).await.ok(), created);
    assert_eq!(api.delete(CART).await.ok(), Value::Null);
    assert_eq!(api.delete(CART).await.ok(), Value::Null);
    assert_eq!(api.get(CART).await.fails(404), "Session not found");
}

#[tokio::test]
async fn every_form_of_creating_works() {
    let api = Client::empty();
    for body in [None, Some("null"), Some("{}"), Some(r#"{"session_id":null,"state":null,"events":null}"#)] {
        let created = api.send(Method::POST, SESSIONS, body.map(str::to_owned)).await.ok();
        assert_eq!(created["id"].as_str().unwrap().len(), 36);
    }
    let created = api.post(SESSIONS, json!({"session_id": "snake"})).await.ok();
    assert_eq!(created["id"], "snake");
    let created = api.post(CART, json!({"k": 1})).await.ok();
    assert_eq!((&created["id"], &created["state"]), (&json!("cart"), &json!({"k": 1})));
    let padded = api.send(Method::POST, "/apps/shop/users/ada/sessions/%20pad%20", None).await.ok();
    assert_eq!(padded["id"], "pad");
    assert_eq!(api.post(CART, json!({})).await.fails(409), "Session already exists: cart");
    assert_eq!(
        api.post(SESSIONS, json!({"sessionId": "cart"})).await.fails(409),
        "Session already exists: cart"
    );
    assert_eq!(api.get(CART).await.ok()["state"], json!({"k": 1}));
}

#[tokio::test]
async fn a_session_starts_with_what_was_said_and_nothing_that_acts() {
    let api = Client::empty();
    let said = json!({"author": "user", "content": {"role": "user", "parts": [{"text": "hi"}]}});
    let created = api.post(SESSIONS, json!({"sessionId": "cart", "events": [said]})).await.ok();
    let event = &created["events"][0];
    assert_eq!(event["content"], said["content"]);
    assert_eq!(event["actions"]["stateDelta"], json!({}));
    assert!(event["id"].is_string() && event["timestamp"].is_f64());

    let refused = [
        (json!({"author": "a", "actions": {"stateDelta": {"x": 1}}}), "event actions"),
        (json!({"author": "a", "longRunningToolIds": ["x"]}), "long-running tool IDs"),
        (
            json!({"author": "a", "content": {"parts": [{"functionCall": {"name": "adk_request_input"}}]}}),
            "ADK protocol function calls",
        ),
    ];
    for (event, what) in refused {
        let detail = api.post(SESSIONS, json!({"events": [said, event]})).await.fails(400);
        assert_eq!(detail, format!("Session initialization event 1 cannot include {what}."));
    }
    assert_eq!(api.get(SESSIONS).await.ok().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn options_are_refused_as_adk_refuses_them() {
    let api = Client::empty();
    let detail = api.post(SESSIONS, json!({"options": {"ttl": "5s"}})).await.fails(400);
    assert_eq!(detail, "Session options are not supported by the configured session service.");
    let detail = api.post(SESSIONS, json!({"options": {"state": 1, "user_id": 2}})).await.fails(400);
    assert_eq!(detail, "Session options cannot contain keys already bound by the endpoint: state, user_id");
    api.post(SESSIONS, json!({"options": {}})).await.ok();
}

#[tokio::test]
async fn a_change_is_an_event_of_the_user() {
    let api = Client::empty();
    api.post(SESSIONS, json!({"sessionId": "cart"})).await.ok();
    let changed = api.patch(CART, json!({"stateDelta": {"a": null, "user:b": 2, "temp:c": 3}})).await;
    assert_eq!(changed.version(), 1);
    let changed = changed.ok();
    assert_eq!(changed["state"], json!({"a": null, "user:b": 2}));
    let event = &changed["events"][0];
    assert_eq!(event["author"], "user");
    assert!(event["invocationId"].as_str().unwrap().starts_with("p-"));
    assert_eq!(event["actions"]["stateDelta"], json!({"a": null, "user:b": 2}));
    let empty = api.patch(CART, json!({"state_delta": {}})).await.ok();
    assert_eq!(empty["events"].as_array().unwrap().len(), 2);
    assert_eq!(
        api.patch("/apps/shop/users/ada/sessions/no", json!({"stateDelta": {}})).await.fails(404),
        "Session not found"
    );
}

#[tokio::test]
async fn keys_can_be_removed() {
    let api = Client::empty();
    api.post(SESSIONS, json!({"sessionId": "cart", "state": {"a": 1, "user:b": 2, "c": 3}})).await.ok();
    let changed = api.patch(CART, json!({"stateDelta": {"c": 4}, "stateRemove": ["a", "user:b"]})).await.ok();
    assert_eq!(changed["state"], json!({"c": 4}));
    let changed = api.patch(CART, json!({"state_remove": ["c"]})).await.ok();
    assert_eq!(changed["state"], json!({}));
    let detail = api.patch(CART, json!({"stateDelta": {"x": 1}, "stateRemove": ["x"]})).await.fails(422);
    assert_eq!(detail, "The key \"x\" is both set and removed; choose one");
    assert_eq!(api.get(CART).await.ok()["state"], json!({}));
}

#[tokio::test]
async fn a_version_that_is_not_stored_is_not_changed_or_deleted() {
    let api = Client::empty();
    let created = api.post(SESSIONS, json!({"sessionId": "cart"})).await;
    assert_eq!(created.version(), 0);
    assert_eq!(api.get(CART).await.etag(), created.etag());
    let at_0 = api.if_match(&created.etag());
    let changed = at_0.patch(CART, json!({"stateDelta": {"x": 1}})).await;
    assert_eq!(changed.version(), 1);
    let detail = at_0.patch(CART, json!({"stateDelta": {"x": 2}})).await.fails(412);
    assert_eq!(
        detail,
        "session shop/ada/cart has changed: version 0 was expected, 1 is stored; read it again"
    );
    at_0.delete(CART).await.fails(412);
    assert_eq!(api.get(CART).await.ok()["state"], json!({"x": 1}));
    api.if_match("soon").delete(CART).await.fails(400);
    let last = api.if_match("*").patch(CART, json!({"stateDelta": {}})).await;
    api.if_match(&last.etag()).delete(CART).await.ok();
    api.get(CART).await.fails(404);
}

#[tokio::test]
async fn windows_choose_events() {
    let api = Client::empty();
    api.post(SESSIONS, json!({"sessionId": "cart"})).await.ok();
    for n in 0..5 {
        api.patch(CART, json!({"stateDelta": {"n": n}})).await.ok();
    }
    let count = |session: Value| session["events"].as_array().unwrap().len();
    assert_eq!(count(api.get(&format!("{CART}?numRecentEvents=2")).await.ok()), 2);
    assert_eq!(count(api.get(&format!("{CART}?num_recent_events=0")).await.ok()), 0);
    assert_eq!(count(api.get(&format!("{CART}?afterVersion=3")).await.ok()), 2);
    assert_eq!(count(api.get(&format!("{CART}?afterTimestamp=99999999999")).await.ok()), 0);
    let changed = api.patch(&format!("{CART}?numRecentEvents=0"), json!({"stateDelta": {"n": 9}})).await.ok();
    assert_eq!((count(changed.clone()), &changed["state"]["n"]), (0, &json!(9)));
    for (window, versions) in [("numRecentEvents=2", 2), ("afterVersion=5", 3), ("afterVersion=99", 0)] {
        let changed = api.patch(&format!("{CART}?{window}"), json!({"stateDelta": {"n": 9}})).await.ok();
        assert_eq!(count(changed), versions, "{window}");
    }
    let detail = api.get(&format!("{CART}?numRecentEvents=-1")).await.fails(422);
    assert_eq!(detail[0]["loc"], json!(["query", "numRecentEvents"]));
}

#[tokio::test]
async fn lists_are_whole_or_in_pages() {
    let api = Client::empty();
    for n in 0..5 {
        api.post(SESSIONS, json!({"sessionId": format!("s{n}"), "state": {"n": n}})).await.ok();
    }
    api.post(SESSIONS, json!({"sessionId": "adk-eval-session-1"})).await.ok();
    api.post("/apps/shop/users/bob/sessions", json!({"sessionId": "his"})).await.ok();
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = api.get(SESSIONS).await.ok();
    assert_eq!(ids(&all), ["s0", "s1", "s2", "s3", "s4"]);
    assert_eq!(all[2]["state"], json!({"n": 2}));
    assert_eq!(api.get("/apps/shop/users/nobody/sessions").await.ok(), json!([]));

    let (mut seen, mut path) = (Vec::new(), format!("{SESSIONS}?pageSize=2&newestFirst=true"));
    loop {
        let answer = api.get(&path).await;
        let link = answer.header("link").to_owned();
        seen.extend(ids(&answer.ok()));
        let Some(next) = link.strip_prefix('<').and_then(|link| link.strip_suffix(">; rel=\"next\"")) else {
            break;
        };
        path = next.to_owned();
    }
    assert_eq!(seen, ["s4", "s3", "s2", "s1", "s0"]);
    api.get(&format!("{SESSIONS}?pageToken=nonsense")).await.fails(422);
    assert_eq!(ids(&api.get("/apps/shop/sessions").await.ok()).len(), 6);
}

#[tokio::test]
async fn a_list_longer_than_a_page_is_sent_in_pieces_and_whole() {
    let api = Client::empty();
    for n in 0..1003 {
        let id = if n < 1001 { format!("adk-eval-session-{n}") } else { format!("s{n}") };
        api.post(SESSIONS, json!({"sessionId": id})).await.ok();
    }
    assert_eq!(api.get(SESSIONS).await.ok().as_array().unwrap().len(), 2);
    for n in 0..1000 {
        api.post(SESSIONS, json!({"sessionId": format!("t{n}")})).await.ok();
    }
    assert_eq!(api.get(SESSIONS).await.ok().as_array().unwrap().len(), 1002);
}

#[tokio::test]
async fn an_id_with_a_slash_is_reached_as_2f() {
    let api = Client::empty();
    api.post(SESSIONS, json!({"sessionId": "a/b"})).await.ok();
    assert_eq!(api.get("/apps/shop/users/ada/sessions/a%2Fb").await.ok()["id"], "a/b");
}

#[tokio::test]
async fn numbers_keep_every_digit() {
    let api = Client::empty();
    let body = r#"{"sessionId":"cart","state":{"big":123456789012345678901234567890,"one":1.0}}"#;
    api.send(Method::POST, SESSIONS, Some(body.to_owned())).await.ok();
    let text = api.get(CART).await.text;
    assert!(text.contains(r#""big":123456789012345678901234567890,"one":1.0"#), "{text}");
}

#[tokio::test]
async fn secrets_of_credentials_are_not_sent() {
    let api = Client::empty();
    let credential = json!({"authType": "oauth2", "oauth2": {"clientId": "me", "clientSecret": "hush"}});
    let created = api.post(SESSIONS, json!({"sessionId": "cart", "state": {"c": credential}})).await.ok();
    assert_eq!(created["state"]["c"], json!({"authType": "oauth2", "oauth2": {"clientId": "me"}}));
    assert!(!api.get(CART).await.text.contains("hush"));
    assert!(!api.get(SESSIONS).await.text.contains("hush"));
}
