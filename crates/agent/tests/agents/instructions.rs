//! What models are told.

use std::sync::Arc;

use serde_json::json;
use sessile_agent::{LlmAgent, ReadonlyContext, RunError, Runner, inject_session_state};
use sessile_artifact::{ArtifactKey, ArtifactService, MemoryArtifacts, NewArtifact};
use sessile_session::{MemoryStore, Part, SessionService};

use crate::support::*;

async fn stateful() -> SessionService {
    let state =
        json!({"topic": "tea", "user:name": "Ada", "app:tone": "calm", "list": [1, "a"], "nothing": null});
    with_session(SessionService::new(MemoryStore::new()), state).await
}

async fn told(builder: impl Fn(Script) -> LlmAgent) -> (String, Vec<String>) {
    let script = Script::new([reply("ok")]);
    run(builder(script.clone()), &stateful().await, "hello").await.unwrap();
    let asked = script.last_asked();
    let contents = asked.contents.iter().map(|content| content.parts()[0].text.clone().unwrap_or_default());
    (asked.system_instruction.unwrap(), contents.collect())
}

#[tokio::test]
async fn an_instruction_is_filled_in_from_the_state() {
    let (system, _) = told(|script| {
        let text = "{topic} for {user:name}, {app:tone}{mood?}, {list}{nothing}, {{topic}} {\"json\": 1}";
        LlmAgent::builder("agent").model(script).instruction(text).build().unwrap()
    })
    .await;
    assert_eq!(system.split("\n\n").next().unwrap(), "tea for Ada, calm, [1,\"a\"], {topic} {\"json\": 1}");
}

#[tokio::test]
async fn the_pieces_come_in_order() {
    let below = |script: Script| {
        LlmAgent::builder("below")
            .model(script)
            .description("Knows tea.")
            .instruction("Talk of {topic}.")
            .build()
            .unwrap()
    };
    let script = Script::new([call("transfer_to_agent", json!({"agent_name": "below"})), reply("ok")]);
    let root = LlmAgent::builder("root")
        .model(script.clone())
        .global_instruction("Be {app:tone}.")
        .sub_agent(below(script.clone()))
        .build()
        .unwrap();
    run(root, &stateful().await, "hello").await.unwrap();

    let system = script.last_asked().system_instruction.unwrap();
    let paragraphs: Vec<&str> = system.split("\n\n").collect();
    assert_eq!(paragraphs[..2], ["Be calm.", "Talk of tea."]);
    assert!(paragraphs[2].contains("\"below\"") && paragraphs[2].contains("Knows tea."));
    assert!(paragraphs[3].contains("transfer_to_agent") && paragraphs[3].contains("`root`"));
}

#[tokio::test]
async fn a_static_instruction_stays_and_the_instruction_joins_the_conversation() {
    let (system, contents) = told(|script| {
        let builder = LlmAgent::builder("agent").model(script);
        builder.static_instruction("Always {topic}.").instruction("Now {topic}.").build().unwrap()
    })
    .await;
    assert!(system.starts_with("Always {topic}."), "it is never filled in");
    assert!(!system.contains("Now"));
    assert!(contents[0].contains("<<<BEGIN_SYSTEM_INSTRUCTION>>>\nNow tea.\n<<<END_SYSTEM_INSTRUCTION>>>"));
    assert_eq!(contents[1], "hello");
}

#[tokio::test]
async fn a_providers_text_is_used_as_it_is_unless_it_fills_it_in() {
    let (system, _) = told(|script| {
        let builder = LlmAgent::builder("agent").model(script);
        let provider = async |ctx: ReadonlyContext| {
            Ok(format!("{{topic}} {}", ctx.state().get::<String>("topic").unwrap()))
        };
        builder.instruction_provider(provider).build().unwrap()
    })
    .await;
    assert!(system.starts_with("{topic} tea"));
    let (system, _) = told(|script| {
        let builder = LlmAgent::builder("agent").model(script);
        let provider = async |ctx: ReadonlyContext| Ok(inject_session_state("{topic} {{x}}", &ctx).await?);
        builder.instruction_provider(provider).build().unwrap()
    })
    .await;
    assert!(system.starts_with("tea {x}"));
}

#[tokio::test]
async fn a_missing_key_is_an_error_that_says_where_and_what_instead() {
    let sessions = stateful().await;
    let agent = agent([reply("ok")]).instruction("Hello.\nOn {topik}.").build().unwrap();

    let error = run(agent, &sessions, "hello").await.unwrap_err();

    let text = error.to_string();
    for fact in ["`topik`", "agent `agent`", "line 2, column 4", "`topic`"] {
        assert!(text.contains(fact), "{fact} is missing in: {text}");
    }
    assert!(matches!(&error, RunError::Agent { code, .. } if code == "TEMPLATE"));
    assert_eq!(log(&sessions).await, ["user: hello", "agent: !TEMPLATE"]);
}

#[tokio::test]
async fn artifacts_are_filled_in() {
    let (sessions, artifacts) = (stateful().await, Arc::new(MemoryArtifacts::new()));
    let artifact = ArtifactKey { session: key(), name: "guide.txt".into() };
    artifacts
        .save(&artifact, NewArtifact { part: Part::text("Pour slowly."), ..Default::default() })
        .await
        .unwrap();
    let script = Script::new([reply("ok"), reply("never")]);
    let agent =
        |text: &str| LlmAgent::builder("agent").model(script.clone()).instruction(text).build().unwrap();
    let runner = |text: &str| {
        Runner::builder("app", agent(text), sessions.clone()).artifacts(artifacts.clone()).build().unwrap()
    };

    runner("{artifact.guide.txt}{artifact.other?}").run(says("hello")).collect().await.unwrap();
    assert!(script.last_asked().system_instruction.unwrap().starts_with("Pour slowly."));

    let error = runner("{artifact.other}").run(says("hello")).collect().await.unwrap_err();
    assert!(error.to_string().contains("`other`"), "{error}");

    let without = run(agent("{artifact.guide.txt}"), &sessions, "hello").await.unwrap_err();
    assert!(without.to_string().contains("no service for artifacts"), "{without}");
}
