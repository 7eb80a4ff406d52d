//! Every hook that can write state really commits it, on every store.

use std::sync::Arc;

use serde_json::{Value, json};
use sessile_agent::{
    Agent, AgentCallbacks, AgentError, AgentTool, BeforeTool, CallbackContext, FunctionTool,
    InvocationContext, LlmAgent, LoopAgent, ModelError, ModelRequest, ModelResponse, ParallelAgent,
    RunRequest, Runner, SequentialAgent, ToolCall, ToolContext, ToolError,
};
use sessile_postgres::PostgresStore;
use sessile_session::{
    BoxError, CreateSession, Event, EventWindow, MemoryStore, SessionKey, SessionService, Store,
};
use sessile_sqlite::SqliteStore;
use sessile_state::State;

use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Writes to every scope, and removes a key of each that is stored.
fn write(state: &State) {
    for prefix in ["", "user:", "app:"] {
        state.set(format!("{prefix}new"), json!({"deep": [1, null]}));
        state.remove(&format!("{prefix}old"));
    }
    state.set("temp:new", 1);
    state.set("null", Value::Null);
}

fn before() -> Value {
    json!({"old": 1, "user:old": 2, "app:old": 3})
}

fn after() -> Value {
    let new = json!({"deep": [1, null]});
    json!({"new": new, "user:new": new, "app:new": new, "null": null})
}

fn tool() -> impl sessile_agent::Tool {
    FunctionTool::new("tool", "", async |_: Nothing| Ok::<_, BoxError>("done"))
}

fn broken() -> impl sessile_agent::Tool {
    FunctionTool::new("tool", "", async |_: Nothing| Err::<(), BoxError>("broken".into()))
}

fn calling() -> sessile_agent::LlmAgentBuilder {
    agent([call("tool", json!({})), reply("ok")])
}

/// A custom agent that emits its changes.
struct Custom;

#[async_trait::async_trait]
impl Agent for Custom {
    fn name(&self) -> &str {
        "custom"
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        let changes = ctx.changes();
        write(changes.state());
        ctx.emit_with(Event::new("custom"), changes).await?;
        Ok(())
    }
}

/// One agent for each hook that can write.
fn hooks() -> Vec<(&'static str, Arc<dyn Agent>)> {
    fn built(builder: sessile_agent::LlmAgentBuilder) -> Arc<dyn Agent> {
        Arc::new(builder.build().unwrap())
    }
    let callbacks = AgentCallbacks::new().before(async |ctx: CallbackContext| {
        write(ctx.state());
        Ok(None)
    });
    vec![
        (
            "before_agent",
            built(agent([reply("ok")]).before_agent(async |ctx: CallbackContext| {
                write(ctx.state());
                Ok(None)
            })),
        ),
        (
            "after_agent",
            built(agent([reply("ok")]).after_agent(async |ctx: CallbackContext| {
                write(ctx.state());
                Ok(None)
            })),
        ),
        (
            "before_model",
            built(agent([reply("ok")]).before_model(async |ctx: CallbackContext, request: ModelRequest| {
                write(ctx.state());
                Ok(request.into())
            })),
        ),
        (
            "before_model that answers",
            built(agent([]).before_model(async |ctx: CallbackContext, _: ModelRequest| {
                write(ctx.state());
                Ok(ModelResponse::text("ok").into())
            })),
        ),
        (
            "after_model",
            built(agent([reply("ok")]).after_model(async |ctx: CallbackContext, _: Arc<ModelResponse>| {
                write(ctx.state());
                Ok(None)
            })),
        ),
        (
            "on_model_error",
            built(agent([fails("X")]).on_model_error(
                async |ctx: CallbackContext, _: Arc<ModelRequest>, _: Arc<ModelError>| {
                    write(ctx.state());
                    Ok(Some(ModelResponse::text("ok")))
                },
            )),
        ),
        (
            "tool",
            built(calling().tool(FunctionTool::new("tool", "", async |_: Nothing, ctx: ToolContext| {
                write(ctx.state());
                Ok::<_, BoxError>(())
            }))),
        ),
        (
            "long-running tool",
            built(
                calling().tool(
                    FunctionTool::new("tool", "", async |_: Nothing, ctx: ToolContext| {
                        write(ctx.state());
                        Ok::<_, BoxError>(())
                    })
                    .long_running(),
                ),
            ),
        ),
        (
            "before_tool",
            built(calling().tool(tool()).before_tool(async |ctx: ToolContext, call: ToolCall| {
                write(ctx.state());
                Ok(BeforeTool::Call(call.args))
            })),
        ),
        (
            "before_tool that answers",
            built(calling().tool(tool()).before_tool(async |ctx: ToolContext, _: ToolCall| {
                write(ctx.state());
                Ok(BeforeTool::Answer(json!({})))
            })),
        ),
        (
            "after_tool",
            built(calling().tool(tool()).after_tool(
                async |ctx: ToolContext, _: Arc<ToolCall>, _: Arc<Value>| {
                    write(ctx.state());
                    Ok(None)
                },
            )),
        ),
        (
            "on_tool_error",
            built(calling().tool(broken()).on_tool_error(
                async |ctx: ToolContext, _: Arc<ToolCall>, _: Arc<ToolError>| {
                    write(ctx.state());
                    Ok(None)
                },
            )),
        ),
        ("custom agent", Arc::new(Custom)),
        ("in order", Arc::new(SequentialAgent::new("outer", [Custom]).unwrap())),
        ("in a loop", Arc::new(LoopAgent::new("outer", [Custom], 2).unwrap())),
        ("side by side", Arc::new(ParallelAgent::new("outer", [Custom]).unwrap())),
        (
            "callbacks of a composite agent",
            Arc::new(
                SequentialAgent::new("outer", Vec::<LlmAgent>::new()).unwrap().with_callbacks(callbacks),
            ),
        ),
        (
            "agent as a tool",
            built(
                agent([call("custom", json!({"request": "go"})), reply("ok")]).tool(AgentTool::new(Custom)),
            ),
        ),
    ]
}

