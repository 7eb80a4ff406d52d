//! Operations of agents, callbacks and tools: every writer counts, whoever else writes at the same
//! time.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use serde_json::{Value, json};
use sessile_agent::{
    Agent, AgentError, AgentTool, CallbackContext, FunctionTool, InvocationContext, LlmAgent, Model,
    ModelError, ModelRequest, ModelResponse, ModelStream, ParallelAgent, Reducer, RunError, RunRequest,
    Runner, SequentialAgent, Streaming, ToolContext,
};
use sessile_postgres::PostgresStore;
use sessile_session::{
    BoxError, CreateSession, Event, EventActions, EventWindow, MemoryStore, SessionError, SessionKey,
    SessionService,
};
use sessile_sqlite::SqliteStore;
use sessile_state::{Delta, Operation};
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

const SESSIONS: usize = 8;
const RUNS: usize = 5;

/// Runs a tool that operates on shared keys in eight sessions at once, five times in each, half of
/// them through each of the services. In every round all eight tools have read the state before the
/// first of them is committed: with "read, compute, set" only one of the eight writes would stay.
async fn all_tools_count(services: [SessionService; 2]) {
    let all_have_read = Arc::new(Barrier::new(SESSIONS));
    let runners = services.clone().map(|sessions| {
        let all_have_read = all_have_read.clone();
        let tool = FunctionTool::new("count", "", move |_: Nothing, ctx: ToolContext| {
            let all_have_read = all_have_read.clone();
            async move {
                let state = ctx.state();
                for prefix in ["user:", "app:"] {
                    state.try_add(format!("{prefix}points"), 1)?;
                    state.try_add(format!("{prefix}weight"), 0.5)?;
                    state.try_append(format!("{prefix}log"), [ctx.session_key().id()])?;
                    state.try_union(format!("{prefix}seen"), [ctx.session_key().id()])?;
                    state.try_union(format!("{prefix}runs"), json!({ ctx.invocation_id(): true }))?;
                }
                state.try_add("own", 1)?;
                all_have_read.wait().await;
                Ok::<_, BoxError>(())
            }
        });
        let agent = LlmAgent::builder("agent").model(Calls("count")).tool(tool).build().unwrap();
        Runner::builder("app", agent, sessions).auto_create(true).build().unwrap()
    });

    let tasks = (0..SESSIONS).map(|number| {
        let runner = runners[number % 2].clone();
        tokio::spawn(async move {
            for _ in 0..RUNS {
                let request = RunRequest::new("ada", format!("s{number}")).with_text("go");
                assert_eq!(runner.run(request).collect().await.unwrap().len(), 3);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }

    let all = SESSIONS * RUNS;
    let scopes =
        [services[0].user_state("app", "ada").await.unwrap(), services[0].app_state("app").await.unwrap()];
    for state in scopes {
        assert_eq!(*state["points"], json!(all));
        assert_eq!(*state["weight"], json!(all as f64 / 2.0));
        let mut log: Vec<String> = state["log"].read().unwrap();
        log.sort_unstable();
        let expected: Vec<String> =
            (0..SESSIONS).flat_map(|number| vec![format!("s{number}"); RUNS]).collect();
        assert_eq!(log, expected, "every run appended its session once");
        let mut seen: Vec<String> = state["seen"].read().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (0..SESSIONS).map(|number| format!("s{number}")).collect::<Vec<_>>());
        assert_eq!(state["runs"].as_object().unwrap().len(), all);
    }
    for number in 0..SESSIONS {
        let key = SessionKey::new("app", "ada", &format!("s{number}")).unwrap();
        let session = services[1].get(&key, EventWindow::NONE).await.unwrap().unwrap();
        assert_eq!(session.state().get("own"), Some(RUNS), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_in_many_sessions_of_a_user_lose_nothing_in_memory() {
    let sessions = SessionService::new(MemoryStore::new());
    all_tools_count([sessions.clone(), sessions]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_two_runners_on_one_sqlite_file_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:///{}", folder.path().join("sessile.db").display());
    let open = async || SessionService::new(SqliteStore::open_url(&url).await.unwrap());
    all_tools_count([open().await, open().await]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_two_runners_lose_nothing_on_postgres() {
    let url = new_schema().await;
    let open = async || SessionService::new(PostgresStore::connect_url(&url).await.unwrap());
    all_tools_count([open().await, open().await]).await;
}

#[tokio::test]
async fn the_run_goes_on_with_what_was_stored() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"user:points": 1})).await;
    let others = sessions.clone();
    let tool = FunctionTool::new("count", "", move |_: Nothing, ctx: ToolContext| {
        let others = others.clone();
        async move {
            ctx.state().try_add("user:points", 1)?;
            // Another session writes after the tool has read, and before its event is committed.
            let mut delta = Delta::new();
            delta.add("points", 10);
            others.write_user_state("app", "ada", delta).await?;
            Ok::<_, BoxError>(ctx.state().get::<u32>("user:points"))
        }
    });
    let script = Script::new([call("count", json!({})), reply("ok")]);
    let agent = LlmAgent::builder("agent")
        .model(script.clone())
        .tool(tool)
        .instruction("Points: {user:points}.")
        .build()
        .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert!(script.last_asked().system_instruction.unwrap().starts_with("Points: 12."));
    assert_eq!(line(&events[1]), r#"agent: count -> {"result":2}"#, "the tool sees its own view");
    assert_eq!(events[1].actions.state_delta, json!({"user:points": 12}).into());
    assert_eq!(events[1].operations()["user:points"], Operation::add(1).into());
    assert_eq!(state(&sessions).await, json!({"user:points": 12}));
}

#[tokio::test]
async fn a_request_may_operate_too() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"app:visits": 4})).await;
    let mut delta = Delta::new();
    delta.add("app:visits", 1);
    delta.append("log", [json!("came")]);
    delta.add("temp:tries", 2);
    let script = Script::new([reply("ok")]);
    let agent = LlmAgent::builder("agent")
        .model(script.clone())
        .instruction("{app:visits} {log} {temp:tries}")
        .build()
        .unwrap();

    runner(agent, &sessions).run(says("hi").with_delta(delta)).collect().await.unwrap();

    assert!(script.last_asked().system_instruction.unwrap().starts_with(r#"5 ["came"] 2"#));
    assert_eq!(state(&sessions).await, json!({"app:visits": 5, "log": ["came"]}));
}

/// A tool that adds to, appends to or sets `key`, as the model says.
fn writing() -> impl sessile_agent::Tool {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Write {
        key: String,
        add: Option<i64>,
        set: Option<Value>,
    }
    FunctionTool::new("write", "", async |write: Write, ctx: ToolContext| {
        if let Some(by) = write.add {
            ctx.state().try_add(&write.key, by)?;
        }
        if let Some(value) = write.set {
            ctx.state().try_set(&write.key, value)?;
        }
        Ok::<_, BoxError>(())
    })
}

fn write(key: &str, add: i64) -> (&'static str, Value) {
    ("write", json!({"key": key, "add": add}))
}

fn set(key: &str, value: Value) -> (&'static str, Value) {
    ("write", json!({"key": key, "set": value}))
}

#[tokio::test]
async fn calls_side_by_side_that_add_all_count() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"n": 10})).await;
    let agent = agent([
        calls([write("n", 1), write("n", 2), write("reduced", 3), write("reduced", 4), write("user:u", 5)]),
        reply("ok"),
    ])
    .tool(writing())
    .reducer("reduced", Reducer::Add)
    .build()
    .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(state(&sessions).await, json!({"n": 13, "reduced": 7, "user:u": 5}));
    let operations = events[1].operations();
    assert_eq!(operations["n"].iter().collect::<Vec<_>>(), [&Operation::add(1), &Operation::add(2)]);
}

