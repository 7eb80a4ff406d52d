//! The history of shared state over HTTP: pages, rights, an earlier state, a stream that is
//! resumed.

use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use futures_util::StreamExt;
use serde_json::{Value, json};
use sessile_agent::{FunctionTool, LlmAgent, Runner, ToolContext};
use sessile_model::Scripted;
use sessile_server::{App, Apps, Server};
use sessile_session::{BoxError, ChangedBy};

use crate::apps::sessions;
use crate::auth::{guarded, of};
use crate::client::Client;
use crate::extensions::frames;

const SESSION: &str = "/apps/shop/users/ada/sessions/s";
const USER: &str = "/apps/shop/users/ada/state";
const APP: &str = "/apps/shop/state";

/// A shop with a history: ada's points are set by a request, an event, and a request again.
async fn shop() -> Client {
    let api = Client::new(guarded(sessions()));
    let (ada, root) =
        (api.bearing(&of("ada", "sessile:write_app")), api.bearing(&of("root", "sessile:admin")));
    ada.once("r1").patch(USER, json!({"stateDelta": {"points": 5, "name": "Ada"}})).await.ok();
    ada.post(SESSION, json!({})).await.ok();
    let event = json!({"id": "e1", "author": "clerk", "actions": {"stateDelta": {"user:points": 1000, "app:best": "ada"}}});
    root.post(&format!("{SESSION}/events"), event).await.ok();
    root.once("r2")
        .patch(USER, json!({"stateOps": {"points": {"add": 1}}, "stateRemove": ["name"]}))
        .await
        .ok();
    api
}

