//! The runner: from a message to events.

use std::collections::BTreeMap;

use serde_json::json;
use sessile_agent::{CallbackContext, LlmAgent, RunConfig, RunError, RunRequest, Runner, Streaming};
use sessile_session::{Content, MemoryStore, REMOVED, SessionError, SessionService};
use sessile_state::{Delta, SharedValue};

use crate::support::*;

#[tokio::test]
async fn the_message_and_its_delta_are_one_event() {
    let sessions = sessions().await;
    let runner = runner(agent([reply("hi")]).instruction("{temp:lang} {step}").build().unwrap(), &sessions);
    let delta = Delta::from_iter([
        ("step", json!(1)),
        ("user:u", json!(2)),
        ("app:a", json!(3)),
        ("temp:lang", json!("en")),
    ]);

    let events = runner.run(says("hello").with_delta(delta)).collect().await.unwrap();

    let stored = session(&sessions).await;
    let message = &stored.events()[0];
    assert_eq!(message.author, "user");
    assert!(message.invocation_id.starts_with("e-"));
    assert_eq!(message.invocation_id, events[0].invocation_id);
    assert_eq!(message.actions.state_delta, json!({"step": 1, "user:u": 2, "app:a": 3}).into());
    assert_eq!(state(&sessions).await, json!({"step": 1, "user:u": 2, "app:a": 3}));
}

#[tokio::test]
async fn a_delta_without_a_message_and_nothing_at_all_are_fine_too() {
    let sessions = sessions().await;
    let runner = runner(agent([reply("1"), reply("2")]).build().unwrap(), &sessions);
    runner
        .run(RunRequest::new("ada", "s1").with_delta(Delta::from_iter([("k", json!(1))])))
        .collect()
        .await
        .unwrap();
    runner.run(RunRequest::new("ada", "s1")).collect().await.unwrap();
    assert_eq!(log(&sessions).await, ["user:", "agent: 1", "agent: 2"]);
    assert_eq!(state(&sessions).await, json!({"k": 1}));
}

#[tokio::test]
async fn a_session_that_is_not_there_is_an_error_or_is_created() {
    let sessions = SessionService::new(MemoryStore::new());
    let build = || agent([reply("hi")]).build().unwrap();
    let error = run(build(), &sessions, "hello").await.unwrap_err();
    assert!(matches!(error, RunError::Session(SessionError::NotFound { .. })), "{error}");
    assert_eq!(error.error_type(), "SessionNotFoundError");

    let runner = Runner::builder("app", build(), sessions.clone()).auto_create(true).build().unwrap();
    runner.run(says("hello")).collect().await.unwrap();
    assert_eq!(log(&sessions).await, ["user: hello", "agent: hi"]);

    let error = runner.run(RunRequest::new(" ", "s1").with_text("x")).collect().await.unwrap_err();
    assert!(matches!(error, RunError::Session(SessionError::InvalidId(_))), "{error}");
}

#[tokio::test]
async fn messages_that_cannot_be_answered_are_refused_and_not_stored() {
    let sessions = sessions().await;
    let runner = runner(agent([]).build().unwrap(), &sessions);
    let messages = [
        json!({"parts": [{"functionCall": {"name": "x", "args": {}}}]}),
        json!({"parts": [{"text": "and"}, {"functionResponse": {"id": "1", "name": "x", "response": {}}}]}),
        json!({"parts": [{"functionResponse": {"name": "x", "response": {}}}]}),
    ];
    for message in messages {
        let message: Content = serde_json::from_value(message).unwrap();
        let request = RunRequest::new("ada", "s1").with_message(message);
        let error = runner.run(request).collect().await.unwrap_err();
        assert!(matches!(error, RunError::InvalidMessage { .. }), "{error}");
    }
    assert_eq!(session(&sessions).await.version(), 0);
}

#[tokio::test]
async fn the_role_of_a_message_is_the_users() {
    let sessions = sessions().await;
    let runner = runner(agent([reply("hi")]).build().unwrap(), &sessions);
    let request = RunRequest::new("ada", "s1").with_message(Content::text("model", "I am the model"));
    runner.run(request).collect().await.unwrap();
    assert_eq!(session(&sessions).await.events()[0].content.as_ref().unwrap().role.as_deref(), Some("user"));
}

#[tokio::test]
async fn pieces_are_streamed_under_one_id_and_not_stored() {
    let sessions = sessions().await;
    let agent = agent([pieces(&["he", "llo"])])
        .output_key("answer")
        .before_model(async |ctx: CallbackContext, request: sessile_agent::ModelRequest| {
            ctx.state().set("asked", true);
            Ok(request.into())
        })
        .build()
        .unwrap();
    let config = RunConfig { streaming: Streaming::Pieces, ..RunConfig::default() };

    let events = runner(agent, &sessions).run(says("hi").with_config(config)).collect().await.unwrap();

    let said: Vec<(bool, String)> = events.iter().map(|event| (event.is_partial(), text(event))).collect();
    assert_eq!(said, [(true, "he".into()), (true, "llo".into()), (false, "hello".into())]);
    assert!(events.iter().all(|event| event.id == events[0].id && event.time() > 0.0));
    assert!(events[0].actions.state_delta.is_empty());
    assert_eq!(log(&sessions).await, ["user: hi", "agent: hello"]);
    assert_eq!(state(&sessions).await, json!({"asked": true, "answer": "hello"}));
}

