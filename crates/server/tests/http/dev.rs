use serde_json::json;

use crate::apps::{client, server, sessions};
use crate::auth::guarded;
use crate::client::Client;
use crate::runs::says;

const SESSION: &str = "/apps/echo/users/ada/sessions/s";

#[tokio::test]
async fn what_a_run_did_is_traced() {
    let api = client();
    api.post(SESSION, json!({})).await.ok();
    let events = api.post("/run", says("save")).await.ok();
    let spans = api.get("/dev/apps/echo/debug/trace/session/s").await.ok();
    let names: Vec<&str> =
        spans.as_array().unwrap().iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["call_llm", "execute_tool save", "call_llm", "invoke_agent echo", "invocation echo"]);
    let (agent, root) = (&spans[3], &spans[4]);
    assert_eq!(spans[0]["parent_span_id"], agent["span_id"]);
    assert_eq!(agent["parent_span_id"], root["span_id"]);
    for span in spans.as_array().unwrap() {
        assert_eq!(span["trace_id"], root["trace_id"]);
        assert!(span["start_time"].as_u64() <= span["end_time"].as_u64());
    }
    let id = events[0]["id"].as_str().unwrap();
    let trace = api.get(&format!("/dev/apps/echo/debug/trace/{id}")).await.ok();
    assert_eq!(trace["gcp.vertex.agent.event_id"], id);
    assert_eq!(trace["span_id"], spans[0]["span_id"]);
    assert_eq!(api.get("/dev/apps/echo/debug/trace/none").await.fails(404), "Trace not found");
    assert_eq!(api.get("/dev/apps/echo/debug/trace/session/none").await.ok(), json!([]));
    assert_eq!(api.get("/dev/apps/steps/debug/trace/session/s").await.ok(), json!([]));
}

#[tokio::test]
async fn agents_and_tools_are_drawn() {
    let api = client();
    api.post(SESSION, json!({})).await.ok();
    let events = api.post("/run", says("save")).await.ok();
    let plain = api.get("/dev/apps/echo/graph?dark_mode=true").await.ok();
    let plain = plain["dotSrc"].as_str().unwrap();
    assert!(plain.contains(r#""echo" -> "save""#) && !plain.contains("#0F5223"), "{plain}");
    let id = events[0]["id"].as_str().unwrap();
    let graph = api.get(&format!("/dev{SESSION}/events/{id}/graph")).await.ok();
    assert_eq!(graph["dotSrc"].as_str().unwrap().matches("fillcolor=\"#0F5223\"").count(), 2);
    assert_eq!(api.get(&format!("/dev{SESSION}/events/none/graph")).await.ok(), json!({}));
    let tree = api.get("/dev/apps/steps/build_graph").await.ok();
    assert_eq!(tree["root_agent"]["sub_agents"][0]["name"], "step");
    assert!(api.get("/dev/apps/steps/build_graph_image").await.ok()[""]["dotSrc"].is_string());
    api.get("/dev/apps/nope/graph").await.fails(404);
}

#[tokio::test]
async fn lists_of_what_sessile_does_not_do_are_empty() {
    let api = client();
    let dev = |path: &str| format!("/dev/apps/echo/{path}");
    for path in ["tests", "eval_sets", "eval_results"] {
        assert_eq!(api.get(&dev(path)).await.ok(), json!([]));
    }
    assert_eq!(api.get(&dev("eval-sets")).await.ok(), json!({"evalSetIds": []}));
    assert_eq!(api.get(&dev("eval-results")).await.ok(), json!({"evalResultIds": []}));
    assert_eq!(api.get(&dev("metrics-info")).await.ok(), json!({"metricsInfo": []}));
}

#[tokio::test]
async fn telemetry_is_off_until_it_is_switched_on() {
    let api = client();
    assert_eq!(api.get("/config/telemetry").await.ok(), json!({"telemetry": false}));
    let detail = api.post("/config/telemetry", json!({"telemetry": true})).await.fails(400);
    assert_eq!(detail, "Forbidden: missing required security header");
    let page = api.with("x-adk-telemetry-request", "true");
    assert_eq!(
        page.post("/config/telemetry", json!({"telemetry": true})).await.ok(),
        json!({"telemetry": true})
    );
    assert_eq!(
        page.post("/config/telemetry", json!({"telemetry": 4})).await.fails(422)[0]["type"],
        "bool_parsing"
    );
    let settings = api.get("/dev-ui/assets/config/runtime-config.json").await;
    assert_eq!(settings.header("cache-control"), "no-store");
    assert_eq!(settings.ok(), json!({"backendUrl": "", "telemetry": true}));
    assert_eq!(api.get("/dev-ui/config").await.ok(), json!({"logo_text": null, "logo_image_url": null}));
}

#[tokio::test]
async fn the_files_of_the_web_ui_are_served_from_their_folder_only() {
    let folder = tempfile::tempdir().unwrap();
    let ui = folder.path().join("browser");
    std::fs::create_dir_all(ui.join("assets")).unwrap();
    std::fs::write(ui.join("index.html"), "<title>UI</title>").unwrap();
    std::fs::write(ui.join("assets/main.js"), "ui()").unwrap();
    std::fs::write(folder.path().join("secret.txt"), "hush").unwrap();
    let api = Client::new(server(sessions()).with_adk_web(&ui));
    for path in ["/", "/dev-ui"] {
        let answer = api.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (307, "/dev-ui/"));
    }
    let page = api.get("/dev-ui/").await;
    assert_eq!((page.status.as_u16(), page.text.as_str()), (200, "<title>UI</title>"));
    assert_eq!(api.get("/dev-ui/assets/main.js").await.text, "ui()");
    assert_eq!(api.get("/dev-ui/assets/config/runtime-config.json").await.ok()["backendUrl"], "");
    for path in
        ["/dev-ui/../secret.txt", "/dev-ui/%2e%2e/secret.txt", "/dev-ui/..%2fsecret.txt", "/dev-ui/none.js"]
    {
        let answer = api.get(path).await;
        assert!(answer.status.is_client_error() && !answer.text.contains("hush"), "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn the_files_of_the_web_ui_and_unknown_paths_need_no_token() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("index.html"), "<title>UI</title>").unwrap();
    let api = Client::new(guarded(sessions()).with_adk_web(folder.path()));
    for (path, status) in [
        ("/", 307),
        ("/dev-ui", 307),
        ("/dev-ui/", 200),
        ("/dev-ui/index.html", 200),
        ("/dev-ui/none.js", 404),
        ("/dev-ui/config", 200),
        ("/nowhere", 404),
        ("/health/", 307),
        ("/list-apps", 401),
        (SESSION, 401),
    ] {
        assert_eq!(api.get(path).await.status.as_u16(), status, "{path}");
    }
}
