//! What tools and callbacks naturally write: read a value, compute, set it. Another writer in
//! between is never overwritten in silence.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::stream;
use serde_json::{Value, json};
use sessile_agent::{
    Agent, AgentError, AgentTool, CallbackContext, FunctionTool, InvocationContext, LlmAgent, Model,
    ModelError, ModelRequest, ModelResponse, ModelStream, ParallelAgent, RunError, RunRequest, Runner,
    Streaming, Tool, ToolContext,
};
use sessile_conformance::{Between, Call};
use sessile_postgres::PostgresStore;
use sessile_session::{
    BoxError, CreateSession, Event, EventActions, EventWindow, Guards, MemoryStore, OnOverwrite,
    SessionError, SessionKey, SessionService, Store,
};
use sessile_sqlite::SqliteStore;
use sessile_state::{Delta, Reducer};
use tokio::sync::Barrier;

use crate::matrix::new_schema;
use crate::support::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A model that calls one tool and answers when it has read the result, in every run.
struct Calls(&'static str);

#[async_trait]
impl Model for Calls {
    fn name(&self) -> &str {
        "calls"
    }

    async fn generate(&self, request: ModelRequest, _: Streaming) -> Result<ModelStream, ModelError> {
        let last = request.contents.last().map(|content| content.parts()).unwrap_or_default();
        let response = match last.iter().any(|part| part.function_response.is_some()) {
            true => ModelResponse::text("done"),
            false => {
                let parts = Some(vec![call_part(self.0, json!({}))]);
                sessile_session::Content { role: Some("model".into()), parts, ..Default::default() }.into()
            }
        };
        Ok(Box::pin(stream::iter([Ok(response)])))
    }
}

/// The ways to increment a counter that people write.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    GetThenSet,
    Modify,
    ScopedModify,
    ContainsThenSet,
    Transact,
}

fn increment(state: &sessile_state::State, way: Way) -> Result<(), BoxError> {
    match way {
        Way::GetThenSet => {
            let now: i64 = state.get("user:points").unwrap_or(0);
            state.set("user:points", now + 1);
        }
        Way::Modify => drop(state.try_modify("user:points", 0, |n: i64| n + 1)?),
        Way::ScopedModify => drop(state.user().try_modify("points", 0, |n: i64| n + 1)?),
        Way::ContainsThenSet => {
            let now = match state.contains("user:points") {
                true => state.with("user:points", |n| n.as_i64()).flatten().ok_or("not a number")?,
                false => 0,
            };
            state.user().try_set("points", now + 1)?;
        }
        Way::Transact => unreachable!("it is not done in the state of the context"),
    }
    Ok(())
}

async fn count(ctx: &CallbackContext, way: Way) -> Result<(), BoxError> {
    match way {
        Way::Transact => {
            ctx.transact(|state| Ok(state.try_modify("user:points", 0, |n: i64| n + 1)?)).await?
        }
        way => {
            increment(ctx.state(), way)?;
            0
        }
    };
    Ok(())
}

const SESSIONS: usize = 8;
const RUNS: usize = 5;