#[tokio::test]
async fn calls_side_by_side_that_set_and_add_count_in_their_order() {
    let sessions = with_session(
        SessionService::new(MemoryStore::new()),
        json!({"set_first": 100, "add_first": 100, "text_first": 100}),
    )
    .await;
    let agent = agent([
        calls([
            set("set_first", json!(5)),
            write("set_first", 1),
            write("add_first", 1),
            set("add_first", json!(5)),
            // A number cannot be added to the text of a sibling: the later call is answered with an
            // error.
            set("text_first", json!("five")),
            write("text_first", 1),
        ]),
        reply("ok"),
    ])
    .tool(writing())
    .build()
    .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(state(&sessions).await, json!({"set_first": 6, "add_first": 5, "text_first": "five"}));
    let errors: Vec<_> =
        events[1].function_responses().map(|answer| answer.response.clone().unwrap()).collect();
    assert!(errors[..5].iter().all(|answer| !answer.contains_key("error")), "{errors:?}");
    let error = errors[5]["error"].to_string();
    assert!(error.contains("`text_first`") && error.contains("a number"), "{error}");
}

/// Adds to `n`, `user:n`, `temp:n` and a list.
struct Adder {
    name: &'static str,
    /// Where the branches wait for each other before they commit.
    others: Arc<Barrier>,
}

