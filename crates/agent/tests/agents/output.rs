//! `output_key`: what is kept of an answer.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sessile_agent::{CallbackContext, FunctionTool, LlmAgent, ModelResponse, SequentialAgent};
use sessile_session::{BoxError, Content, Part};

use crate::support::*;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn only_the_final_text_is_kept_and_once() {
    let sessions = sessions().await;
    let tool = FunctionTool::new("look", "", async |_: Nothing| Ok::<_, BoxError>("seen"));
    let thinking = Turn::Says(vec![
        Content {
            role: Some("model".into()),
            parts: Some(vec![Part::text("let me look"), call_part("look", json!({}))]),
            ..Content::default()
        }
        .into(),
    ]);
    let agent = agent([thinking, reply("done")]).tool(tool).output_key("answer").build().unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(state(&sessions).await, json!({"answer": "done"}));
    let writes = events.iter().filter(|event| event.actions.state_delta.get("answer").is_some()).count();
    assert_eq!(writes, 1);
}

#[tokio::test]
async fn empty_text_and_thoughts_are_not_kept() {
    for parts in [vec![Part::text("")], vec![Part { thought: Some(true), ..Part::text("hm") }]] {
        let sessions = with_session(
            sessile_session::SessionService::new(sessile_session::MemoryStore::new()),
            json!({"answer": "before"}),
        )
        .await;
        let content = Content { role: Some("model".into()), parts: Some(parts), ..Content::default() };
        let agent = agent([Turn::Says(vec![content.into()])]).output_key("answer").build().unwrap();
        run(agent, &sessions, "go").await.unwrap();
        assert_eq!(state(&sessions).await, json!({"answer": "before"}));
    }
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its shape is looked at")]
struct City {
    name: String,
    size: Option<u32>,
}

#[tokio::test]
async fn with_a_schema_it_is_an_object_or_an_error() {
    let sessions = sessions().await;
    let script =
        Script::new([reply(r#"{"name": "Ur", "size": null}"#), reply(r#"{"size": 1}"#), reply("  ")]);
    let build = || {
        LlmAgent::builder("agent")
            .model(script.clone())
            .output_key("city")
            .output_schema::<City>()
            .build()
            .unwrap()
    };

    run(build(), &sessions, "a city?").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"city": {"name": "Ur"}}));
    assert_eq!(script.last_asked().output_schema.unwrap()["required"], json!(["name"]));

    let error = run(build(), &sessions, "another?").await.unwrap_err();
    assert!(
        error.to_string().contains("`agent`") && error.to_string().contains("missing field `name`"),
        "{error}"
    );
    assert_eq!(
        log(&sessions).await[2..],
        ["user: another?", r#"agent: {"size": 1}"#, "agent: !OUTPUT_SCHEMA"]
    );

    run(build(), &sessions, "and?").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"city": {"name": "Ur"}}), "blank text is not kept");
}

#[tokio::test]
async fn a_temp_key_reaches_later_agents_and_is_gone_afterwards() {
    let sessions = sessions().await;
    let second = Script::new([reply("two")]);
    let one = LlmAgent::builder("one").model(Says("draft")).output_key("temp:draft").build().unwrap();
    let two =
        LlmAgent::builder("two").model(second.clone()).instruction("Improve {temp:draft}").build().unwrap();

    let events = run(SequentialAgent::new("both", [one, two]).unwrap(), &sessions, "go").await.unwrap();

    assert!(second.last_asked().system_instruction.unwrap().starts_with("Improve draft"));
    assert_eq!(state(&sessions).await, json!({}));
    assert!(events.iter().all(|event| event.actions.state_delta.is_empty()), "it is in no event");
}

#[tokio::test]
async fn a_callback_that_answers_for_the_model_is_kept_and_after_agent_sees_it() {
    let sessions = sessions().await;
    let agent = agent([])
        .output_key("answer")
        .before_model(async |_: CallbackContext, _: sessile_agent::ModelRequest| {
            Ok(ModelResponse::text("cached").into())
        })
        .after_agent(async |ctx: CallbackContext| {
            ctx.state().set("copy", ctx.state().get::<String>("answer"));
            Ok(None)
        })
        .build()
        .unwrap();
    run(agent, &sessions, "go").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"answer": "cached", "copy": "cached"}));
}

#[tokio::test]
async fn changes_of_a_callback_whose_answer_does_not_fit_are_kept() {
    let sessions = sessions().await;
    let agent = agent([])
        .output_key("city")
        .output_schema::<City>()
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().set("asked", 1);
            Ok(Some(Content::text("model", "no idea")))
        })
        .build()
        .unwrap();

    let error = run(agent, &sessions, "go").await.unwrap_err();

    assert_eq!(error.error_type(), "OUTPUT_SCHEMA");
    assert_eq!(log(&sessions).await, ["user: go", "agent: no idea", "agent: !OUTPUT_SCHEMA"]);
    assert_eq!(state(&sessions).await, json!({"asked": 1}));
}
