//! A live session beside other writers of the same keys: nothing is lost in silence.

use std::sync::Arc;

use serde_json::{Value, json};
use sessile_live::{LiveEvent, LiveTool, LiveToolContext, Script};
use sessile_session::{
    CreateSession, Event, EventActions, EventWindow, MemoryStore, OnOverwrite, ScopeKey, SessionKey,
    SessionService, StateWrite,
};
use sessile_sqlite::SqliteStore;
use sessile_state::{Delta, Operation, State, StateSchema, ValueType};
use tokio::sync::Barrier;

use crate::common::{Session, call, connect, turn_complete, wrote};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn key(id: &str) -> SessionKey {
    SessionKey::new("desk", "ada", id).unwrap()
}

fn memory() -> SessionService {
    SessionService::new(MemoryStore::new())
}

/// A session that ends a turn whenever it is spoken to.
async fn talking(service: &SessionService, id: &str, on_overwrite: OnOverwrite) -> Session {
    let script = Script::new().wait_for("clientContent").send(wrote("ok")).send(turn_complete()).again();
    connect(script, |live| live.session(service.clone(), key(id)).on_overwrite(on_overwrite)).await
}

async fn one_turn(session: &mut Session) {
    session.handle.send_text("hi").await.unwrap();
    session.turn().await;
}

async fn points(service: &SessionService) -> i64 {
    service.user_state("desk", "ada").await.unwrap()["points"].as_i64().unwrap()
}

/// What all events of some sessions report as overwritten, added up: found - read.
async fn reported(service: &SessionService, ids: &[&str]) -> i64 {
    let mut sum = 0;
    for id in ids {
        let session = service.get(&key(id), EventWindow::ALL).await.unwrap().unwrap();
        for event in session.events().iter() {
            let Some(told) = event.overwrote() else { continue };
            let told = serde_json::to_value(told).unwrap();
            let of = |name: &str| told["user:points"][name].as_i64().unwrap_or(0);
            sum += of("found") - of("read");
        }
    }
    sum
}

async fn add_points(service: &SessionService, by: i64) {
    let mut delta = Delta::new();
    delta.add("points", by);
    let scope = ScopeKey::User("desk".to_owned(), "ada".to_owned());
    service.write_state(StateWrite::new(scope, delta)).await.unwrap();
}

