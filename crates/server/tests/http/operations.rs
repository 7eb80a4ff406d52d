use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::json;
use sessile_server::{Apps, Counts, Gauge, Limits, Server};
use sessile_session::{MemoryStore, SessionService};

use crate::apps::{client, server, sessions};
use crate::client::Client;
use crate::runs::says;
use crate::stores::{broken, stuck};

const SESSION: &str = "/apps/echo/users/ada/sessions/s";

#[tokio::test]
async fn numbers_are_counted_by_route_and_status() {
    let (store, counts) = Counts::around(Arc::new(MemoryStore::new()));
    let pool = Gauge { name: "sessile_pool_in_use".to_owned(), help: "Connections.".to_owned(), value: 3.0 };
    let server =
        server(SessionService::over(store)).with_counts(counts).with_gauges(move || vec![pool.clone()]);
    let api = Client::new(server);
    api.post(SESSION, json!({})).await.ok();
    api.patch(SESSION, json!({"stateDelta": {"a": 1}})).await.ok();
    api.with("if-match", "\"1\"").delete("/apps/echo/users/ada/sessions/none").await.ok();
    api.get(SESSION).await.ok();
    api.get("/nope").await.fails(404);
    let page = api.get("/metrics").await;
    assert_eq!(page.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let route = "/apps/{app_name}/users/{user_id}/sessions/{session_id}";
    let has = |line: &str| assert!(page.text.lines().any(|other| other == line), "{line}\n{}", page.text);
    has(&format!("sessile_http_requests_total{{method=\"GET\",route=\"{route}\",status=\"200\"}} 1"));
    has("sessile_http_requests_total{method=\"any\",route=\"unknown\",status=\"404\"} 1");
    has(&format!("sessile_http_request_seconds_count{{method=\"PATCH\",route=\"{route}\"}} 1"));
    has("sessile_commits_total 3");
    has("sessile_conflicts_total 0");
    has("sessile_runs 0");
    has("sessile_pool_in_use 3");
    assert!(!page.text.contains("ada"), "no ids in metrics");
}

#[tokio::test]
async fn conflicts_are_counted() {
    let (store, counts) = Counts::around(Arc::new(MemoryStore::new()));
    let api = Client::new(Server::new(SessionService::over(store), Apps::new()).with_counts(counts));
    let created = api.post(SESSION, json!({})).await.etag();
    api.once("k").patch(SESSION, json!({"stateDelta": {}})).await.ok();
    api.once("k").patch(SESSION, json!({"stateDelta": {}})).await.ok(); // commits nothing
    let user = "/apps/echo/users/ada/state";
    for _ in 0..2 {
        api.once("k").patch(user, json!({"stateDelta": {"n": 1}})).await.ok();
    }
    let counted = async |commits: u32, conflicts: u32| {
        let text = api.get("/metrics").await.text;
        let commits = format!("\nsessile_commits_total {commits}\n");
        let conflicts = format!("\nsessile_conflicts_total {conflicts}\n");
        assert!(text.contains(&commits) && text.contains(&conflicts), "{commits}{conflicts}{text}");
    };
    counted(3, 0).await;
    api.if_match(&created).delete(SESSION).await.fails(412);
    api.if_match("\"0\"").delete(SESSION).await.fails(412); // of another session
    api.patch(SESSION, json!({"stateDelta": {}, "stateRead": {"a": 1}})).await.fails(409);
    api.patch(SESSION, json!({"stateOps": {"a": {"add": 1, "max": 0}}})).await.fails(409);
    counted(3, 4).await;
    api.if_match("\"7\"").patch(user, json!({"stateDelta": {}})).await.fails(412);
    api.patch(user, json!({"stateDelta": {}, "stateAbsent": ["n"]})).await.fails(409);
    api.patch(user, json!({"stateOps": {"n": {"append": [1]}}})).await.fails(409);
    counted(3, 7).await;
}

#[tokio::test]
async fn a_server_is_ready_when_its_store_is() {
    assert_eq!(client().get("/readyz").await.ok(), json!({"status": "ok"}));
    let api = Client::new(Server::new(SessionService::new(broken()), Apps::new()));
    api.get("/health").await.ok();
    let detail = api.get("/readyz").await.fails(503);
    assert_eq!(detail, "Cannot reach the store; the server's log has the cause under this request's id");
    let answer = api.get(SESSION).await;
    assert!(!answer.text.contains("password"), "{}", answer.text);
    answer.fails(503);
}

#[tokio::test]
async fn a_request_keeps_its_id_if_it_is_one() {
    let api = client();
    assert_eq!(
        api.with("x-request-id", "abc-1.2:3_4").get("/health").await.header("x-request-id"),
        "abc-1.2:3_4"
    );
    for id in ["", "has space", "quote\"", &"x".repeat(129)] {
        let answer = api.with("x-request-id", id).get("/health").await;
        assert_eq!(answer.header("x-request-id").len(), 36, "{id}");
    }
    assert_eq!(api.get("/nope").await.header("x-request-id").len(), 36);
}

#[tokio::test]
async fn too_many_runs_are_refused_and_none_is_lost() {
    let mut limits = Limits::default();
    limits.runs = 1;
    let api = Client::new(server(sessions()).with_limits(limits));
    api.post(SESSION, json!({})).await.ok();
    let mut slow = says("slow");
    slow["detach"] = json!(true);
    let place = api.post("/run", slow).await.header("location").to_owned();
    let refused = api.post("/run", says("x")).await;
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.fails(429), "1 runs are already in progress; retry when one has finished");
    api.get(&place).await;
    api.post("/run", says("x")).await.ok();
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_ended() {
    let mut limits = Limits::default();
    limits.run_time = std::time::Duration::from_millis(100);
    let api = Client::new(server(sessions()).with_limits(limits));
    api.post(SESSION, json!({})).await.ok();
    let detail = api.post("/run", says("forever")).await.fails(503);
    assert_eq!(detail, "the run took longer than 100ms and was ended");
    api.post("/run", says("x")).await.ok();
}

#[tokio::test]
async fn a_request_that_takes_too_long_is_given_up() {
    let mut limits = Limits::default();
    limits.request_time = std::time::Duration::from_millis(50);
    let api = Client::new(Server::new(SessionService::new(stuck()), Apps::new()).with_limits(limits));
    assert_eq!(api.get(SESSION).await.fails(503), "The request took longer than 50ms");
    let detail = api.patch(SESSION, json!({"stateDelta": {"a": 1}})).await.fails(503);
    let text =
        "The request took longer than 50ms; what it asks for is done or not done: read before you ask again";
    assert_eq!(detail, text);
}

#[tokio::test]
async fn runs_are_limited_for_each_user() {
    let mut limits = Limits::default();
    limits.user_runs = 1;
    let api = Client::new(server(sessions()).with_limits(limits));
    let (ada, bob) = (SESSION, "/apps/echo/users/bob/sessions/s");
    api.post(ada, json!({})).await.ok();
    api.post(bob, json!({})).await.ok();
    let mut forever = says("forever");
    forever["detach"] = json!(true);
    let place = api.post("/run", forever).await.header("location").to_owned();
    let refused = api.post("/run", says("x")).await;
    assert_eq!(refused.header("retry-after"), "1");
    let text = "1 runs of this user are already in progress, the most that one user may have; retry when one has finished";
    assert_eq!(refused.fails(429), text);
    let mut bobs = says("x");
    bobs["userId"] = json!("bob");
    api.post("/run", bobs).await.ok();
    api.delete(&place).await.ok();
    api.get(&place).await;
    api.post("/run", says("x")).await.ok();
}

#[tokio::test]
async fn the_bodies_of_all_requests_together_have_a_limit() {
    let mut limits = Limits::default();
    limits.bodies = 100;
    let api = Client::new(server(sessions()).with_limits(limits));
    // Half of a body has come, and the rest never does.
    let begun =
        Body::from_stream(stream::iter([Ok::<_, Infallible>(vec![b' '; 60])]).chain(stream::pending()));
    let request = Request::post(SESSION).header("host", "127.0.0.1:8000").body(begun).unwrap();
    let mut waiting = Box::pin(api.call(request));
    assert!((&mut waiting).now_or_never().is_none());

    let refused = api.post(SESSION, json!({"text": "x".repeat(50)})).await;
    assert_eq!(refused.header("retry-after"), "1");
    let text =
        "The bodies of all requests together would exceed 100 bytes; retry when other requests are done";
    assert_eq!(refused.fails(503), text);
    api.get(SESSION).await.fails(404);
    drop(waiting);
    api.post(SESSION, json!({"text": "x".repeat(50)})).await.ok();
    api.patch(SESSION, json!({"stateDelta": {"text": "y".repeat(50)}})).await.ok();
}