/// Increments `user:points` from a tool and from a callback of eight sessions at once, five times
/// each, through the services in turn. Returns what is stored, the sum of what reports say was
/// lost, and how many were refused.
async fn increments(
    services: &[SessionService],
    way: Way,
    on_overwrite: OnOverwrite,
    reducer: Option<Reducer>,
) -> (i64, i64, i64) {
    let runners: Vec<Runner> = services
        .iter()
        .map(|sessions| {
            let tool = FunctionTool::new("count", "", move |_: Nothing, ctx: ToolContext| async move {
                count(&ctx, way).await?;
                tokio::task::yield_now().await;
                Ok::<_, BoxError>("counted")
            });
            let agent = LlmAgent::builder("agent").model(Calls("count")).tool(tool).build().unwrap();
            let counting = LlmAgent::builder("callback")
                .model(Says("done"))
                .before_agent(move |ctx: CallbackContext| async move {
                    count(&ctx, way).await?;
                    tokio::task::yield_now().await;
                    Ok(None)
                })
                .build()
                .unwrap();
            let both: [Arc<dyn Agent>; 2] = [Arc::new(agent), Arc::new(counting)];
            let both = sessile_agent::SequentialAgent::new("both", both).unwrap();
            let mut runner =
                Runner::builder("app", both, sessions.clone()).auto_create(true).on_overwrite(on_overwrite);
            if let Some(reducer) = reducer {
                runner = runner.reducer("user:points", reducer);
            }
            runner.build().unwrap()
        })
        .collect();
    let tasks: Vec<_> = (0..SESSIONS)
        .map(|number| {
            let runner = runners[number % runners.len()].clone();
            tokio::spawn(async move {
                let mut refused = 0;
                for _ in 0..RUNS {
                    let request = RunRequest::new("ada", format!("s{number}")).with_text("go");
                    let mut events = runner.run(request);
                    while let Some(event) = events.next().await {
                        match event {
                            Ok(event) => {
                                let answers = event.function_responses();
                                let errors =
                                    answers.filter_map(|answer| answer.response.as_ref()?.get("error"));
                                for error in errors {
                                    assert!(error.to_string().contains("user:points"), "{error}");
                                    refused += 1;
                                }
                            }
                            // A refused callback ends the run.
                            Err(RunError::Agent { source, .. }) => {
                                let refusal = matches!(
                                    &*source,
                                    AgentError::Session(SessionError::Overwritten { current })
                                        if current.contains_key("user:points")
                                );
                                assert!(refusal, "{source:?}");
                                refused += 1;
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
                refused
            })
        })
        .collect();
    let mut refused = 0;
    for task in tasks {
        refused += task.await.unwrap();
    }
    let mut reported = 0;
    for number in 0..SESSIONS {
        let key = SessionKey::new("app", "ada", &format!("s{number}")).unwrap();
        let session = services[0].get(&key, EventWindow::ALL).await.unwrap().unwrap();
        for event in session.events() {
            reported += lost(event, "user:points");
        }
    }
    let stored = services[0].user_state("app", "ada").await.unwrap()["points"].as_i64().unwrap();
    (stored, reported, refused)
}

/// The sum of found − read over what an event reports of a key.
fn lost(event: &Event, key: &str) -> i64 {
    let Some(overwrote) = event.overwrote().and_then(|overwrote| overwrote.get(key)) else { return 0 };
    let value = |report: &Value, name: &str| report.get(name).map_or(0, |value| value.as_i64().unwrap());
    let reports = match overwrote {
        Value::Array(reports) => reports.clone(),
        report => vec![report.clone()],
    };
    reports.iter().map(|report| value(report, "found") - value(report, "read")).sum()
}

/// Every way to increment, under every rule, on these services of one database.
async fn nothing_is_lost_in_silence(open: impl AsyncFn() -> Vec<SessionService>) {
    let all = (SESSIONS * RUNS * 2) as i64;
    for way in [Way::GetThenSet, Way::Modify, Way::ScopedModify, Way::ContainsThenSet] {
        let services = open().await;
        let (stored, reported, refused) = increments(&services, way, OnOverwrite::Report, None).await;
        assert_eq!((stored + reported, refused), (all, 0), "{way:?}, {stored} stored");

        let services = open().await;
        let (stored, reported, refused) = increments(&services, way, OnOverwrite::Refuse, None).await;
        assert_eq!((stored + refused, reported), (all, 0), "{way:?}, {stored} stored");

        let services = open().await;
        let sums = increments(&services, way, OnOverwrite::Report, Some(Reducer::Add)).await;
        assert_eq!(sums, (all, 0, 0), "{way:?} with a reducer");
    }
    let services = open().await;
    assert_eq!(increments(&services, Way::Transact, OnOverwrite::Report, None).await, (all, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_in_silence_in_memory() {
    nothing_is_lost_in_silence(async || vec![SessionService::new(MemoryStore::new())]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_in_silence_by_two_runners_on_one_sqlite_file() {
    let folder = tempfile::tempdir().unwrap();
    nothing_is_lost_in_silence(async || {
        let name = format!("{}.db", uuid::Uuid::new_v4());
        let url = format!("sqlite:///{}", folder.path().join(name).display());
        let open = async || SessionService::new(SqliteStore::open_url(&url).await.unwrap());
        vec![open().await, open().await]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_in_silence_by_two_runners_on_postgres() {
    nothing_is_lost_in_silence(async || {
        let url = new_schema().await;
        let open = async || SessionService::new(PostgresStore::connect_url(&url).await.unwrap());
        vec![open().await, open().await]
    })
    .await;
}

/// A tool that reads `key`, lets another writer set it to 100, and sets it to one more than it
/// read.
fn disturbed(name: &str, sessions: &SessionService) -> impl Tool + use<> {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Key {
        key: String,
    }
    let sessions = sessions.clone();
    FunctionTool::new(name, "", move |Key { key }: Key, ctx: ToolContext| {
        let sessions = sessions.clone();
        async move {
            let read: i64 = ctx.state().get(&key).unwrap_or(0);
            ctx.state().set("own", name_of(&ctx));
            sessions.transact(ctx.session_key(), |state| Ok(state.try_set(&key, 100)?)).await?;
            ctx.state().set(&key, read + 1);
            Ok::<_, BoxError>("done")
        }
    })
}

fn name_of(ctx: &ToolContext) -> String {
    ctx.function_call_id().to_owned()
}

/// A tool that adds one to `other`.
fn quiet() -> impl Tool {
    FunctionTool::new("quiet", "", async |_: Nothing, ctx: ToolContext| {
        ctx.state().add("other", 1);
        Ok::<_, BoxError>("quiet")
    })
}

#[tokio::test]
async fn an_overwrite_is_reported_in_the_event_that_made_it() {
    for key in ["n", "user:n", "app:n"] {
        let sessions = with_session(SessionService::new(MemoryStore::new()), json!({key: 5})).await;
        let agent = agent([call("disturbed", json!({"key": key})), reply("ok")])
            .tool(disturbed("disturbed", &sessions))
            .build()
            .unwrap();

        let events = run(agent, &sessions, "go").await.unwrap();

        assert_eq!(session(&sessions).await.state().get(key), Some(6));
        assert_eq!(events[1].overwrote().unwrap(), &json!({key: {"read": 5, "found": 100}}));
    }
}

#[tokio::test]
async fn a_refused_call_is_an_error_and_the_others_of_the_step_are_stored() {
    for refuses in ["agent", "runner", "service"] {
        let service = SessionService::new(MemoryStore::new());
        let service = match refuses {
            "service" => service.with_on_overwrite(OnOverwrite::Refuse),
            _ => service,
        };
        let sessions = with_session(service, json!({"user:n": 5})).await;
        let script = Script::new([
            calls([("quiet", json!({})), ("disturbed", json!({"key": "user:n"})), ("quiet", json!({}))]),
            call("disturbed", json!({"key": "user:n"})),
            reply("ok"),
        ]);
        let mut agent = LlmAgent::builder("agent")
            .model(script.clone())
            .tool(quiet())
            .tool(disturbed("disturbed", &sessions));
        if refuses == "agent" {
            agent = agent.on_overwrite(OnOverwrite::Refuse);
        }
        let mut runner = Runner::builder("app", agent.build().unwrap(), sessions.clone());
        if refuses == "runner" {
            runner = runner.on_overwrite(OnOverwrite::Refuse);
        }

        let events = runner.build().unwrap().run(says("go")).collect().await.unwrap();

        let answers: Vec<String> =
            events[1].function_responses().map(|answer| json!(answer.response).to_string()).collect();
        assert_eq!(answers[0], r#"{"result":"quiet"}"#);
        assert!(
            answers[1].contains("user:n") && answers[1].contains("changed since it was read"),
            "{answers:?}"
        );
        assert_eq!(answers[2], r#"{"result":"quiet"}"#);
        // The second time the tool reads what is stored, and nothing is in its way.
        assert_eq!(line(&events[3]), r#"agent: disturbed -> {"result":"done"}"#);
        let stored = session(&sessions).await;
        assert_eq!(stored.state().get("other"), Some(2));
        assert_eq!(stored.state().get("user:n"), Some(101));
        assert_eq!(stored.state().get("own"), events[2].function_calls().next().unwrap().id);
    }
}

#[tokio::test]
async fn a_blind_set_stays_a_blind_set() {
    let service = SessionService::new(MemoryStore::new()).with_on_overwrite(OnOverwrite::Refuse);
    let sessions = with_session(service, json!({"user:n": 5, "user:m": 1})).await;
    let others = sessions.clone();
    let set = FunctionTool::new("set", "", move |_: Nothing, ctx: ToolContext| {
        let others = others.clone();
        async move {
            ctx.state().set("user:n", 7);
            assert_eq!(ctx.state().get("user:n"), Some(7), "its own value");
            ctx.state().modify("user:n", 0, |n: i64| n + 1);
            assert_eq!(ctx.state().keys().len(), 2, "listing is no reading");
            ctx.state().set("user:m", 2);
            others.write_user_state("app", "ada", json!({"n": 100, "m": 100})).await?;
            Ok::<_, BoxError>("set")
        }
    });
    let agent = agent([call("set", json!({})), reply("ok")]).tool(set).build().unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(line(&events[1]), r#"agent: set -> {"result":"set"}"#);
    assert!(events[1].overwrote().is_none());
    assert_eq!(state(&sessions).await, json!({"user:n": 8, "user:m": 2}));
}

/// A tool that increments `key` in one of the ways.
fn counting(name: &str, way: Way) -> impl Tool + use<> {
    FunctionTool::new(name, "", move |_: Nothing, ctx: ToolContext| async move {
        count(&ctx, way).await?;
        Ok::<_, BoxError>(ctx.state().get::<i64>("user:points"))
    })
}

#[tokio::test]
async fn sibling_calls_that_read_the_same_value_and_set_it_are_reported_or_refused() {
    for (on_overwrite, stored, refused) in [(OnOverwrite::Report, 6, 0), (OnOverwrite::Refuse, 6, 2)] {
        let service = SessionService::new(MemoryStore::new()).with_on_overwrite(on_overwrite);
        let sessions = with_session(service, json!({"user:points": 5})).await;
        let three = calls([("one", json!({})), ("two", json!({})), ("one", json!({}))]);
        let agent = agent([three, reply("ok")])
            .tool(counting("one", Way::Modify))
            .tool(counting("two", Way::GetThenSet))
            .build()
            .unwrap();

        let events = run(agent, &sessions, "go").await.unwrap();

        assert_eq!(state(&sessions).await, json!({"user:points": stored}));
        let errors = events[1]
            .function_responses()
            .filter(|answer| answer.response.as_ref().is_some_and(|response| response.contains_key("error")));
        assert_eq!(errors.count(), refused);
        match on_overwrite {
            OnOverwrite::Report => {
                let report = json!({"read": 5, "found": 6});
                assert_eq!(events[1].overwrote().unwrap(), &json!({"user:points": [report, report]}));
            }
            OnOverwrite::Refuse => assert!(events[1].overwrote().is_none()),
        }
    }
}

#[tokio::test]
async fn siblings_are_compared_with_what_is_stored_when_another_session_wrote_too() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"user:points": 5})).await;
    let others = sessions.clone();
    let add = FunctionTool::new("add", "", move |_: Nothing, ctx: ToolContext| {
        let others = others.clone();
        async move {
            ctx.state().add("user:points", 1);
            others.write_user_state("app", "ada", json!({"points": 50})).await?;
            Ok::<_, BoxError>(())
        }
    });
    let agent = agent([calls([("set", json!({})), ("add", json!({})), ("set", json!({}))]), reply("ok")])
        .tool(add)
        .tool(counting("set", Way::GetThenSet))
        .build()
        .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    // The first read 5 and found 50; the third read 5 and found what the first and the second left,
    // 7.
    let reports = json!([{"read": 5, "found": 50}, {"read": 5, "found": 7}]);
    assert_eq!(events[1].overwrote().unwrap(), &json!({"user:points": reports}));
    assert_eq!(state(&sessions).await, json!({"user:points": 6}));
    assert_eq!(6 + lost(&events[1], "user:points"), 50 + 3, "every writer is accounted for");
}

/// Another session writes before the first two commits of the step. With the value that the second
/// commit knows, no call overwrites a sibling; it is computed again all the same, and no call is
/// refused.
#[tokio::test]
async fn siblings_are_computed_again_while_another_session_writes() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let others = SessionService::over(store.clone());
    let values = Mutex::new(vec![3, 4]);
    let disturbed = Between::over(store, move |call| {
        let is_answer = matches!(call, Call::Append(commit) if !commit.delta.user.is_empty());
        let value = if is_answer { values.lock().unwrap().pop() } else { None };
        let others = others.clone();
        async move {
            if let Some(value) = value {
                others.write_user_state("app", "ada", json!({ "points": value })).await?;
            }
            Ok(())
        }
    });
    let sessions = with_session(SessionService::new(disturbed), json!({})).await;
    sessions.write_user_state("app", "ada", json!({"points": 5})).await.unwrap();
    let add = FunctionTool::new("add", "", async |_: Nothing, ctx: ToolContext| {
        ctx.state().add("user:points", 1);
        Ok::<_, BoxError>(())
    });
    let agent = agent([calls([("add", json!({})), ("set", json!({}))]), reply("ok")])
        .tool(add)
        .tool(counting("set", Way::GetThenSet))
        .build()
        .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    // The first call added to 3; the second had read 5 and found 4.
    assert_eq!(events[1].overwrote().unwrap(), &json!({"user:points": {"read": 5, "found": 4}}));
    assert_eq!(state(&sessions).await, json!({"user:points": 6}));
}

#[tokio::test]
async fn branches_that_read_and_set_report_and_those_with_a_transaction_all_count() {
    for (way, on_overwrite) in [
        (Way::Modify, OnOverwrite::Report),
        (Way::GetThenSet, OnOverwrite::Report),
        (Way::Transact, OnOverwrite::Refuse),
    ] {
        let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"user:points": 5})).await;
        let all_have_read = Arc::new(Barrier::new(3));
        let branch = |name: &str| {
            let all_have_read = all_have_read.clone();
            LlmAgent::builder(name)
                .model(Says("done"))
                .before_agent(move |ctx: CallbackContext| {
                    let all_have_read = all_have_read.clone();
                    async move {
                        count(&ctx, way).await?;
                        all_have_read.wait().await;
                        Ok(None)
                    }
                })
                .build()
                .unwrap()
        };
        let parallel = ParallelAgent::new("par", [branch("a"), branch("b"), branch("c")])
            .unwrap()
            .with_on_overwrite(on_overwrite);

        run(parallel, &sessions, "go").await.unwrap();

        let stored = session(&sessions).await;
        let reported: i64 = stored.events().iter().map(|event| lost(event, "user:points")).sum();
        let points: i64 = stored.state().get("user:points").unwrap();
        assert_eq!(points + reported, 8, "{way:?}: {points} stored");
        if way == Way::Transact {
            assert_eq!((points, reported), (8, 0));
        }
    }
}

#[tokio::test]
async fn the_order_of_branches_does_not_overwrite_what_another_session_wrote_later() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({})).await;
    let written = Arc::new(Barrier::new(2));
    let first = {
        let (written, others) = (written.clone(), sessions.clone());
        LlmAgent::builder("first")
            .model(Says("done"))
            .before_agent(move |ctx: CallbackContext| {
                let (written, others) = (written.clone(), others.clone());
                async move {
                    written.wait().await; // the second branch has committed
                    ctx.state().set("n", "first");
                    others
                        .append_to(
                            &key(),
                            Event::new("x").with_actions(EventActions::from_delta(json!({"m": 1}))),
                        )
                        .await?;
                    Ok(None)
                }
            })
            .after_agent({
                let others = sessions.clone();
                move |_: CallbackContext| {
                    let others = others.clone();
                    async move {
                        let actions = EventActions::from_delta(json!({"n": "another session"}));
                        others.append_to(&key(), Event::new("x").with_actions(actions)).await?;
                        Ok(None)
                    }
                }
            })
            .build()
            .unwrap()
    };
    let second = {
        let written = written.clone();
        LlmAgent::builder("second")
            .model(Says("done"))
            .before_agent(async |ctx: CallbackContext| {
                ctx.state().set("n", "second");
                Ok(None)
            })
            .after_agent(move |_: CallbackContext| {
                let written = written.clone();
                async move {
                    written.wait().await;
                    Ok(None)
                }
            })
            .build()
            .unwrap()
    };

    run(ParallelAgent::new("par", [first, second]).unwrap(), &sessions, "go").await.unwrap();

    assert_eq!(session(&sessions).await.state().get::<String>("n").unwrap(), "another session");
}

#[tokio::test]
async fn an_agent_that_is_a_tool_hands_on_what_it_read() {
    for (way, on_overwrite) in [
        (Way::Modify, OnOverwrite::Report),
        (Way::GetThenSet, OnOverwrite::Refuse),
        (Way::Transact, OnOverwrite::Refuse),
    ] {
        let service = SessionService::new(MemoryStore::new()).with_on_overwrite(on_overwrite);
        let sessions = with_session(service, json!({"user:points": 5})).await;
        let others = sessions.clone();
        let expert = LlmAgent::builder("expert")
            .model(Calls("count"))
            .tool(counting("count", way))
            .after_agent(move |_: CallbackContext| {
                let others = others.clone();
                async move {
                    let mut delta = Delta::new();
                    delta.add("points", 10);
                    others.write_user_state("app", "ada", delta).await?;
                    Ok(None)
                }
            })
            .build()
            .unwrap();
        let agent = agent([call("expert", json!({"request": "count"})), reply("ok")])
            .tool(AgentTool::new(expert))
            .build()
            .unwrap();

        let events = run(agent, &sessions, "go").await.unwrap();

        let answer = events.iter().find(|event| event.function_responses().next().is_some()).unwrap();
        let points = session(&sessions).await.state().get("user:points");
        match (way, on_overwrite) {
            (Way::Transact, _) => assert_eq!(points, Some(16), "it was committed at once"),
            (_, OnOverwrite::Refuse) => {
                assert!(line(answer).contains("user:points"), "{}", line(answer));
                assert_eq!(points, Some(15));
            }
            (_, OnOverwrite::Report) => {
                assert_eq!(answer.overwrote().unwrap(), &json!({"user:points": {"read": 5, "found": 15}}));
                assert_eq!(points, Some(6));
            }
        }
    }
}

#[tokio::test]
async fn a_transaction_is_an_event_of_its_own_whose_keys_count_as_read() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"user:points": 5})).await;
    let others = sessions.clone();
    let tool = FunctionTool::new("count", "", move |_: Nothing, ctx: ToolContext| {
        let others = others.clone();
        async move {
            assert_eq!(ctx.state().get("user:points"), Some(5));
            ctx.state().add("pending", 1);
            ctx.state().set("temp:by", 2);
            others.write_user_state("app", "ada", json!({"points": 10})).await?;
            let quoted = ctx
                .transact(|state| {
                    assert!(!state.contains("pending"), "what is pending is not stored");
                    Ok(state.try_modify("user:points", 0, |n: i64| n + 1)?)
                })
                .await?;
            assert_eq!(quoted, 11);
            assert_eq!(ctx.state().get("user:points"), Some(11), "the state of the context follows");
            others.write_user_state("app", "ada", json!({"points": 50})).await?;
            ctx.state().set("user:points", 12);
            Ok::<_, BoxError>(quoted)
        }
    });
    let agent = agent([call("count", json!({})), reply("ok")]).tool(tool).build().unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(events.len(), 4, "the call, the transaction, the answer and the reply");
    assert_eq!(events[1].actions.state_delta, json!({"user:points": 11}).into());
    assert_eq!((events[1].author.as_str(), &events[1].invocation_id), ("agent", &events[0].invocation_id));
    assert_eq!(events[2].overwrote().unwrap(), &json!({"user:points": {"read": 11, "found": 50}}));
    assert_eq!(state(&sessions).await, json!({"user:points": 12, "pending": 1}));
}

#[tokio::test]
async fn a_transaction_that_gives_up_or_changes_nothing_stores_nothing() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"n": 5})).await;
    let tool = FunctionTool::new("try", "", async |_: Nothing, ctx: ToolContext| {
        let read = ctx.transact(|state| Ok(state.get::<i64>("n"))).await?;
        assert_eq!(read, Some(5));
        let error = ctx.transact(|_| Err::<(), BoxError>("no".into())).await.unwrap_err();
        assert!(error.to_string().contains("no"), "{error}");
        ctx.transact(|state| Ok(state.try_set("temp:t", 1)?)).await?;
        Ok::<_, BoxError>(ctx.state().get::<i64>("temp:t"))
    });
    let agent = agent([call("try", json!({})), reply("ok")]).tool(tool).build().unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(events.len(), 3);
    assert_eq!(line(&events[1]), r#"agent: try -> {"result":1}"#);
    assert_eq!(state(&sessions).await, json!({"n": 5}));
}

