//! What contexts promise about state.

use std::sync::{Arc, Mutex};

use serde_json::json;
use sessile_agent::{
    Agent, AgentError, CallbackContext, FunctionTool, InvocationContext, LlmAgent, SequentialAgent,
    ToolContext,
};
use sessile_session::{BoxError, Event, EventActions};
use sessile_state::Delta;

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn temp_is_shared_by_everyone_in_the_run_and_gone_afterwards() {
    let sessions = sessions().await;
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = |seen: &Arc<Mutex<Vec<String>>>| {
        let seen = seen.clone();
        move |ctx: CallbackContext| {
            let seen = seen.clone();
            async move {
                seen.lock().unwrap().push(ctx.state().get::<String>("temp:token").unwrap_or("none".into()));
                Ok(None)
            }
        }
    };
    let tool = FunctionTool::new("rotate", "", async |_: Nothing, ctx: ToolContext| {
        let token = ctx.state().get::<String>("temp:token").ok_or("there is no token")?;
        ctx.state().set("temp:token", format!("{token}2"));
        Ok::<_, BoxError>(())
    });
    let one = LlmAgent::builder("one")
        .model(Script::new([call("rotate", json!({})), reply("ok"), call("rotate", json!({})), reply("ok")]))
        .tool(tool)
        .before_agent(note(&seen))
        .build()
        .unwrap();
    let two = LlmAgent::builder("two").model(Says("ok")).before_agent(note(&seen)).build().unwrap();
    let runner = runner(SequentialAgent::new("both", [one, two]).unwrap(), &sessions);

    let request = says("go").with_delta(Delta::from_iter([("temp:token", json!("t")), ("kept", json!(1))]));
    runner.run(request).collect().await.unwrap();
    runner.run(says("again")).collect().await.unwrap();

    assert_eq!(*seen.lock().unwrap(), ["t", "t2", "none", "none"]);
    assert_eq!(state(&sessions).await, json!({"kept": 1}));
    let stored = serde_json::to_string(&session(&sessions).await).unwrap();
    assert!(!stored.contains("temp:"), "{stored}");
}

/// Changes state and forgets to emit it.
struct Forgetful;

#[async_trait::async_trait]
impl Agent for Forgetful {
    fn name(&self) -> &str {
        "forgetful"
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        ctx.changes().state().set("lost", 1);
        Ok(())
    }
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn changes_that_no_event_carries_are_said_loudly() {
    let sessions = sessions().await;

    let error = run(Forgetful, &sessions, "go").await.unwrap_err();

    assert_eq!(error.error_type(), "AGENT_PANICKED");
    assert!(error.to_string().contains(r#"changed ["lost"] of session app/ada/s1"#), "{error}");
    assert_eq!(state(&sessions).await, json!({}));
}

#[cfg(debug_assertions)]
#[tokio::test(start_paused = true)]
async fn changes_that_a_tool_makes_after_it_returned_panic_in_debug_builds() {
    let sessions = sessions().await;
    let late: Arc<Mutex<Option<tokio::task::JoinHandle<()>>>> = Arc::default();
    let kept = late.clone();
    let tool = FunctionTool::new("late", "", move |_: Nothing, ctx: ToolContext| {
        let kept = kept.clone();
        async move {
            *kept.lock().unwrap() = Some(tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                ctx.state().set("lost", 1);
            }));
            Ok::<_, BoxError>(())
        }
    });
    run(agent([call("late", json!({})), reply("ok")]).tool(tool).build().unwrap(), &sessions, "go")
        .await
        .unwrap();

    let task = late.lock().unwrap().take().unwrap();
    let panic = task.await.unwrap_err();

    assert!(panic.is_panic());
    assert_eq!(state(&sessions).await, json!({}));
}

#[tokio::test]
async fn a_removal_is_a_removal() {
    let sessions = with_session(
        sessile_session::SessionService::new(sessile_session::MemoryStore::new()),
        json!({"old": 1, "user:old": 2, "null": null}),
    )
    .await;
    let agent = agent([reply("ok")])
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().remove("old");
            ctx.state().remove("user:old");
            Ok(None)
        })
        .after_agent(async |ctx: CallbackContext| {
            ctx.state().set("saw", ctx.state().keys());
            Ok(None)
        })
        .build()
        .unwrap();
    run(agent, &sessions, "go").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"null": null, "saw": ["null"]}));
}

#[tokio::test]
async fn changes_written_into_the_actions_and_into_the_state_are_all_kept() {
    let sessions = sessions().await;
    let both = FunctionTool::new("both", "", async |_: Nothing, ctx: ToolContext| {
        ctx.with_actions(|actions| actions.state_delta.set("tool_actions", json!(1)));
        ctx.state().set("tool_state", 2);
        Ok::<_, BoxError>(())
    });
    let other = FunctionTool::new("other", "", async |_: Nothing, ctx: ToolContext| {
        ctx.with_actions(|actions| actions.state_delta.set("other_actions", json!(3)));
        Ok::<_, BoxError>(())
    });
    let agent = agent([calls([("both", json!({})), ("other", json!({}))]), reply("ok")])
        .tool(both)
        .tool(other)
        .before_agent(async |ctx: CallbackContext| {
            ctx.with_actions(|actions| actions.state_delta.set("actions", json!(4)));
            ctx.state().set("state", 5);
            Ok(None)
        })
        .build()
        .unwrap();
    run(agent, &sessions, "go").await.unwrap();
    assert_eq!(
        state(&sessions).await,
        json!({"tool_actions": 1, "tool_state": 2, "other_actions": 3, "actions": 4, "state": 5})
    );
}

/// Emits an event that cannot be stored.
struct Bad;

#[async_trait::async_trait]
impl Agent for Bad {
    fn name(&self) -> &str {
        "bad"
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        let actions = EventActions::from_delta(json!({"user:user:x": 1}));
        ctx.emit(Event::new("bad").with_actions(actions)).await?;
        Ok(())
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_stored_is_the_runs_error_and_names_the_key() {
    let sessions = sessions().await;
    let error = run(Bad, &sessions, "go").await.unwrap_err();
    assert!(error.to_string().contains("user:user:x"), "{error}");
    assert_eq!(log(&sessions).await, ["user: go", "bad: !SESSION"]);
}