#[async_trait]
impl Agent for Adder {
    fn name(&self) -> &str {
        self.name
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        let changes = ctx.changes();
        for key in ["n", "user:n", "temp:n"] {
            changes.state().add(key, 1);
        }
        changes.state().append("names", [self.name]);
        self.others.wait().await;
        ctx.emit_with(Event::new(self.name), changes).await?;
        // A second event of the branch starts from what the first one came to.
        let changes = ctx.changes();
        changes.state().add("user:n", 1);
        ctx.emit_with(Event::new(self.name), changes).await?;
        Ok(())
    }
}

fn adder(name: &'static str, others: &Arc<Barrier>) -> Arc<dyn Agent> {
    Arc::new(Adder { name, others: others.clone() })
}

#[tokio::test]
async fn branches_that_add_all_count_and_are_not_corrected() {
    let sessions =
        with_session(SessionService::new(MemoryStore::new()), json!({"n": 10, "user:n": 10})).await;
    // All have read before the first of them commits. Two of them are one level deeper.
    let others = Arc::new(Barrier::new(3));
    let inner = ParallelAgent::new("inner", [adder("a", &others), adder("b", &others)]).unwrap();
    let branches: [Arc<dyn Agent>; 2] = [Arc::new(inner), adder("c", &others)];
    let parallel = ParallelAgent::new("outer", branches).unwrap().with_reducer("user:n", Reducer::Add);
    let script = Script::new([reply("end")]);
    let end =
        LlmAgent::builder("end").model(script.clone()).instruction("{n} {user:n} {temp:n}").build().unwrap();
    let all: [Arc<dyn Agent>; 2] = [Arc::new(parallel), Arc::new(end)];

    let events = run(SequentialAgent::new("all", all).unwrap(), &sessions, "go").await.unwrap();

    let seen = script.last_asked().system_instruction.unwrap();
    assert!(seen.starts_with("13 16 3"), "{seen}");
    let stored = session(&sessions).await;
    assert_eq!(stored.state().get("n"), Some(13));
    assert_eq!(stored.state().get("user:n"), Some(16));
    let mut names: Vec<String> = stored.state().get("names").unwrap();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(events.len(), 7, "two events of each branch, the answer, and no correction");
}

/// One step of a branch.
#[derive(Clone)]
enum Step {
    Add,
    Set(i64),
    Wait(Arc<Barrier>),
}

struct Steps {
    name: String,
    steps: Vec<Step>,
}

#[async_trait]
impl Agent for Steps {
    fn name(&self) -> &str {
        &self.name
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        for step in &self.steps {
            let delta = match step {
                Step::Add => add_one(),
                Step::Set(value) => json!({ "n": value }).into(),
                Step::Wait(others) => {
                    others.wait().await;
                    continue;
                }
            };
            ctx.emit(Event::new(&self.name).with_actions(EventActions::from_delta(delta))).await?;
        }
        Ok(())
    }
}