scenarios! {
    async fn operations_of_two_sessions_and_a_direct_write_are_all_there() {
        let service = memory();
        let mut first = talking(&service, "s1", OnOverwrite::Report).await;
        let mut second = talking(&service, "s2", OnOverwrite::Report).await;
        for session in [&first, &second] {
            let state = session.state();
            state.add("user:points", 1);
            state.add("user:points", 2);
            assert_eq!(state.get("user:points"), Some(3), "the session sees its own at once");
            state.append("user:log", [session.state().get::<u32>("session:turn_count").unwrap_or(0)]);
            state.union("user:tags", ["both"]);
            state.union("user:profile", json!({"a": 1}));
        }
        second.state().union("user:tags", ["second"]);
        second.state().union("user:profile", json!({"b": 2}));
        add_points(&service, 10).await;
        one_turn(&mut first).await;
        one_turn(&mut second).await;
        let shared = json!(service.user_state("desk", "ada").await.unwrap());
        assert_eq!(shared, json!({
            "points": 16, "log": [0, 0], "tags": ["both", "second"], "profile": {"a": 1, "b": 2},
        }));
        assert_eq!(second.state().get("user:points"), Some(16), "and after the turn what is stored");
        let stored = service.get(&key("s2"), EventWindow::ALL).await.unwrap().unwrap();
        let last = stored.events().last().unwrap().event.clone();
        assert_eq!(json!(last.operations())["user:points"], json!({"add": 3}));
        assert!(last.overwrote().is_none() && last.actions.state_delta.values().any(|(key, _)| key == "user:points"));
        one_turn(&mut first).await;
        assert_eq!(first.state().get("user:points"), Some(16));
        assert_eq!(points(&service).await, 16, "nothing is added twice");
    }

    async fn a_value_that_was_read_and_set_reports_what_it_overwrote() {
        let service = memory();
        add_points(&service, 5).await;
        let mut session = talking(&service, "s1", OnOverwrite::Report).await;
        let read: i64 = session.state().get("user:points").unwrap();
        add_points(&service, 10).await;
        session.state().set("user:points", read + 1);
        session.handle.send_text("hi").await.unwrap();
        let told = session.until(|event| matches!(event, LiveEvent::Overwrote { .. })).await;
        let LiveEvent::Overwrote { key: name, read, found } = told else { unreachable!("it was waited for") };
        assert_eq!((&*name, json!(read), json!(found)), ("user:points", json!(5), json!(15)));
        session.turn().await;
        assert_eq!(points(&service).await + reported(&service, &["s1"]).await, 5 + 10 + 1);
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(0), "a report is no error");
    }

    async fn a_set_without_a_read_stays_blind_and_reads_of_conditions_do_not_count() {
        let service = memory();
        service.create(CreateSession::new("desk", "ada").with_id("s1").with_state(json!({"user:points": 5}))).await.unwrap();
        let script = Script::new().wait_for("clientContent").send(wrote("ok")).send(turn_complete()).again();
        let mut session = connect(script, |live| {
            live.session(service.clone(), key("s1"))
                .on_overwrite(OnOverwrite::Refuse)
                .instruction("You have {user:points} points.")
                .computed("double", ["user:points"], |state| Some(2 * state.get::<i64>("user:points")?))
        })
        .await;
        add_points(&service, 10).await;
        session.state().set("user:points", 1);
        one_turn(&mut session).await;
        assert_eq!(points(&service).await, 1);
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(0));
    }

    async fn modify_in_two_sessions_with_refuse_is_stored_or_reported() {
        let service = memory();
        add_points(&service, 5).await;
        let mut first = talking(&service, "s1", OnOverwrite::Refuse).await;
        let refusing = service.clone().with_on_overwrite(OnOverwrite::Refuse);
        let mut second = talking_on(&refusing, "s2", State::new()).await; // it does as its service
        first.state().modify("user:points", 0, |n: i64| n + 1);
        second.state().modify("user:points", 0, |n: i64| n + 2);
        second.state().set("kept", true);
        one_turn(&mut first).await;
        second.handle.send_text("hi").await.unwrap();
        let told = second.until(|event| matches!(event, LiveEvent::Conflict { .. })).await;
        let LiveEvent::Conflict { key: name, own, stored } = told else { unreachable!("it was waited for") };
        assert_eq!((&*name, json!(own), json!(stored)), ("user:points", json!(7), json!(6)));
        second.turn().await;
        assert_eq!(second.state().get("user:points"), Some(6), "it goes on with the stored value");
        let kept = service.get(&key("s2"), EventWindow::NONE).await.unwrap().unwrap();
        assert_eq!(kept.state().get::<bool>("kept"), Some(true), "the rest of the turn is stored");
        second.state().modify("user:points", 0, |n: i64| n + 2);
        one_turn(&mut second).await;
        assert_eq!(points(&service).await, 8);
    }

    async fn an_operation_that_cannot_be_applied_is_reported_and_the_rest_is_stored() {
        let service = memory();
        add_points(&service, 5).await;
        let mut session = talking(&service, "s1", OnOverwrite::Report).await;
        session.state().operate("user:points", Operation::add(-4).at_least(0));
        session.state().set("kept", true);
        add_points(&service, -3).await;
        session.handle.send_text("hi").await.unwrap();
        let told = session.until(|event| matches!(event, LiveEvent::Conflict { .. })).await;
        assert!(matches!(&told, LiveEvent::Conflict { stored: Some(stored), .. } if **stored == json!(2)), "{told:?}");
        let error = session.error().await;
        assert!(error.contains("\"user:points\"") && error.contains("below the minimum 0"), "{error}");
        session.turn().await;
        assert_eq!((points(&service).await, session.state().get("user:points")), (2, Some(2)));
        let stored = service.get(&key("s1"), EventWindow::NONE).await.unwrap().unwrap();
        assert_eq!(stored.state().get::<bool>("kept"), Some(true));
    }
}

/// A tool that adds one to the user's points in one of the ways, once all have read.
fn counting(how: fn(&State), all_have_read: Arc<Barrier>) -> LiveTool {
    LiveTool::function("count", "", move |_: Nothing, ctx: LiveToolContext| {
        let all_have_read = all_have_read.clone();
        async move {
            how(ctx.state());
            all_have_read.wait().await;
            Ok(json!({}))
        }
    })
}

const CALLS: i64 = 2;
const TURNS: i64 = 4;

