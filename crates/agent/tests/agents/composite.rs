//! Agents that run other agents.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sessile_agent::{
    Agent, AgentCallbacks, AgentError, AgentTool, CallbackContext, FunctionTool, InvocationContext, LlmAgent,
    LoopAgent, ParallelAgent, Reducer, RunConfig, SequentialAgent, ToolContext,
};
use sessile_session::{BoxError, Content, Event, MemoryStore, SessionService};

use crate::support::*;

/// Says and writes something after a while.
struct Writer {
    name: &'static str,
    wait: u64,
    state: Value,
}

#[async_trait::async_trait]
impl Agent for Writer {
    fn name(&self) -> &str {
        self.name
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        tokio::time::sleep(Duration::from_millis(self.wait)).await;
        let changes = ctx.changes();
        for (key, value) in self.state.as_object().unwrap() {
            match value.as_str().and_then(|text| text.strip_prefix('+')) {
                Some(item) => {
                    changes.state().modify(key, Vec::<String>::new(), |mut list| {
                        list.push(item.to_owned());
                        list
                    });
                }
                None => changes.state().set(key, value),
            }
        }
        let event = Event::new(self.name).with_content(Content::text("model", self.name));
        ctx.emit_with(event, changes).await?;
        Ok(())
    }
}

fn writer(name: &'static str, wait: u64, state: Value) -> Arc<dyn Agent> {
    Arc::new(Writer { name, wait, state })
}

#[tokio::test]
async fn agents_in_order_see_what_came_before() {
    let sessions = sessions().await;
    let script = Script::new([reply("two")]);
    let two = LlmAgent::builder("two").model(script.clone()).instruction("{one}").build().unwrap();
    let steps: [Arc<dyn Agent>; 2] = [writer("one", 0, json!({"one": 1})), Arc::new(two)];
    let callbacks = AgentCallbacks::new().after(async |ctx: CallbackContext| {
        ctx.state().set("done", true);
        Ok(None)
    });

    run(SequentialAgent::new("steps", steps).unwrap().with_callbacks(callbacks), &sessions, "go")
        .await
        .unwrap();

    assert_eq!(log(&sessions).await, ["user: go", "one: one", "two: two", "steps:"]);
    assert_eq!(state(&sessions).await, json!({"one": 1, "done": true}));
    let asked = script.last_asked();
    assert!(asked.system_instruction.unwrap().starts_with('1'));
    let quoted = asked.contents[1].parts();
    assert_eq!(asked.contents[1].role.as_deref(), Some("user"));
    assert_eq!(
        quoted[1].text.as_deref(),
        Some("[one] said:\n<<<BEGIN_QUOTED_AGENT_CONTENT>>>\none\n<<<END_QUOTED_AGENT_CONTENT>>>")
    );
}