/// A branch of a parallel agent; if it is nested, each of its steps is a parallel agent of its own.
fn branch(name: &str, steps: &[Step], nested: bool) -> Arc<dyn Agent> {
    if !nested {
        return Arc::new(Steps { name: name.to_owned(), steps: steps.to_vec() });
    }
    let step = |(number, step): (usize, &Step)| {
        let inner = Steps { name: format!("{name}_{number}"), steps: vec![step.clone()] };
        ParallelAgent::new(format!("{name}_inner_{number}"), [inner]).unwrap()
    };
    let steps: Vec<_> = steps.iter().enumerate().map(step).collect();
    Arc::new(SequentialAgent::new(name, steps).unwrap())
}

/// Runs two branches, the second of which commits before the first; returns `n`, and whether the
/// parallel agent had to correct it.
async fn later_branch_commits_first(first: &[Step], second: &[Step], nested: bool) -> (i64, bool) {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"n": 10})).await;
    let others = Arc::new(Barrier::new(2));
    let (first, second) =
        ([&[Step::Wait(others.clone())], first].concat(), [second, &[Step::Wait(others)]].concat());
    let branches = [branch("first", &first, nested), branch("second", &second, nested)];

    let events = run(ParallelAgent::new("outer", branches).unwrap(), &sessions, "go").await.unwrap();

    let n = session(&sessions).await.state().get("n").unwrap();
    (n, events.iter().any(|event| event.author == "outer"))
}

#[tokio::test]
async fn only_what_branches_plainly_set_is_corrected() {
    use Step::{Add, Set};
    for nested in [false, true] {
        // By the order of the branches the second one's value counts.
        assert_eq!(later_branch_commits_first(&[Set(1)], &[Set(2)], nested).await, (2, true));
        assert_eq!(later_branch_commits_first(&[Add, Set(1)], &[Add, Set(2)], nested).await, (2, true));
        // An operation was applied to what was stored: there is nothing to correct.
        assert_eq!(later_branch_commits_first(&[Add], &[Add], nested).await, (12, false));
        assert_eq!(later_branch_commits_first(&[Add], &[Set(2)], nested).await, (3, false));
        assert_eq!(later_branch_commits_first(&[Set(1)], &[Add], nested).await, (1, false));
        assert_eq!(later_branch_commits_first(&[Set(1)], &[Set(2), Add], nested).await, (1, false));
    }
}

#[tokio::test]
async fn an_agent_that_is_a_tool_hands_its_operations_on() {
    let sessions = with_session(
        SessionService::new(MemoryStore::new()),
        json!({"user:points": 5, "app:log": ["start"], "user:total": 1}),
    )
    .await;
    let others = sessions.clone();
    // Inside the inner run: its own session cannot know what other sessions write meanwhile.
    let count = FunctionTool::new("count", "", move |_: Nothing, ctx: ToolContext| {
        let others = others.clone();
        async move {
            ctx.state().try_add("user:points", 1)?;
            ctx.state().try_append("app:log", ["inner"])?;
            let mut delta = Delta::new();
            delta.add("user:points", 100);
            delta.append("app:log", [json!("other")]);
            let actions = EventActions::from_delta(delta);
            let other = SessionKey::new("app", "ada", "s2")?;
            others.append_to(&other, Event::new("other").with_actions(actions)).await?;
            Ok::<_, BoxError>(())
        }
    });
    sessions.create(CreateSession::new("app", "ada").with_id("s2")).await.unwrap();
    let expert = LlmAgent::builder("expert")
        .model(Calls("count"))
        .tool(count)
        .after_agent(async |ctx: CallbackContext| {
            ctx.state().add("user:points", 1);
            ctx.state().set("user:total", 7);
            ctx.state().add("user:total", 1);
            Ok(None)
        })
        .build()
        .unwrap();
    let agent = agent([call("expert", json!({"request": "count"})), reply("ok")])
        .tool(AgentTool::new(expert))
        .build()
        .unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert_eq!(
        state(&sessions).await,
        json!({"user:points": 107, "app:log": ["start", "other", "inner"], "user:total": 8})
    );
    let operations: Vec<String> = events[1].operations().into_keys().collect();
    assert_eq!(operations, ["app:log", "user:points"], "what was set is handed on as a value");
}

