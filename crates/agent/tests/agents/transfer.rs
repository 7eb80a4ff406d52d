//! Agents that hand over.

use serde_json::json;
use sessile_agent::{LlmAgent, RunError};

use crate::support::*;

fn to(name: &str) -> Turn {
    call("transfer_to_agent", json!({ "agent_name": name }))
}

#[tokio::test]
async fn the_agent_that_was_handed_over_to_keeps_the_word() {
    let sessions = sessions().await;
    let below = Script::new([reply("tea is green"), reply("and black")]);
    let tea = LlmAgent::builder("tea").model(below.clone()).description("Knows tea.").build().unwrap();
    let above = Script::new([to("tea")]);
    let root = LlmAgent::builder("root").model(above.clone()).sub_agent(tea).build().unwrap();
    let runner = runner(root, &sessions);

    runner.run(says("tea?")).collect().await.unwrap();
    runner.run(says("more?")).collect().await.unwrap();

    assert_eq!(
        log(&sessions).await,
        [
            "user: tea?",
            "root: calls transfer_to_agent",
            r#"root: transfer_to_agent -> {"result":null}"#,
            "tea: tea is green",
            "user: more?",
            "tea: and black",
        ]
    );
    assert_eq!(above.asked().len(), 1);
    let tools = &above.asked()[0].tools;
    assert_eq!(tools[0].parameters.as_ref().unwrap()["properties"]["agent_name"]["enum"], json!(["tea"]));
    assert_eq!(
        below.asked()[0].tools[0].parameters.as_ref().unwrap()["properties"]["agent_name"]["enum"],
        json!(["root"])
    );
}

#[tokio::test]
async fn an_agent_that_may_not_go_back_does_not_keep_the_word() {
    let sessions = sessions().await;
    let tea =
        LlmAgent::builder("tea").model(Says("green")).disallow_transfer_to_parent(true).build().unwrap();
    let root = LlmAgent::builder("root").model(Script::new([to("tea"), reply("root again")])).sub_agent(tea);
    let runner = runner(root.build().unwrap(), &sessions);

    runner.run(says("tea?")).collect().await.unwrap();
    let events = runner.run(says("more?")).collect().await.unwrap();

    assert_eq!(line(&events[0]), "root: root again");
}

#[tokio::test]
async fn agents_that_hand_over_to_each_other_end_at_the_limit_and_not_with_the_stack() {
    let sessions = sessions().await;
    let script = Script::default();
    for turn in 0..20_000 {
        script.then(to(if turn % 2 == 0 { "pong" } else { "ping" }));
    }
    let pong = LlmAgent::builder("pong").model(script.clone()).build().unwrap();
    let ping = LlmAgent::builder("ping").model(script.clone()).sub_agent(pong).build().unwrap();
    let runner = runner(ping, &sessions);
    let config =
        sessile_agent::RunConfig { window: sessile_session::EventWindow::NONE, ..Default::default() };

    let error = runner.run(says("go").with_config(config)).collect().await.unwrap_err();

    assert!(matches!(error, RunError::LimitExceeded { limit: 500 }), "{error}");
    assert_eq!(script.asked().len(), 500);
    assert_eq!(log(&sessions).await.last().unwrap(), "ping: !LlmCallsLimitExceededError");
}

#[tokio::test]
async fn transferring_to_an_unknown_agent_is_an_error_that_leaves_no_call_open() {
    let sessions = sessions().await;
    let below = LlmAgent::builder("tea").model(Says("x")).build().unwrap();
    let root = LlmAgent::builder("root").model(Script::new([to("coffee")])).sub_agent(below).build().unwrap();

    let error = run(root, &sessions, "coffee?").await.unwrap_err();

    assert_eq!(error.to_string(), "agent `root` cannot hand over to `coffee`: it may hand over to tea");
    let log = log(&sessions).await;
    assert!(log[2].starts_with(r#"root: transfer_to_agent -> {"error""#), "{log:?}");
    assert_eq!(log[3], "root: !TRANSFER_TARGET_NOT_FOUND");
}
