//! Callbacks: what they may do, in which order, and what of it is stored.

use serde_json::json;
use sessile_agent::{
    BeforeModel, BeforeTool, CallbackContext, FunctionTool, ModelRequest, ModelResponse, RunError,
    ToolContext,
};
use sessile_session::{BoxError, Content};

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_content_from_before_agent_is_the_answer() {
    let sessions = sessions().await;
    let agent = agent([])
        .output_key("answer")
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().set("seen", true);
            Ok(Some(Content::text("model", "closed today")))
        })
        .before_agent(async |_: CallbackContext| panic!("the first one answered"))
        .after_agent(async |_: CallbackContext| panic!("it is skipped"))
        .build()
        .unwrap();

    let events = run(agent, &sessions, "hello").await.unwrap();

    assert_eq!(events.len(), 1);
    assert_eq!(text(&events[0]), "closed today");
    assert_eq!(state(&sessions).await, json!({"seen": true, "answer": "closed today"}));
}

#[tokio::test]
async fn changes_of_agent_callbacks_are_events_of_their_own() {
    let sessions = sessions().await;
    let agent = agent([reply("hi")])
        .output_key("answer")
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().set("before", 1);
            Ok(None)
        })
        .after_agent(async |ctx: CallbackContext| {
            let answer = ctx.state().get::<String>("answer");
            ctx.state().set("after", answer);
            Ok(Some(Content::text("model", "bye")))
        })
        .build()
        .unwrap();

    run(agent, &sessions, "hello").await.unwrap();

    assert_eq!(log(&sessions).await, ["user: hello", "agent:", "agent: hi", "agent: bye"]);
    assert_eq!(state(&sessions).await, json!({"before": 1, "answer": "hi", "after": "hi"}));
}

#[tokio::test]
async fn model_callbacks_change_the_question_and_the_answer_and_land_in_its_event() {
    let sessions = sessions().await;
    let script = Script::new([reply("plain")]);
    let agent = sessile_agent::LlmAgent::builder("agent")
        .model(script.clone())
        .before_model(async |ctx: CallbackContext, mut request: ModelRequest| {
            ctx.state().set("asked", 1);
            request.add_instruction("Be brief.");
            Ok(request.into())
        })
        .after_model(async |ctx: CallbackContext, response: std::sync::Arc<ModelResponse>| {
            ctx.state().set("answered", true);
            assert_eq!(response.content.as_ref().unwrap().parts()[0].text.as_deref(), Some("plain"));
            Ok(Some(ModelResponse::text("decorated")))
        })
        .after_model(async |_: CallbackContext, _: std::sync::Arc<ModelResponse>| {
            panic!("the first one answered")
        })
        .build()
        .unwrap();

    let events = run(agent, &sessions, "hello").await.unwrap();

    assert!(script.last_asked().system_instruction.unwrap().ends_with("Be brief."));
    assert_eq!(log(&sessions).await, ["user: hello", "agent: decorated"]);
    assert_eq!(events[0].actions.state_delta, json!({"asked": 1, "answered": true}).into());
}

#[tokio::test]
async fn a_callback_that_continues_leaves_the_question_as_it_was() {
    let sessions = sessions().await;
    let script = Script::new([call("echo", json!({"n": 7})), reply("seven")]);
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Echo {
        n: u32,
    }
    let agent = sessile_agent::LlmAgent::builder("agent")
        .model(script.clone())
        .tool(FunctionTool::new("echo", "", async |echo: Echo| Ok::<_, sessile_session::BoxError>(echo.n)))
        .before_model(async |_: CallbackContext, mut request: ModelRequest| {
            request.add_instruction("Be brief.");
            Ok(request.into())
        })
        .before_model(async |ctx: CallbackContext, _: ModelRequest| {
            ctx.state().add("asked", 1);
            Ok(BeforeModel::Continue)
        })
        .before_tool(async |ctx: ToolContext, _: sessile_agent::ToolCall| {
            ctx.state().add("called", 1);
            Ok(BeforeTool::Continue)
        })
        .build()
        .unwrap();

    run(agent, &sessions, "hello").await.unwrap();

    assert!(script.last_asked().system_instruction.unwrap().ends_with("Be brief."));
    assert_eq!(
        log(&sessions).await,
        ["user: hello", "agent: calls echo", r#"agent: echo -> {"result":7}"#, "agent: seven"]
    );
    assert_eq!(state(&sessions).await, json!({"asked": 2, "called": 1}));
}

#[tokio::test]
async fn an_answer_before_the_model_skips_it_and_what_comes_after() {
    let sessions = sessions().await;
    let script = Script::new([]);
    let agent = sessile_agent::LlmAgent::builder("agent")
        .model(script.clone())
        .before_model(async |_: CallbackContext, request: ModelRequest| Ok(BeforeModel::Ask(request)))
        .before_model(async |_: CallbackContext, _: ModelRequest| Ok(ModelResponse::text("cached").into()))
        .after_model(async |_: CallbackContext, _: std::sync::Arc<ModelResponse>| panic!("it is skipped"))
        .build()
        .unwrap();

    run(agent, &sessions, "hello").await.unwrap();

    assert!(script.asked().is_empty());
    assert_eq!(log(&sessions).await, ["user: hello", "agent: cached"]);
}

#[tokio::test]
async fn a_model_error_can_be_answered_or_is_stored_and_returned() {
    let sessions = sessions().await;
    let answering = agent([fails("QUOTA")])
        .on_model_error(
            async |ctx: CallbackContext,
                   request: std::sync::Arc<ModelRequest>,
                   error: std::sync::Arc<sessile_agent::ModelError>| {
                ctx.state().set("failed", error.code());
                assert_eq!(request.contents.len(), 1);
                Ok(Some(ModelResponse::text("later, please")))
            },
        )
        .build()
        .unwrap();
    run(answering, &sessions, "hello").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"failed": "QUOTA"}));

    let error = run(agent([fails("QUOTA")]).build().unwrap(), &sessions, "again").await.unwrap_err();

    let RunError::Agent { agent, code, message, .. } = &error else { panic!("{error}") };
    assert_eq!((agent.as_str(), code.as_str(), message.as_str()), ("agent", "QUOTA", "the model says QUOTA"));
    assert_eq!(error.error_type(), "QUOTA");
    assert_eq!(log(&sessions).await, ["user: hello", "agent: later, please", "user: again", "agent: !QUOTA"]);
}