/// Two sessions whose tools are called twice at once in each of four turns; in each turn all four
/// have read before the first is committed. Returns what is stored, what is reported, and how many
/// calls were answered with an error.
async fn counted(service: SessionService, how: fn(&State), on_overwrite: OnOverwrite) -> (i64, i64, i64) {
    let all_have_read = Arc::new(Barrier::new(2 * CALLS as usize));
    let calls = |turn: i64| {
        let calls =
            (0..CALLS).map(|call| json!({"id": format!("c{turn}-{call}"), "name": "count", "args": {}}));
        json!({"toolCall": {"functionCalls": calls.collect::<Vec<_>>()}})
    };
    let script = || {
        (0..TURNS).fold(Script::new(), |script, turn| {
            script.send(calls(turn)).wait_for("toolResponse").send(turn_complete())
        })
    };
    let mut sessions = Vec::new();
    for id in ["s1", "s2"] {
        let tool = counting(how, all_have_read.clone());
        let describe = |live: sessile_live::LiveBuilder| {
            live.tool(tool).session(service.clone(), key(id)).on_overwrite(on_overwrite)
        };
        sessions.push(connect(script(), describe).await);
    }
    for session in &mut sessions {
        session
            .until(|event| matches!(event, LiveEvent::TurnEnd(turn) if i64::from(turn.number) == TURNS))
            .await;
    }
    let mut errors = 0;
    for id in ["s1", "s2"] {
        let session = service.get(&key(id), EventWindow::ALL).await.unwrap().unwrap();
        let answers = session
            .events()
            .iter()
            .flat_map(|event| event.event.function_responses().cloned().collect::<Vec<_>>());
        errors +=
            answers.filter(|answer| answer.response.as_ref().unwrap().contains_key("error")).count() as i64;
    }
    (points(&service).await, reported(&service, &["s1", "s2"]).await, errors)
}

fn get_and_set(state: &State) {
    let n: i64 = state.get("user:points").unwrap_or(0);
    state.set("user:points", n + 1);
}

async fn in_a_file() -> (tempfile::TempDir, SessionService) {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:///{}", folder.path().join("live.db").display());
    let service = SessionService::new(SqliteStore::open_url(&url).await.unwrap());
    (folder, service)
}