#[tokio::test]
async fn operations_on_temp_keys_stay_in_the_run() {
    let sessions = sessions().await;
    let script = Script::new([
        calls([write("temp:n", 1), write("temp:n", 2), write("kept", 1)]),
        reply("one"),
        reply("two"),
    ]);
    let agent = LlmAgent::builder("agent")
        .model(script.clone())
        .tool(writing())
        .instruction("n: {temp:n?}.")
        .before_agent(async |ctx: CallbackContext| {
            ctx.state().add("temp:n", 10);
            Ok(None)
        })
        .build()
        .unwrap();
    let runner = runner(agent, &sessions);

    let events = runner.run(says("go")).collect().await.unwrap();
    runner.run(says("again")).collect().await.unwrap();

    let seen: Vec<String> =
        script.asked().into_iter().map(|request| request.system_instruction.unwrap()).collect();
    for (seen, expected) in seen.iter().zip(["n: 10.", "n: 13.", "n: 10."]) {
        assert!(seen.starts_with(expected), "{expected} in {seen}");
    }
    assert_eq!(state(&sessions).await, json!({"kept": 1}));
    let stored = session(&sessions).await;
    for event in events.iter().chain(stored.events().iter().map(|event| &event.event)) {
        let notes = json!([event.actions, event.custom_metadata]).to_string();
        assert!(!notes.contains("temp:"), "{notes}");
    }
}

/// Emits an event with changes of its own beside those of a context, and looks at what it sees of
/// `n` afterwards.
struct Emits {
    own: Delta,
    in_context: Delta,
    sees: i64,
}

#[async_trait]
impl Agent for Emits {
    fn name(&self) -> &str {
        "emits"
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        let changes = ctx.changes();
        changes.state().apply(&self.in_context);
        let event = Event::new("emits").with_actions(EventActions::from_delta(&self.own));
        ctx.emit_with(event, changes).await?;
        assert_eq!(ctx.state().get("n"), Some(self.sees));
        Ok(())
    }
}

fn add_one() -> Delta {
    let mut delta = Delta::new();
    delta.add("n", 1);
    delta
}

#[tokio::test]
async fn operations_follow_what_their_event_sets_itself() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"n": 100})).await;
    let sets = |value: Value| Emits { own: json!({"n": value}).into(), in_context: add_one(), sees: 6 };

    run(sets(json!(5)), &sessions, "go").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"n": 6}));

    let error = run(sets(json!("five")), &sessions, "go").await.unwrap_err();
    assert!(error.to_string().contains("`n`") && error.to_string().contains("a number"), "{error}");
    assert_eq!(state(&sessions).await, json!({"n": 6}));
}

/// Emits the same event twice; in between, another writer changes its key.
struct Repeats(SessionService);

#[async_trait]
impl Agent for Repeats {
    fn name(&self) -> &str {
        "repeats"
    }

    async fn run(&self, ctx: &InvocationContext) -> Result<(), AgentError> {
        let once = || Event {
            id: "once".to_owned(),
            actions: EventActions::from_delta(add_one()),
            ..Event::new("repeats")
        };
        ctx.emit(once()).await?;
        self.0.transact(&key(), |state| Ok(state.try_set("n", 50)?)).await?;
        ctx.emit(Event::new("repeats")).await?;
        assert_eq!(ctx.state().get("n"), Some(50));
        let again = ctx.emit(once()).await?;
        assert_eq!(again.actions.state_delta, json!({"n": 1}).into(), "it is the event of the first time");
        assert_eq!(ctx.state().get("n"), Some(50), "which does not bring the old value back");
        Ok(())
    }
}