#[tokio::test]
async fn an_agent_that_emits_what_it_computed_reports_what_it_overwrites() {
    struct Counter(SessionService);
    #[async_trait]
    impl Agent for Counter {
        fn name(&self) -> &str {
            "counter"
        }

        async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
            let read: i64 = ctx.state().get("user:points").unwrap_or(0);
            self.0.write_user_state("app", "ada", json!({"points": 50})).await?;
            let actions = EventActions::from_delta(json!({"user:points": read + 1}));
            ctx.emit(Event::new("counter").with_actions(actions)).await?;
            let next = ctx.transact(|state| Ok(state.try_modify("user:points", 0, |n: i64| n + 1)?)).await?;
            assert_eq!(next, 7);
            Ok(())
        }
    }
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"user:points": 5})).await;

    let events = run(Counter(sessions.clone()), &sessions, "go").await.unwrap();

    assert_eq!(events[0].overwrote().unwrap(), &json!({"user:points": {"read": 5, "found": 50}}));
    assert_eq!(state(&sessions).await, json!({"user:points": 7}));
}

#[tokio::test]
async fn a_request_says_what_its_changes_were_computed_from() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"message_count": 5})).await;
    let runner = runner(agent([reply("one"), reply("two")]).build().unwrap(), &sessions);
    let request = |on_overwrite| {
        says("hi")
            .with_delta(json!({"message_count": 5}))
            .with_guards(Guards::new(on_overwrite).with_read("message_count", json!(4)))
    };

    let error = runner.run(request(OnOverwrite::Refuse)).collect().await.unwrap_err();
    assert!(matches!(error, RunError::Session(SessionError::Overwritten { .. })), "{error:?}");
    assert!(log(&sessions).await.is_empty(), "nothing is stored, and no model is asked");

    runner.run(request(OnOverwrite::Report)).collect().await.unwrap();
    let message = session(&sessions).await.events()[0].event.clone();
    assert_eq!(message.overwrote().unwrap(), &json!({"message_count": {"read": 4, "found": 5}}));
}