#[tokio::test]
async fn a_loop_ends_when_an_agent_escalates_or_at_its_limit() {
    let sessions = sessions().await;
    let exit = FunctionTool::new("exit", "", async |(): (), ctx: ToolContext| {
        ctx.escalate();
        Ok::<_, BoxError>(())
    });
    let script = Script::new([reply("not yet"), call("exit", json!({})), reply("never said")]);
    let judge = LlmAgent::builder("judge").model(script.clone()).tool(exit).build().unwrap();
    let steps: [Arc<dyn Agent>; 2] = [Arc::new(judge), writer("next", 0, json!({}))];

    run(LoopAgent::new("loop", steps, 0).unwrap(), &sessions, "go").await.unwrap();

    assert_eq!(
        log(&sessions).await,
        [
            "user: go",
            "judge: not yet",
            "next: next",
            "judge: calls exit",
            r#"judge: exit -> {"result":null}"#
        ]
    );

    let limited = LoopAgent::new("limited", [writer("step", 0, json!({}))], 3).unwrap();
    assert_eq!(run(limited, &sessions, "go").await.unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn branches_come_out_the_same_whoever_is_faster() {
    for (first, second) in [(0, 40), (40, 0)] {
        let sessions = sessions().await;
        let parallel = ParallelAgent::new(
            "par",
            [
                writer("a", first, json!({"plain": "a", "list": "+a", "own_a": 1, "temp:t": "a"})),
                writer("b", second, json!({"plain": "b", "list": "+b", "own_b": 1, "temp:t": "b"})),
            ],
        )
        .unwrap()
        .with_reducer("list", Reducer::Append);
        let script = Script::new([reply("end")]);
        let end = LlmAgent::builder("end")
            .model(script.clone())
            .instruction("{plain} {temp:t} {list}")
            .build()
            .unwrap();
        let all: [Arc<dyn Agent>; 2] = [Arc::new(parallel), Arc::new(end)];

        let events = run(SequentialAgent::new("all", all).unwrap(), &sessions, "go").await.unwrap();

        // Both branches are in the list, in the order of their commits.
        let list = if first < second { json!(["a", "b"]) } else { json!(["b", "a"]) };
        let expected = json!({"plain": "b", "list": list, "own_a": 1, "own_b": 1});
        assert_eq!(state(&sessions).await, expected);
        assert!(script.last_asked().system_instruction.unwrap().starts_with(&format!("b b {list}")));
        let mut branches: Vec<_> = events.iter().filter_map(|event| event.branch.as_deref()).collect();
        branches.sort_unstable();
        assert_eq!(branches, ["par.a", "par.b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_branch_does_not_see_what_the_others_say_and_write() {
    let sessions = sessions().await;
    let script = Script::new([call("wait", json!({})), reply("alone")]);
    let wait = FunctionTool::new("wait", "", async |(): (), ctx: ToolContext| {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok::<_, BoxError>(ctx.state().contains("secret"))
    });
    let a = LlmAgent::builder("a").model(script.clone()).tool(wait).build().unwrap();
    let branches: [Arc<dyn Agent>; 2] = [Arc::new(a), writer("b", 0, json!({"secret": 1}))];

    let events = run(ParallelAgent::new("par", branches).unwrap(), &sessions, "go").await.unwrap();

    let answers: Vec<String> = events.iter().map(|event| line(event)).collect();
    assert!(answers.contains(&r#"a: wait -> {"result":false}"#.to_owned()), "{answers:?}");
    let contents = script.last_asked().contents;
    assert_eq!(contents.len(), 3, "the message, its call and the response: {contents:?}");
    assert_eq!(state(&sessions).await, json!({"secret": 1}));
}

#[tokio::test]
async fn a_branch_that_fails_ends_the_others() {
    let sessions = sessions().await;
    let fails = LlmAgent::builder("fails").model(Script::new([fails("BROKEN")])).build().unwrap();
    let hangs = LlmAgent::builder("hangs")
        .model(Script::new([Turn::Hangs]))
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().set("began", true);
            Ok(None)
        })
        .build()
        .unwrap();

    let error = run(ParallelAgent::new("par", [hangs, fails]).unwrap(), &sessions, "go").await.unwrap_err();

    assert_eq!(error.error_type(), "BROKEN");
    assert_eq!(state(&sessions).await, json!({"began": true}));
}

#[tokio::test(start_paused = true)]
async fn a_branch_that_fails_does_not_undo_the_order_of_the_others() {
    let sessions = sessions().await;
    let fails = LlmAgent::builder("fails")
        .model(Says("never said"))
        .before_agent(async |_: CallbackContext| {
            tokio::time::sleep(Duration::from_millis(60)).await;
            Err("broken".into())
        })
        .build()
        .unwrap();
    let slow = writer("slow", 30, json!({"plain": "slow", "list": "+slow"}));
    let fast = writer("fast", 0, json!({"plain": "fast", "list": "+fast"}));
    let branches: [Arc<dyn Agent>; 3] = [slow, fast, Arc::new(fails)];
    let parallel = ParallelAgent::new("par", branches).unwrap().with_reducer("list", Reducer::Append);

    let error = run(parallel, &sessions, "go").await.unwrap_err();

    assert!(error.to_string().contains("broken"), "{error}");
    assert_eq!(state(&sessions).await, json!({"plain": "fast", "list": ["fast", "slow"]}));
}

/// Adds to `sum` after a while, if it is told to, while someone else sets it.
struct Disturbed {
    sessions: SessionService,
    adds: bool,
}

#[async_trait::async_trait]
impl Agent for Disturbed {
    fn name(&self) -> &str {
        "disturbed"
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let changes = ctx.changes();
        if self.adds {
            changes.state().modify("sum", 0, |sum: i64| sum + 2);
        }
        self.sessions.transact(&key(), |state| Ok(state.try_set("sum", 1000)?)).await?;
        ctx.emit_with(Event::new("disturbed"), changes).await?;
        Ok(())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    number: i64,
}

#[tokio::test(start_paused = true)]
async fn a_reducer_of_branches_adds_to_what_another_writer_stored() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"sum": 100})).await;
    let add = FunctionTool::new("add", "", async |add: Add, ctx: ToolContext| {
        ctx.state().try_modify("sum", 0, |sum: i64| sum + add.number)?;
        Ok::<_, BoxError>(())
    });
    let adds = agent([call("add", json!({"number": 1})), reply("ok")]).tool(add).build().unwrap();
    let disturbed = Disturbed { sessions: sessions.clone(), adds: true };
    let branches: [Arc<dyn Agent>; 2] = [Arc::new(adds), Arc::new(disturbed)];
    let parallel = ParallelAgent::new("par", branches).unwrap().with_reducer("sum", Reducer::Add);

    run(parallel, &sessions, "go").await.unwrap();

    assert_eq!(state(&sessions).await, json!({"sum": 1002}), "1 is overwritten by 1000, 2 is added to that");
}

#[tokio::test(start_paused = true)]
async fn a_reducer_of_calls_adds_to_what_another_writer_stored() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"sum": 100})).await;
    let add = FunctionTool::new("add", "", async |add: Add, ctx: ToolContext| {
        ctx.state().try_modify("sum", 0, |sum: i64| sum + add.number)?;
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok::<_, BoxError>(())
    });
    let adds = agent([calls([("add", json!({"number": 1})), ("add", json!({"number": 2}))]), reply("ok")])
        .tool(add)
        .reducer("sum", Reducer::Add)
        .build()
        .unwrap();
    let disturbed = Disturbed { sessions: sessions.clone(), adds: false };
    let branches: [Arc<dyn Agent>; 2] = [Arc::new(adds), Arc::new(disturbed)];

    run(ParallelAgent::new("par", branches).unwrap(), &sessions, "go").await.unwrap();

    assert_eq!(state(&sessions).await, json!({"sum": 1003}));
}