/// Runs every hook in a session of its own application, and reads what is stored through `again`.
async fn every_hook_commits(sessions: SessionService, again: SessionService) {
    for (place, (hook, agent)) in hooks().into_iter().enumerate() {
        let key = SessionKey::new(format!("app{place}"), "ada", "s1").unwrap();
        let state: serde_json::Map<String, Value> = serde_json::from_value(before()).unwrap();
        sessions
            .create(CreateSession::new(key.app(), key.user()).with_id(key.id()).with_state(state))
            .await
            .unwrap();
        let runner = Runner::builder(key.app(), agent, sessions.clone()).build().unwrap();

        runner.run(RunRequest::new("ada", "s1").with_text("go")).collect().await.unwrap();

        let stored = again.get(&key, EventWindow::ALL).await.unwrap().unwrap();
        assert_eq!(Value::Object(stored.state().to_map()), after(), "{hook}");
        assert!(!serde_json::to_string(&stored).unwrap().contains("temp:"), "{hook}");
    }
}

#[tokio::test]
async fn every_hook_commits_in_memory() {
    let sessions = SessionService::new(MemoryStore::new());
    every_hook_commits(sessions.clone(), sessions).await;
}

#[tokio::test]
async fn every_hook_commits_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:///{}", folder.path().join("sessile.db").display());
    let open = async || SessionService::new(SqliteStore::open_url(&url).await.unwrap());
    every_hook_commits(open().await, open().await).await;
}

#[tokio::test]
async fn every_hook_commits_on_postgres() {
    let url = new_schema().await;
    let open = async || Arc::new(PostgresStore::connect_url(&url).await.unwrap()) as Arc<dyn Store>;
    every_hook_commits(SessionService::over(open().await), SessionService::over(open().await)).await;
}

/// The URL of a new, empty schema in the server that `./test` starts.
pub(crate) async fn new_schema() -> String {
    let server = std::env::var("SESSILE_TEST_POSTGRES")
        .expect("SESSILE_TEST_POSTGRES names a PostgreSQL; `./test` starts one, or set it to postgresql://user@host/database");
    let name = format!("test_{}", uuid::Uuid::new_v4().simple());
    let (client, connection) = tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
    drop(client);
    connection.await.unwrap().unwrap();
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}options=-csearch_path%3D{name}")
}