fn versions(page: &Value) -> Vec<u64> {
    page["changes"].as_array().unwrap().iter().map(|change| change["version"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_user_sees_who_changed_its_state_also_after_the_session_was_deleted() {
    let api = shop().await;
    let ada = api.bearing(&of("ada", ""));
    ada.delete(SESSION).await.ok();
    let history = ada.get(&format!("{USER}/history")).await.ok();
    assert_eq!(versions(&history), [3, 2, 1]);
    let [last, event, first] = &history["changes"].as_array().unwrap()[..] else { panic!("{history}") };
    assert_eq!(last["by"], json!({"request": "r2", "principal": "root"}));
    assert_eq!(
        last["keys"],
        json!({"points": {"before": 1000, "after": 1001, "ops": {"add": 1}}, "name": {"before": "Ada"}})
    );
    assert_eq!(event["by"], json!({"user": "ada", "session": "s", "event": "e1", "author": "clerk"}));
    assert_eq!(event["keys"], json!({"points": {"before": 5, "after": 1000}}));
    assert_eq!(first["keys"]["points"], json!({"after": 5}));
    assert!(first["time"].as_f64().unwrap() > 1.6e9);

    let names = ada.get(&format!("{USER}/history?key=name")).await.ok();
    assert_eq!(versions(&names), [3, 1]);
    api.bearing(&of("eve", "")).get(&format!("{USER}/history")).await.fails(403);
    assert_eq!(ada.get(&format!("{USER}?version=2")).await.ok(), json!({"points": 1000, "name": "Ada"}));
    assert_eq!(ada.get(&format!("{USER}?version=0")).await.ok(), json!({}));
    let detail = ada.get(&format!("{USER}?version=9")).await.fails(404);
    assert!(detail.as_str().unwrap().contains("current version is 3"), "{detail}");
}

#[tokio::test]
async fn the_history_of_an_application_needs_the_right_to_it() {
    let api = shop().await;
    let detail = api.bearing(&of("ada", "")).get(&format!("{APP}/history")).await.fails(403);
    assert!(detail.as_str().unwrap().contains("write_app"), "{detail}");
    for scope in ["sessile:write_app", "sessile:admin"] {
        let history = api.bearing(&of("root", scope)).get(&format!("{APP}/history")).await.ok();
        assert_eq!(history["changes"][0]["by"]["event"], "e1");
        assert_eq!(history["changes"][0]["keys"], json!({"best": {"after": "ada"}}));
    }
    assert_eq!(
        api.bearing(&of("eve", "")).get(&format!("{APP}?version=1")).await.ok(),
        json!({"best": "ada"})
    );
}

#[tokio::test]
async fn pages_are_followed_by_next_or_by_the_link() {
    let api = Client::new(guarded(sessions())).bearing(&of("ada", ""));
    for n in 0..7 {
        api.patch(USER, json!({"stateDelta": {"a b": n}})).await.ok();
    }
    let first = api.get(&format!("{USER}/history?pageSize=3&key=a%20b")).await;
    let link = first.headers["link"].to_str().unwrap().to_owned();
    let page = first.ok();
    assert_eq!((versions(&page), &page["next"]), (vec![7, 6, 5], &json!(5)));
    let next = link.strip_prefix('<').unwrap().split('>').next().unwrap();
    assert_eq!(versions(&api.get(next).await.ok()), [4, 3, 2]);
    let last = api.get(&format!("{USER}/history?pageSize=3&before=2")).await;
    assert!(last.headers.get("link").is_none());
    let last = last.ok();
    assert_eq!((versions(&last), last.get("next")), (vec![1], None));
    api.get(&format!("{USER}/history?before=x")).await.fails(422);
}

#[tokio::test]
async fn secrets_of_credentials_are_taken_out_of_the_history_too() {
    let api = Client::new(guarded(sessions())).bearing(&of("ada", ""));
    let credential = json!({"authType": "apiKey", "apiKey": "very secret"});
    api.patch(USER, json!({"stateDelta": {"cred": credential}})).await.ok();
    api.patch(USER, json!({"stateRemove": ["cred"]})).await.ok();
    let history = api.get(&format!("{USER}/history")).await;
    assert!(!history.text.contains("very secret") && history.text.contains("apiKey"), "{}", history.text);
}

#[tokio::test]
async fn a_write_that_reports_answers_with_what_it_overwrote() {
    let api = Client::new(guarded(sessions())).bearing(&of("ada", "sessile:write_app"));
    for place in [USER, APP] {
        api.patch(place, json!({"stateDelta": {"n": "schön"}})).await.ok();
        let change = json!({"stateDelta": {"n": 9}, "stateRead": {"n": 1}, "onOverwrite": "report"});
        let answer = api.patch(place, change.clone()).await;
        let told: Value =
            serde_json::from_str(answer.headers["sessile-overwrote"].to_str().unwrap()).unwrap();
        assert_eq!(told, json!({"n": {"read": 1, "found": "schön"}}));
        assert_eq!(answer.ok(), json!({"n": 9}));
        let history = api.get(&format!("{place}/history")).await.ok();
        let prefix = if place == APP { "app:n" } else { "user:n" };
        assert_eq!(history["changes"][0]["overwrote"], json!({prefix: {"read": 1, "found": "schön"}}));
        let same = json!({"stateDelta": {"n": 10}, "stateRead": {"n": 9}, "onOverwrite": "report"});
        let answer = api.patch(place, same).await;
        assert!(answer.headers.get("sessile-overwrote").is_none());
        answer.ok();
    }
}

/// Reads a stream until so many frames came: name, id, data.
async fn read(response: Response<Body>, count: usize) -> Vec<(String, String, Value)> {
    assert_eq!(response.status(), 200);
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    loop {
        let found = frames(&text);
        if found.len() >= count {
            return found;
        }
        let piece = tokio::time::timeout(Duration::from_secs(30), body.next()).await.expect("a frame comes");
        text.push_str(std::str::from_utf8(&piece.unwrap().unwrap()).unwrap());
    }
}

#[tokio::test]
async fn a_watch_shows_the_state_then_each_change_and_is_resumed() {
    let api = shop().await;
    let (ada, eve) = (api.bearing(&of("ada", "sessile:write_app")), api.bearing(&of("eve", "")));
    let open = ada.open(&format!("{USER}/watch")).await;
    ada.once("r3").patch(USER, json!({"stateDelta": {"points": 7}})).await.ok();
    let seen = read(open, 2).await;
    assert_eq!((&*seen[0].0, &*seen[0].1, &seen[0].2), ("snapshot", "3", &json!({"points": 1001})));
    assert_eq!((&*seen[1].0, &*seen[1].1), ("change", "4"));
    assert_eq!(seen[1].2["keys"], json!({"points": {"before": 1001, "after": 7}}));
    assert_eq!(seen[1].2["by"], json!({"request": "r3", "principal": "ada"}));

    let resumed = read(ada.with("last-event-id", "1").open(&format!("{USER}/watch")).await, 3).await;
    assert_eq!(
        resumed.iter().map(|(name, id, _)| format!("{name} {id}")).collect::<Vec<_>>(),
        ["change 2", "change 3", "change 4"]
    );
    for unknown in ["99", "x"] {
        let seen = read(ada.with("last-event-id", unknown).open(&format!("{USER}/watch")).await, 1).await;
        assert_eq!((&*seen[0].0, &*seen[0].1), ("snapshot", "4"), "{unknown}");
    }
    assert_eq!(eve.open(&format!("{USER}/watch")).await.status(), 403);

    // Everybody may watch what everybody may read; who made a change is told by right.
    for (client, tells_who) in [(&ada, true), (&eve, false)] {
        let seen = read(client.with("last-event-id", "0").open(&format!("{APP}/watch")).await, 1).await;
        assert_eq!((&*seen[0].0, &seen[0].2["keys"]), ("change", &json!({"best": {"after": "ada"}})));
        assert_eq!(seen[0].2.get("by").is_some(), tells_who);
    }
}

#[tokio::test]
async fn a_watch_sees_what_another_service_on_the_same_store_writes() {
    let sessions = sessions();
    let other = sessile_session::SessionService::over(sessions.store());
    let api =
        Client::new(guarded(sessions.with_poll_interval(Duration::from_millis(20)))).bearing(&of("ada", ""));
    let open = api.open(&format!("{USER}/watch")).await;
    let write = sessile_session::StateWrite {
        principal: Some("another".to_owned()),
        ..sessile_session::StateWrite::new(
            sessile_session::ScopeKey::User("shop".into(), "ada".into()),
            json!({"n": 1}),
        )
    };
    other.write_state(write).await.unwrap();
    let seen = read(open, 2).await;
    let by: ChangedBy = serde_json::from_value(seen[1].2["by"].clone()).unwrap();
    assert!(matches!(by, ChangedBy::Request { principal: Some(name), .. } if name == "another"));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Award {
    points: u64,
}

/// "Who set `user:points` to 1000?", when it was a tool of an agent.
#[tokio::test]
async fn a_tool_is_named_by_the_event_and_the_author_of_its_answer() {
    let script = r#"
rules:
  - when: { tool: award }
    then: { reply: "done" }
  - when: { user: "award" }
    then: { call: { name: award, args: { points: 1000 } } }
"#;
    let award = FunctionTool::new("award", "gives points", async |award: Award, ctx: ToolContext| {
        ctx.state().set("user:points", award.points);
        Ok::<_, BoxError>("given")
    });
    let agent = LlmAgent::builder("clerk").model(Scripted::from_yaml("clerk", script).unwrap()).tool(award);
    let sessions = sessions();
    let runner = Runner::builder("shop", agent.build().unwrap(), sessions.clone()).build().unwrap();
    let api = Client::new(Server::new(sessions, Apps::new().with(App::new(runner))));
    api.post(SESSION, json!({})).await.ok();
    let message = json!({"role": "user", "parts": [{"text": "award"}]});
    let run = json!({"appName": "shop", "userId": "ada", "sessionId": "s", "newMessage": message});
    let events = api.post("/run", run).await.ok();
    let answer =
        events.as_array().unwrap().iter().find(|event| event["actions"]["stateDelta"]["user:points"] == 1000);
    let answer = answer.expect("the tool's answer carries the change")["id"].clone();
    api.delete(SESSION).await.ok();
    let history = api.get(&format!("{USER}/history?key=points")).await.ok();
    let expected = json!({"user": "ada", "session": "s", "event": answer, "author": "clerk"});
    assert_eq!(history["changes"][0]["by"], expected);
    assert_eq!(history["changes"][0]["keys"], json!({"points": {"after": 1000}}));
}
