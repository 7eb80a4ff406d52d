use serde_json::json;

use crate::apps::{client, server, sessions};
use crate::client::Client;

#[tokio::test]
async fn applications_are_listed_and_described() {
    let api = client();
    assert_eq!(api.get("/list-apps?relative_path=./").await.ok(), json!(["broken", "echo", "steps"]));
    let detailed = api.get("/list-apps?detailed=true").await.ok();
    assert_eq!(
        detailed["apps"][0],
        json!({"name": "echo", "rootAgentName": "echo", "description": "echoes", "language": "rust",
               "isComputerUse": false, "agents": null})
    );
    assert_eq!(detailed["apps"].as_array().unwrap().len(), 2);
    api.get("/list-apps?detailed=maybe").await.fails(422);

    let info = api.get("/apps/echo/app-info").await.ok();
    let agent = &info["agents"]["echo"];
    assert_eq!((&agent["instruction"], &agent["sub_agents"]), (&json!("Be nice."), &json!([])));
    let tool = &agent["tools"][0]["functionDeclarations"][0];
    assert_eq!((&tool["name"], &tool["description"]), (&json!("save"), &json!("saves a file")));
    assert!(tool["parametersJsonSchema"]["properties"]["name"].is_object());

    assert_eq!(api.get("/apps/nope/app-info").await.fails(404), "Agent not found: 'nope'.");
    assert_eq!(api.get("/apps/broken/app-info").await.fails(500), "Failed to load agent");
    assert_eq!(api.get("/apps/steps/app-info").await.fails(400), "Root agent is not an LlmAgent");
    api.get("/apps/__x/app-info").await.fails(403);
}

#[tokio::test]
async fn the_server_says_what_it_is() {
    let api = client();
    assert_eq!(api.get("/health").await.ok(), json!({"status": "ok"}));
    assert_eq!(api.get("/version").await.ok()["language"], "rust");
}

#[tokio::test]
async fn requests_without_an_application_go_to_the_default_one() {
    let api = Client::new(server(sessions()).with_default_app("echo"));
    let created = api.post("/users/ada/sessions", json!({"sessionId": "s"})).await.ok();
    assert_eq!(created["appName"], "echo");
    assert_eq!(api.get("/users/ada/sessions/s?numRecentEvents=1").await.ok(), created);
    assert_eq!(api.get("/app-info").await.ok()["name"], "echo");
    let body = json!({"userId": "ada", "sessionId": "s", "newMessage": {"parts": [{"text": "x"}]}});
    assert_eq!(api.post("/run", body).await.ok()[0]["author"], "echo");
    assert_eq!(api.get("/apps/echo/users/ada/sessions/s").await.ok()["id"], "s");
}

#[tokio::test]
async fn a_trailing_slash_is_redirected() {
    let answer = client().get("/apps/echo/users/ada/sessions/?pageSize=1").await;
    assert_eq!(answer.status.as_u16(), 307);
    assert_eq!(answer.header("location"), "/apps/echo/users/ada/sessions?pageSize=1");
    client().get("/nope/").await.fails(404);
}

#[tokio::test]
async fn sessions_are_added_to_the_memory_if_there_is_one() {
    let api = client();
    let memory = "/apps/echo/users/ada/memory";
    let detail = api.patch(memory, json!({"sessionId": "s"})).await.fails(400);
    assert_eq!(detail, "Memory service is not configured.");
    assert_eq!(api.patch(memory, json!({})).await.fails(422)[0]["type"], "missing");
}
