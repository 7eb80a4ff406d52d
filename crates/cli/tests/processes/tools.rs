//! What people write in tools and callbacks: eight processes run agents whose tools and callbacks
//! count.

use std::sync::Arc;

use serde_json::{Value, json};
use sessile_agent::{
    CallbackContext, FunctionTool, IncludeContents, LlmAgent, Reducer, RunRequest, Runner, ToolContext,
};
use sessile_model::{Rule, Scripted, call, reply};
use sessile_session::{BoxError, Event, EventWindow, SessionKey};

use crate::child::{say, wait_for_the_others};
use crate::test_store::{TestStore, block_on, service};
use crate::{ALL, EACH, PROCESSES};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Runs an agent in a session of its own. Its callback adds; its tool modifies a key that has a
/// reducer, counts in a transaction, and reads, computes and sets.
pub(crate) async fn run_tools(process: u32, url: &str) {
    let sessions = service(url).await;
    let model = Scripted::from_rules([
        Rule::tool("count").then(reply("counted")),
        Rule::always().then(call("count", json!({}))),
    ]);
    let count = FunctionTool::new("count", "Counts.", async |_: Nothing, ctx: ToolContext| {
        ctx.state().try_modify("user:reduced", 0, |n: u32| n + 1)?;
        let read: u32 = ctx.state().get("user:set").unwrap_or(0);
        let [user, app] = ctx
            .transact(|state| {
                let user = state.try_modify("user:transacted", 0, |n: u32| n + 1)?;
                Ok([user, state.try_modify("app:transacted", 0, |n: u32| n + 1)?])
            })
            .await?;
        ctx.state().set("user:set", read + 1);
        say(&format!("saw {user} {app} {user}"));
        Ok::<_, BoxError>(user)
    });
    let agent = LlmAgent::builder("counter")
        .model(model)
        .include_contents(IncludeContents::None)
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().add("user:added", 1);
            Ok(None)
        })
        .tool(count)
        .reducer("user:reduced", Reducer::Add)
        .build()
        .expect("the agent is built");
    let runner = Runner::builder("shop", Arc::new(agent), sessions.clone()).auto_create(true).build();
    let runner = runner.expect("the runner is built");
    wait_for_the_others();
    for _ in 0..EACH {
        let request = RunRequest::new("ada", format!("own-{process}")).with_text("go");
        runner.run(request).collect().await.expect("the agent answers");
    }
    sessions.close().await.expect("the store is closed");
}

/// Every count is there; of those that were set from a value that was read, what is missing was
/// reported.
pub(crate) fn counts_are_there_or_reported(store: &TestStore) {
    block_on(async {
        let sessions = service(&store.url).await;
        let user = sessions.user_state("shop", "ada").await.expect("it is read");
        let app = sessions.app_state("shop").await.expect("it is read");
        for (name, found) in [
            ("user:added", &user["added"]),
            ("user:reduced", &user["reduced"]),
            ("user:transacted", &user["transacted"]),
            ("app:transacted", &app["transacted"]),
        ] {
            assert_eq!(**found, json!(ALL), "{name}");
        }
        let mut reported = 0;
        for process in 0..PROCESSES {
            let key = SessionKey::new("shop", "ada", &format!("own-{process}")).expect("it is a key");
            let session = sessions.get(&key, EventWindow::ALL).await.expect("it is read").expect("it exists");
            reported += session.events().iter().map(|event| missing(event)).sum::<i64>();
        }
        let stored = user["set"].as_i64().expect("a number");
        assert_eq!(stored + reported, i64::from(ALL), "{stored} of user:set are stored");
    });
}

/// How many counts an event overwrote, as it reports itself.
fn missing(event: &Event) -> i64 {
    let number = |report: &Value, name: &str| report.get(name).map_or(0, |n| n.as_i64().expect("a number"));
    let report = event.overwrote().and_then(|overwrote| overwrote.get("user:set"));
    report.map_or(0, |report| number(report, "found") - number(report, "read"))
}
