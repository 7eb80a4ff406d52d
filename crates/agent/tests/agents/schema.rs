//! A schema in runs: the tool that makes a mistake is told, and what its step did besides is kept.

use serde_json::json;
use sessile_agent::{CallbackContext, FunctionTool, LlmAgent, RunRequest, ToolContext};
use sessile_session::{BoxError, Content, MemoryStore, SessionService};
use sessile_state::{StateSchema, ValueType};

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

async fn checked_sessions() -> SessionService {
    let schema = StateSchema::new()
        .declare("user:points", ValueType::integer().at_least(0))
        .declare("tags", ValueType::list(ValueType::string()))
        .key::<String>("answer");
    let service = SessionService::new(MemoryStore::new()).with_schema(key().app(), schema);
    with_session(service, json!({"user:points": 1})).await
}

fn tool(
    name: &str,
    work: fn(&sessile_state::State) -> Result<(), BoxError>,
) -> impl sessile_agent::Tool + use<> {
    FunctionTool::new(name, "", move |_: Nothing, ctx: ToolContext| async move {
        work(ctx.state())?;
        Ok::<_, BoxError>("done")
    })
}

#[tokio::test]
async fn a_tool_that_writes_what_is_not_allowed_is_told_and_the_others_of_its_step_are_kept() {
    let sessions = checked_sessions().await;
    let turns = [
        calls([("wrong", json!({})), ("loud", json!({})), ("right", json!({})), ("spend", json!({}))]),
        reply("done"),
    ];
    let agent = agent(turns)
        .tool(tool("wrong", |state| Ok(state.try_set("user:points", "many")?)))
        .tool(tool("loud", |state| {
            state.set("tag", 1);
            Ok(())
        }))
        .tool(tool("right", |state| {
            state.append("tags", ["new"]);
            state.add("user:points", 4);
            Ok(())
        }))
        .tool(tool("spend", |state| Ok(state.try_add("user:points", -2)?)))
        .build()
        .unwrap();
    runner(agent, &sessions).run(says("go")).collect().await.unwrap();
    let stored = session(&sessions).await;
    let answers: Vec<String> = stored
        .events()
        .iter()
        .flat_map(|event| event.event.function_responses())
        .map(|answer| serde_json::to_string(&answer.response).unwrap())
        .collect();
    assert!(
        answers[0].contains("`user:points` is declared as `integer` and cannot hold a string"),
        "{answers:?}"
    );
    assert!(
        answers[1].contains("`tag` (a number) is not declared in the schema; did you mean `tags`?"),
        "{answers:?}"
    );
    assert!(answers[2].contains("done"), "{answers:?}");
    assert!(answers[3].contains("-1, which is below the minimum 0"), "{answers:?}");
    assert_eq!(state(&sessions).await, json!({"tags": ["new"], "user:points": 5}));
}

#[tokio::test]
async fn an_answer_and_a_delta_of_a_run_are_checked_when_they_are_committed() {
    let sessions = checked_sessions().await;
    let agent = || LlmAgent::builder("agent").model(Says("hello"));
    let wrong = agent().output_key("anser").build().unwrap();
    let error = runner(wrong, &sessions).run(says("go")).collect().await.unwrap_err().to_string();
    assert!(error.contains("\"anser\"") && error.contains("did you mean `answer`?"), "{error}");
    let right = runner(agent().output_key("answer").build().unwrap(), &sessions);
    let delta = json!({"user:points": 1.5});
    let request = RunRequest::new(key().user(), key().id()).with_text("go").with_delta(delta);
    let error = right.run(request).collect().await.unwrap_err().to_string();
    assert!(
        error.contains("\"user:points\": it is declared as `integer` and cannot hold a number"),
        "{error}"
    );
    right.run(says("go")).collect().await.unwrap();
    assert_eq!(state(&sessions).await, json!({"answer": "hello", "user:points": 1}));
}

#[tokio::test]
async fn a_callback_that_writes_what_is_not_allowed_fails() {
    let sessions = checked_sessions().await;
    let agent = LlmAgent::builder("agent")
        .model(Says("hello"))
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().try_set("tags", "new")?;
            Ok::<Option<Content>, BoxError>(None)
        })
        .build()
        .unwrap();
    let error = runner(agent, &sessions).run(says("go")).collect().await.unwrap_err().to_string();
    assert!(error.contains("`tags` is declared as `list of string` and cannot hold a string"), "{error}");
    assert_eq!(state(&sessions).await, json!({"user:points": 1}));
}