#[tokio::test]
async fn an_agent_as_a_tool_shares_state_but_not_the_conversation() {
    let sessions = with_session(
        sessile_session::SessionService::new(sessile_session::MemoryStore::new()),
        json!({"topic": "tea", "user:name": "Ada"}),
    )
    .await;
    let inner = Script::new([reply("42 degrees")]);
    let expert = LlmAgent::builder("expert")
        .model(inner.clone())
        .description("Knows temperatures.")
        .instruction("About {topic} for {user:name}.")
        .output_key("user:answer")
        .build()
        .unwrap();
    let agent = agent([
        call("expert", json!({"request": "how hot?"})),
        call("expert", json!({"question": 1})),
        reply("hot"),
    ])
    .tool(AgentTool::new(expert))
    .build()
    .unwrap();

    run(agent, &sessions, "tell me").await.unwrap();

    assert!(inner.asked()[0].system_instruction.as_ref().unwrap().starts_with("About tea for Ada."));
    assert_eq!(inner.asked()[0].contents.len(), 1, "it reads the question only");
    let log = log(&sessions).await;
    assert_eq!(log[2], r#"agent: expert -> {"result":"42 degrees"}"#);
    assert!(log[4].contains("`request` is to be a text"), "{log:?}");
    assert_eq!(
        state(&sessions).await,
        json!({"topic": "tea", "user:name": "Ada", "user:answer": "42 degrees"})
    );
}

#[tokio::test]
async fn the_question_to_an_agent_as_a_tool_is_never_its_answer() {
    let sessions = sessions().await;
    let silent = SequentialAgent::new("silent", Vec::<Arc<dyn Agent>>::new()).unwrap();
    let agent = agent([call("silent", json!({"request": "anyone there?"})), reply("no")])
        .tool(AgentTool::new(silent))
        .build()
        .unwrap();
    let config = RunConfig { yield_user_message: true, ..RunConfig::default() };

    runner(agent, &sessions).run(says("ask").with_config(config)).collect().await.unwrap();

    assert_eq!(log(&sessions).await[2], r#"agent: silent -> {"result":""}"#);
}