#[tokio::test]
async fn an_output_key_with_a_reducer_collects_the_answers() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"found": ["before"]})).await;
    let says = |name: &str, text: &'static str| {
        LlmAgent::builder(name).model(Says(text)).output_key("found").build().unwrap()
    };
    let parallel = ParallelAgent::new("par", [says("a", "tea"), says("b", "cake")])
        .unwrap()
        .with_reducer("found", Reducer::Append);

    run(parallel, &sessions, "go").await.unwrap();

    let mut found: Vec<String> = session(&sessions).await.state().get("found").unwrap();
    found[1..].sort_unstable();
    assert_eq!(found, ["before", "cake", "tea"]);
}

#[tokio::test]
async fn what_a_reducer_cannot_express_is_the_error_of_the_tool_and_names_replace() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"log": ["a", "b"]})).await;
    let shorten = FunctionTool::new("shorten", "", async |_: Nothing, ctx: ToolContext| {
        ctx.state().try_set("log", ["a"])?;
        Ok::<_, BoxError>(())
    });
    let clear = FunctionTool::new("clear", "", async |_: Nothing, ctx: ToolContext| {
        ctx.state().try_replace("log", json!([]))?;
        Ok::<_, BoxError>(())
    });
    let agent = agent([call("shorten", json!({})), call("clear", json!({})), reply("ok")])
        .tool(shorten)
        .tool(clear)
        .reducer("log", Reducer::Append)
        .build()
        .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    let answer = line(&events[1]);
    assert!(answer.contains("`log`") && answer.contains("`replace`"), "{answer}");
    assert_eq!(state(&sessions).await, json!({"log": []}));
}