#[tokio::test]
async fn an_event_that_is_emitted_again_is_applied_once() {
    let sessions = sessions().await;
    run(Repeats(sessions.clone()), &sessions, "go").await.unwrap();
    assert_eq!(state(&sessions).await, json!({"n": 50}));
    let stored = session(&sessions).await;
    assert_eq!(stored.events().iter().filter(|event| event.id == "once").count(), 1);
}

#[tokio::test]
async fn a_bound_that_another_session_reached_first_is_the_error_of_the_call() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"app:stock": 1})).await;
    let others = sessions.clone();
    let take = FunctionTool::new("take", "", move |_: Nothing, ctx: ToolContext| {
        let others = others.clone();
        async move {
            let take_one = || Operation::add(-1).at_least(0);
            ctx.state().try_operate("app:stock", take_one())?;
            ctx.state().try_set("taken", true)?;
            let mut delta = Delta::new();
            delta.operate("stock", take_one());
            others.write_app_state("app", delta).await?;
            Ok::<_, BoxError>("taken")
        }
    });
    let agent = LlmAgent::builder("agent").model(Calls("take")).tool(take).build().unwrap();
    let runner = runner(agent, &sessions);

    let events = runner.run(says("one, please")).collect().await.unwrap();

    let answer = line(&events[1]);
    assert!(answer.contains("app:stock") && answer.contains("below the minimum 0"), "{answer}");
    assert_eq!(state(&sessions).await, json!({"app:stock": 0}), "nothing of the call is stored");
    assert_eq!(events.len(), 3, "the run goes on");

    // A tool that can see it is refused at once, and its model is told.
    let events = runner.run(says("another")).collect().await.unwrap();
    assert!(line(&events[1]).contains("below the minimum 0"), "{}", line(&events[1]));
}

#[tokio::test]
async fn a_tool_that_writes_more_than_a_scope_may_hold_is_answered_with_an_error() {
    let service = SessionService::new(MemoryStore::new()).with_max_scope_bytes(1_000);
    let sessions = with_session(service, json!({"user:large": "x".repeat(900)})).await;
    let grow = FunctionTool::new("grow", "", async |_: Nothing, ctx: ToolContext| {
        ctx.state().try_set("small", 1)?;
        ctx.state().try_append("user:log", ["y".repeat(200)])?;
        Ok::<_, BoxError>(())
    });
    let agent = LlmAgent::builder("agent").model(Calls("grow")).tool(grow).build().unwrap();

    let events = run(agent, &sessions, "go").await.unwrap();

    assert!(line(&events[1]).contains("at most 1000 are kept"), "{}", line(&events[1]));
    assert_eq!(
        state(&sessions).await,
        json!({"user:large": "x".repeat(900)}),
        "nothing of the call is stored"
    );
}

#[tokio::test]
async fn a_run_does_not_go_on_in_a_session_that_was_deleted_and_created_again() {
    let sessions = with_session(SessionService::new(MemoryStore::new()), json!({"old": 1})).await;
    let others = sessions.clone();
    let replace = FunctionTool::new("replace", "", move |_: Nothing, ctx: ToolContext| {
        let others = others.clone();
        async move {
            ctx.state().try_add("n", 1)?;
            others.delete(&key()).await?;
            others.create(CreateSession::new("app", "ada").with_id("s1")).await?;
            Ok::<_, BoxError>(())
        }
    });
    let agent = LlmAgent::builder("agent").model(Calls("replace")).tool(replace).build().unwrap();

    let error = run(agent, &sessions, "go").await.unwrap_err();

    assert!(matches!(error, RunError::Session(SessionError::Replaced { .. })), "{error}");
    assert_eq!(state(&sessions).await, json!({}));
    assert!(session(&sessions).await.events().is_empty(), "the new session has nothing of the run");
}
