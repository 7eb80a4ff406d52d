//! One turn of an agent on the memory store: the user's message, a tool call, the tool's response
//! with a change of state, and the answer. The model answers at once, so what is measured is the
//! runtime.

use std::hint::black_box;
use std::sync::Arc;

use async_trait::async_trait;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sessile_agent::{
    FunctionTool, IncludeContents, LlmAgent, Model, ModelError, ModelRequest, ModelResponse, ModelStream,
    RunRequest, Runner, Streaming, ToolContext,
};
use sessile_session::{BoxError, Content, CreateSession, Event, FunctionCall, MemoryStore, SessionService};
use tokio::runtime::Runtime;

/// Calls the tool once, then answers.
struct CallsOnce;

#[async_trait]
impl Model for CallsOnce {
    fn name(&self) -> &str {
        "calls once"
    }

    async fn generate(&self, request: ModelRequest, _: Streaming) -> Result<ModelStream, ModelError> {
        let last = request.contents.last();
        let answered =
            last.is_some_and(|content| content.parts().iter().any(|part| part.function_response.is_some()));
        let response = if answered {
            ModelResponse::text("done")
        } else {
            let args = [("item".to_owned(), json!("tea").into())].into();
            let call = FunctionCall { name: Some("add".into()), args: Some(args), ..FunctionCall::default() };
            Content { role: Some("model".into()), parts: Some(vec![call.into()]), ..Content::default() }
                .into()
        };
        Ok(Box::pin(stream::iter([Ok(response)])))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    item: String,
}

fn runner(include: IncludeContents, sessions: &SessionService) -> Runner {
    let add = FunctionTool::new("add", "Adds an item.", async |add: Add, ctx: ToolContext| {
        ctx.state().try_set("last_item", add.item)?;
        Ok::<_, BoxError>(json!({"status": "ok"}))
    });
    let agent = LlmAgent::builder("agent")
        .model(CallsOnce)
        .instruction("You help {user:name?} to shop.")
        .tool(add)
        .include_contents(include)
        .build()
        .expect("the agent is well built");
    Runner::builder("app", agent, sessions.clone()).build().expect("so is the runner")
}

/// A session with so many events.
async fn new_session(sessions: &SessionService, events: usize) -> String {
    let event = |number| {
        let (author, role) = if number % 2 == 0 { ("user", "user") } else { ("agent", "model") };
        Event::new(author).with_content(Content::text(role, format!("message {number}")))
    };
    let new = CreateSession::new("app", "ada").with_state([("user:name", json!("Ada"))]);
    let session = sessions.create(new.with_events((0..events).map(event))).await.expect("it is created");
    session.key().id().to_owned()
}

async fn turn(runner: &Runner, session: &str) -> usize {
    let events = runner.run(RunRequest::new("ada", session).with_text("add tea")).collect().await;
    let events = events.expect("the turn succeeds");
    assert_eq!(events.len(), 3);
    events.len()
}

fn turns(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime starts");
    let mut group = criterion.benchmark_group("turn");
    for (name, include, events) in [
        ("new session", IncludeContents::Default, 0),
        ("100 events", IncludeContents::Default, 100),
        ("no contents, 100 events", IncludeContents::None, 100),
        ("no contents, 1000 events", IncludeContents::None, 1_000),
        ("no contents, 10000 events", IncludeContents::None, 10_000),
    ] {
        // Sessions go with their store, so that memory does not fill up.
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || {
                    let sessions = SessionService::over(Arc::new(MemoryStore::new()));
                    let session = runtime.block_on(new_session(&sessions, events));
                    (runner(include, &sessions), session)
                },
                |(runner, session)| {
                    black_box(runtime.block_on(turn(&runner, &session)));
                    (runner, session)
                },
                if events > 1_000 { BatchSize::LargeInput } else { BatchSize::SmallInput },
            );
        });
    }
    group.finish();
}

criterion_group!(benches, turns);
criterion_main!(benches);