#[tokio::test]
async fn agents_below_inherit_reducers_and_may_declare_others() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"n": 5, "m": 5})).await;
    let others = sessions.clone();
    let write = FunctionTool::new("write", "", move |_: Nothing, ctx: ToolContext| {
        let others = others.clone();
        async move {
            ctx.state().modify("n", 0, |n: i64| n + 1);
            ctx.state().modify("m", 0, |n: i64| n + 1);
            let actions = EventActions::from_delta(json!({"n": 50, "m": 50}));
            others.append_to(&key(), Event::new("other").with_actions(actions)).await?;
            Ok::<_, BoxError>(())
        }
    });
    let agent = agent([call("write", json!({})), reply("ok")]).tool(write).reducer("m", Reducer::Last);
    let runner = Runner::builder("app", agent.build().unwrap(), sessions.clone())
        .reducer("n", Reducer::Add)
        .reducer("m", Reducer::Add)
        .build()
        .unwrap();

    runner.run(says("go")).collect().await.unwrap();

    assert_eq!(state(&sessions).await, json!({"n": 51, "m": 6}));
}

#[tokio::test]
async fn a_session_in_hand_is_compared_too() {
    let sessions = SessionService::new(MemoryStore::new());
    let mut session = sessions.create(CreateSession::new("app", "ada").with_id("s1")).await.unwrap();
    sessions.write_user_state("app", "ada", json!({"login_count": 7})).await.unwrap();
    let login =
        || Event::new("system").with_actions(EventActions::from_delta(json!({"user:login_count": 1})));

    let refusing = sessions.clone().with_on_overwrite(OnOverwrite::Refuse);
    let error = refusing.append(&mut session, login()).await.unwrap_err();
    assert!(matches!(&error, SessionError::Overwritten { current } if current.len() == 1), "{error}");

    let stored = sessions.append(&mut session, login()).await.unwrap();
    assert_eq!(stored.overwrote().unwrap(), &json!({"user:login_count": {"found": 7}}));
}