#[tokio::test]
async fn configuration_reaches_the_events() {
    let sessions = sessions().await;
    let custom_metadata: BTreeMap<String, SharedValue> =
        [("trace".to_owned(), json!("t1").into()), ("__adk_internal_x".to_owned(), json!(1).into())].into();
    let config = RunConfig { custom_metadata, yield_user_message: true, ..RunConfig::default() };

    let events = runner(agent([reply("hi")]).build().unwrap(), &sessions)
        .run(says("hello").with_config(config))
        .collect()
        .await
        .unwrap();

    assert_eq!(events.iter().map(|event| line(event)).collect::<Vec<_>>(), ["user: hello", "agent: hi"]);
    for event in &events {
        assert_eq!(
            serde_json::to_value(event.custom_metadata.as_ref().unwrap()).unwrap(),
            json!({"trace": "t1"})
        );
    }
}

#[tokio::test]
async fn configuration_removes_no_keys() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"kept": 1})).await;
    let removed = [(REMOVED.to_owned(), json!(["kept"]).into())].into();
    let config = RunConfig { custom_metadata: removed, ..RunConfig::default() };

    let events = runner(agent([reply("hi")]).build().unwrap(), &sessions)
        .run(says("hello").with_config(config))
        .collect()
        .await
        .unwrap();

    assert_eq!(events[0].custom_metadata, None);
    assert_eq!(state(&sessions).await, json!({"kept": 1}));
}

#[tokio::test]
async fn the_limit_on_model_calls_is_an_error_that_is_stored() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let sessions = sessions().await;
    let again = sessile_agent::FunctionTool::new("again", "", async |_: Nothing| {
        Ok::<_, sessile_session::BoxError>(())
    });
    let agent = agent((0..9).map(|_| call("again", json!({})))).tool(again).build().unwrap();
    let config = RunConfig { max_llm_calls: 2, ..RunConfig::default() };

    let error = runner(agent, &sessions).run(says("go").with_config(config)).collect().await.unwrap_err();

    assert!(matches!(error, RunError::LimitExceeded { limit: 2 }));
    assert_eq!(error.error_type(), "LlmCallsLimitExceededError");
    let log = log(&sessions).await;
    assert_eq!(log.iter().filter(|line| line.contains("calls again")).count(), 2);
    assert_eq!(log.last().unwrap(), "agent: !LlmCallsLimitExceededError");
}

#[tokio::test]
async fn model_calls_of_agents_that_are_tools_count_too() {
    let sessions = sessions().await;
    let expert = Script::new((0..9).map(|_| reply("I know")));
    let tool =
        sessile_agent::AgentTool::new(LlmAgent::builder("expert").model(expert.clone()).build().unwrap());
    let asking = (0..9).map(|_| call("expert", json!({"request": "what?"})));
    let config = RunConfig { max_llm_calls: 4, ..RunConfig::default() };
    let runner = runner(agent(asking).tool(tool).build().unwrap(), &sessions);

    let error = runner.run(says("go").with_config(config)).collect().await.unwrap_err();

    assert!(matches!(error, RunError::LimitExceeded { limit: 4 }), "{error}");
    assert_eq!(expert.asked().len(), 2, "of four calls, two were the expert's");
}

#[tokio::test]
async fn the_same_message_of_an_invocation_that_goes_on_is_stored_once() {
    let sessions = sessions().await;
    let runner = runner(agent([fails("DOWN"), reply("up again")]).build().unwrap(), &sessions);
    runner.run(says("hello")).collect().await.unwrap_err();
    let id = session(&sessions).await.events()[0].invocation_id.clone();
    let events = runner.run(says("hello").with_invocation(&id)).collect().await.unwrap();
    assert_eq!(log(&sessions).await, ["user: hello", "agent: !DOWN", "agent: up again"]);
    assert_eq!(events[0].invocation_id, id);
}

#[tokio::test]
async fn another_writer_does_not_end_the_run_and_is_seen_by_it() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let sessions = sessions().await;
    let others = sessions.clone();
    let tool = sessile_agent::FunctionTool::new(
        "meanwhile",
        "",
        move |_: Nothing, ctx: sessile_agent::ToolContext| {
            let others = others.clone();
            async move {
                ctx.state().set("mine", 1);
                others.transact(&key(), |state| Ok(state.try_set("theirs", "new")?)).await?;
                others.write_user_state("app", "ada", json!({"shared": true})).await?;
                Ok::<_, sessile_session::BoxError>(())
            }
        },
    );
    let script = Script::new([call("meanwhile", json!({})), reply("ok")]);
    let agent = LlmAgent::builder("agent")
        .model(script.clone())
        .tool(tool)
        .instruction("{theirs?} {mine?} {user:shared?}")
        .build()
        .unwrap();

    run(agent, &sessions, "go").await.unwrap();

    assert!(script.last_asked().system_instruction.unwrap().starts_with("new 1 true"));
    assert_eq!(state(&sessions).await, json!({"mine": 1, "theirs": "new", "user:shared": true}));
    assert_eq!(log(&sessions).await.len(), 5);
}

#[tokio::test]
async fn a_session_that_is_deleted_meanwhile_is_an_error() {
    let sessions = sessions().await;
    let others = sessions.clone();
    let agent = agent([reply("never stored")])
        .before_agent(move |_: CallbackContext| {
            let others = others.clone();
            async move {
                others.delete(&key()).await?;
                Ok(None)
            }
        })
        .build()
        .unwrap();
    let error = run(agent, &sessions, "go").await.unwrap_err();
    assert!(matches!(error, RunError::Session(SessionError::NotFound { .. })), "{error}");
}