scenarios! {
    async fn additions_of_tools_are_all_there() {
        let add = |state: &State| state.add("user:points", 1);
        let (_folder, file) = in_a_file().await;
        for service in [memory(), file] {
            assert_eq!(counted(service, add, OnOverwrite::Report).await, (2 * CALLS * TURNS, 0, 0));
        }
    }

    async fn what_tools_read_and_set_is_stored_or_reported() {
        let modify = |state: &State| {
            state.modify("user:points", 0, |n: i64| n + 1);
        };
        let (_folder, file) = in_a_file().await;
        for service in [memory(), file] {
            let (stored, reported, errors) = counted(service, get_and_set, OnOverwrite::Report).await;
            assert_eq!((stored + reported, errors), (2 * CALLS * TURNS, 0), "{stored} are stored, {reported} reported");
            assert!(reported >= TURNS, "the calls of one turn overwrite each other, which is reported: {reported}");
        }
        let (stored, reported, errors) = counted(memory(), modify, OnOverwrite::Report).await;
        assert_eq!((stored + reported, errors), (2 * CALLS * TURNS, 0), "{stored} are stored, {reported} reported");
    }

    async fn with_refuse_a_tool_that_read_what_another_changed_answers_with_an_error() {
        let service = memory();
        let all_have_read = Arc::new(Barrier::new(2));
        let calls = json!({"toolCall": {"functionCalls": [
            {"id": "a", "name": "count", "args": {}}, {"id": "b", "name": "count", "args": {}},
        ]}});
        let script = Script::new().send(calls).wait_for("toolResponse").send(turn_complete());
        let mut session = connect(script, |live| {
            live.tool(counting(get_and_set, all_have_read))
                .session(service.clone(), key("s1"))
                .on_overwrite(OnOverwrite::Refuse)
        })
        .await;
        session.turn().await;
        assert_eq!(points(&service).await, 1);
        let answers = &session.sent(0, "toolResponse")[0]["functionResponses"];
        let errors: Vec<&str> = answers.as_array().unwrap().iter().filter_map(|answer| answer["response"]["error"].as_str()).collect();
        assert_eq!(errors.len(), 1, "{answers}");
        assert!(errors[0].contains("\"user:points\" was changed since the tool read it"), "{errors:?}");
    }

    async fn a_tool_that_waits_for_a_change_sees_it() {
        let service = memory();
        let script = Script::new().send(call("c", "wait", json!({}))).wait_for("toolResponse").send(turn_complete());
        let mut session = connect(script, |live| {
            live.session(service.clone(), key("s1")).tool(LiveTool::function("wait", "", async |_: Nothing, ctx: LiveToolContext| {
                while !ctx.state().contains("go") {
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
                Ok(json!({}))
            }))
        })
        .await;
        session.state().set("go", true);
        session.turn().await;
        let stored = service.get(&key("s1"), EventWindow::NONE).await.unwrap().unwrap();
        assert_eq!(stored.state().get::<bool>("go"), Some(true));
    }

    async fn a_schema_is_obeyed_by_tools_at_once_and_by_callbacks_when_the_turn_is_stored() {
        let schema = StateSchema::new()
            .declare("user:points", ValueType::integer().at_least(0))
            .key::<String>("name");
        let service = memory().with_schema("desk", schema);
        let script = Script::new().send(call("c", "spend", json!({}))).wait_for("toolResponse").send(turn_complete())
            .wait_for("clientContent").send(turn_complete());
        let mut session = connect(script, |live| {
            live.session(service.clone(), key("s1")).tool(LiveTool::function("spend", "", async |_: Nothing, ctx: LiveToolContext| {
                ctx.state().try_add("user:points", -1)?;
                Ok(json!({}))
            }))
        })
        .await;
        session.turn().await;
        let answer = session.sent(0, "toolResponse")[0]["functionResponses"][0]["response"]["error"].clone();
        assert!(answer.as_str().unwrap().contains("`user:points` is declared as `integer` and cannot hold -1"), "{answer}");
        session.state().set("name", 5);
        session.state().add("user:points", 0.5);
        session.state().set("nmae", "Ada");
        session.state().add("user:points", 0);
        session.handle.send_text("hi").await.unwrap();
        let mut errors = Vec::new();
        for _ in 0..3 {
            errors.push(session.error().await);
        }
        assert!(errors.iter().any(|error| error.contains("\"name\" is not stored: it is declared as `String`")), "{errors:?}");
        assert!(errors.iter().any(|error| error.contains("\"nmae\" is not stored: it is not declared")), "{errors:?}");
        assert!(errors.iter().any(|error| error.contains("\"user:points\" is not stored: it is declared as `integer`")), "{errors:?}");
        session.turn().await;
        let stored = service.get(&key("s1"), EventWindow::ALL).await.unwrap().unwrap();
        assert_eq!(json!(stored.state().to_map()), json!({"live:turn_count": 2}));
    }

    async fn a_state_of_the_application_is_recorded_through_every_handle() {
        let service = memory();
        let state = State::new();
        state.set("before", 1);
        let script = Script::new().wait_for("clientContent").send(turn_complete()).again();
        let mut session = connect(script, |live| live.state(state.clone()).session(service.clone(), key("s1"))).await;
        state.add("user:points", 2);
        assert_eq!(session.state().get("user:points"), Some(2));
        add_points(&service, 3).await;
        one_turn(&mut session).await;
        assert_eq!((points(&service).await, state.get("user:points")), (5, Some(5)));
        let stored = service.get(&key("s1"), EventWindow::NONE).await.unwrap().unwrap();
        assert_eq!(stored.state().get::<u32>("before"), Some(1));
        session.handle.disconnect().await;
        // The state is free for the next session.
        let mut again = talking_on(&service, "s1", state.clone()).await;
        state.add("user:points", 1);
        one_turn(&mut again).await;
        assert_eq!(points(&service).await, 6);
    }

    async fn changes_of_a_turn_that_waits_are_shown_below_those_that_come_after() {
        let service = memory();
        let mut session = talking(&service, "s1", OnOverwrite::Report).await;
        let mut event = Event::new("user");
        event.actions = EventActions::from_delta([("user:points", json!(100))]);
        session.state().add("user:points", 1);
        service.append_to(&key("s1"), event).await.unwrap();
        one_turn(&mut session).await;
        assert_eq!(session.state().get::<Value>("user:points"), Some(json!(101)));
        session.state().add("user:points", 1);
        assert_eq!(session.state().get::<Value>("user:points"), Some(json!(102)));
        one_turn(&mut session).await;
        assert_eq!(points(&service).await, 102);
    }
}

async fn talking_on(service: &SessionService, id: &str, state: State) -> Session {
    let script = Script::new().wait_for("clientContent").send(turn_complete()).again();
    connect(script, |live| live.state(state).session(service.clone(), key(id))).await
}