#[tokio::test]
async fn tool_callbacks_change_arguments_and_results_and_answer_for_tools() {
    let sessions = sessions().await;
    let double = FunctionTool::new("double", "", async |args: Number| Ok::<_, BoxError>(args.n * 2));
    let skipped = FunctionTool::new("skipped", "", async |_: Nothing| -> Result<(), BoxError> {
        panic!("never called")
    });
    let broken = FunctionTool::new("broken", "", async |_: Nothing| Err::<(), BoxError>("broken".into()));
    let script =
        [calls([("double", json!({"n": 1})), ("skipped", json!({})), ("broken", json!({}))]), reply("done")];
    let agent = agent(script)
        .tool(double)
        .tool(skipped)
        .tool(broken)
        .before_tool(async |ctx: ToolContext, call: sessile_agent::ToolCall| {
            ctx.state().set(format!("before_{}", call.tool.name()), true);
            match call.tool.name() {
                "double" => Ok(BeforeTool::Call(serde_json::Map::from_iter([("n".to_owned(), json!(21))]))),
                "skipped" => Ok(BeforeTool::Answer(json!({}))),
                _ => Ok(BeforeTool::Call(call.args)),
            }
        })
        .after_tool(
            async |ctx: ToolContext,
                   call: std::sync::Arc<sessile_agent::ToolCall>,
                   result: std::sync::Arc<serde_json::Value>| {
                ctx.state().set(format!("after_{}", call.tool.name()), &*result);
                Ok((call.tool.name() == "skipped").then(|| json!({"replaced": true})))
            },
        )
        .on_tool_error(
            async |ctx: ToolContext,
                   _: std::sync::Arc<sessile_agent::ToolCall>,
                   error: std::sync::Arc<sessile_agent::ToolError>| {
                ctx.state().set("error", error.to_string());
                Ok(Some(json!("repaired")))
            },
        )
        .build()
        .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(
        line(&events[1]),
        r#"agent: double -> {"result":42} skipped -> {"replaced":true} broken -> {"result":"repaired"}"#
    );
    assert_eq!(
        state(&sessions).await,
        json!({
            "before_double": true, "before_skipped": true, "after_double": 42, "after_skipped": {},
            "error": "broken", "after_broken": "repaired",
        })
    );
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: i64,
}

#[tokio::test]
async fn a_callback_that_fails_or_panics_is_the_runs_error_and_changes_nothing() {
    let cases: [(&str, sessile_agent::LlmAgentBuilder); 4] = [
        (
            "before_agent",
            agent([reply("x")]).before_agent(async |ctx: CallbackContext| {
                ctx.state().set("half", 1);
                Err("broken".into())
            }),
        ),
        (
            "after_agent",
            agent([reply("x")]).after_agent(async |ctx: CallbackContext| {
                ctx.state().set("half", 1);
                panic!("broken")
            }),
        ),
        (
            "before_model",
            agent([reply("x")]).before_model(async |ctx: CallbackContext, _: ModelRequest| {
                ctx.state().set("half", 1);
                Err("broken".into())
            }),
        ),
        (
            "after_model",
            agent([reply("x")]).after_model(
                async |ctx: CallbackContext, _: std::sync::Arc<ModelResponse>| {
                    ctx.state().set("half", 1);
                    panic!("broken")
                },
            ),
        ),
    ];
    for (hook, builder) in cases {
        let sessions = sessions().await;
        let error = run(builder.build().unwrap(), &sessions, "hello").await.unwrap_err();
        assert!(error.to_string().contains(hook) && error.to_string().contains("broken"), "{error}");
        assert_eq!(log(&sessions).await.last().unwrap(), "agent: !CALLBACK_FAILED");
        assert_eq!(state(&sessions).await, json!({}), "{hook}");
    }
}

#[tokio::test]
async fn a_tool_callback_that_fails_leaves_no_call_unanswered() {
    let sessions = sessions().await;
    let fine = FunctionTool::new("fine", "", async |_: Nothing, ctx: ToolContext| {
        ctx.state().set("fine", true);
        Ok::<_, BoxError>("ok")
    });
    let other = FunctionTool::new("other", "", async |_: Nothing| Ok::<_, BoxError>("ok"));
    let agent = agent([calls([("fine", json!({})), ("other", json!({}))])])
        .tool(fine)
        .tool(other)
        .after_tool(
            async |_: ToolContext,
                   call: std::sync::Arc<sessile_agent::ToolCall>,
                   _: std::sync::Arc<serde_json::Value>| {
                match call.tool.name() {
                    "other" => Err("broken".into()),
                    _ => Ok(None),
                }
            },
        )
        .build()
        .unwrap();

    run(agent, &sessions, "go").await.unwrap_err();

    let log = log(&sessions).await;
    assert!(log[2].starts_with(r#"agent: fine -> {"result":"ok"} other -> {"error":"after_tool"#), "{log:?}");
    assert_eq!(log[3], "agent: !CALLBACK_FAILED");
    assert_eq!(state(&sessions).await, json!({"fine": true}), "what was done is kept");
}
