//! Phases of a conversation.

use std::sync::{Arc, Mutex};

use serde_json::json;
use sessile_live::{KeyWatch, LiveEvent, LiveTool, LiveToolContext, Phase, PhaseTrigger, Script};

use crate::common::{call, connect, turn_complete};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn mark(name: &'static str) -> LiveTool {
    LiveTool::function(name, "", async move |_: Nothing, ctx: LiveToolContext| {
        ctx.state().try_set(&ctx.call().name, true)?;
        Ok(())
    })
}

scenarios! {
    async fn the_initial_phase_is_really_entered() {
        let mut session = connect(Script::new(), |live| {
            live.instruction("Base.")
                .phase(Phase::new("other"))
                .phase(
                    Phase::new("greeting")
                        .with_instruction("Greet {user:name?}.")
                        .on_enter(|state| async move { state.set("entered", true) }),
                )
                .initial_phase("greeting")
        })
        .await;
        assert_eq!(session.handle.phase().as_deref(), Some("greeting"));
        assert_eq!(session.state().get::<bool>("entered"), Some(true));
        assert_eq!(session.state().get::<String>("live:phase").as_deref(), Some("greeting"));
        session.holds("session:phase", "Active").await; // that of the wire is another key
        assert_eq!(session.sent(0, "setup")[0]["systemInstruction"]["parts"][0]["text"], "Base.\n\nGreet .");
        let event = session.until(|event| matches!(event, LiveEvent::Phase(_))).await;
        let LiveEvent::Phase(change) = event else { unreachable!("it was waited for") };
        assert_eq!((change.from.as_deref(), change.trigger), (None, PhaseTrigger::Start));
    }

    async fn guards_are_checked_after_watches_and_the_model_gets_the_new_instruction() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let (exit, enter) = (order.clone(), order.clone());
        let script = Script::new().send(call("c", "verify", json!({}))).wait_for("toolResponse").send(turn_complete());
        let mut session = connect(script, move |live| {
            live.tool(mark("verify"))
                .watch(KeyWatch::on("verify").became_true().then(|change| async move { change.state.set("trusted", true) }))
                .phase(
                    Phase::new("check")
                        .with_instruction("Check.")
                        .with_transition("help", |state| state.get("trusted") == Some(true))
                        .on_exit(move |_| {
                            exit.lock().unwrap().push("exit");
                            async {}
                        }),
                )
                .phase(Phase::new("help").with_instruction("Help.").prompt_on_enter().terminal().on_enter(move |_| {
                    enter.lock().unwrap().push("enter");
                    async {}
                }))
        })
        .await;
        session.turn().await;
        assert_eq!(session.handle.phase().as_deref(), Some("help"));
        assert_eq!(*order.lock().unwrap(), ["exit", "enter"]);
        let contents = session.server_got(0, "clientContent", 2).await;
        assert_eq!(contents[0]["turns"][0]["parts"][0]["text"], "[New instruction]\nHelp.");
        assert_eq!(contents[1], json!({"turns": [], "turnComplete": true}));
        let history = session.handle.phase_history();
        assert_eq!(history.len(), 2);
        assert_eq!((history[1].from.as_deref(), history[1].to.as_str()), (Some("check"), "help"));
        assert_eq!(history[1].trigger, PhaseTrigger::Guard(0));
    }

    async fn the_guard_of_the_target_must_hold_too_and_the_first_possible_transition_is_taken() {
        let script = Script::new().send(turn_complete());
        let mut session = connect(script, |live| {
            live.phase(
                Phase::new("a").with_transition("closed", |_| true).with_transition("open", |_| true).with_transition("late", |_| true),
            )
            .phase(Phase::new("closed").with_guard(|_| false))
            .phase(Phase::new("open"))
            .phase(Phase::new("late"))
        })
        .await;
        session.turn().await;
        assert_eq!(session.handle.phase().as_deref(), Some("open"));
    }

    async fn a_tool_of_another_phase_is_refused_until_the_phase_comes() {
        let script = Script::new()
            .send(call("1", "pay", json!({})))
            .wait_for("toolResponse")
            .send(call("2", "verify", json!({})))
            .wait_for("toolResponse")
            .send(call("3", "pay", json!({})))
            .wait_for("toolResponse")
            .send(turn_complete());
        let mut session = connect(script, |live| {
            live.tool(mark("pay"))
                .tool(mark("verify"))
                .phase(Phase::new("check").with_tools(["verify"]).with_transition("pay", |state| state.contains("verify")))
                .phase(Phase::new("pay").with_tools(["pay"]))
        })
        .await;
        session.turn().await;
        let answers = session.sent(0, "toolResponse");
        let answer = |number: usize| answers[number]["functionResponses"][0]["response"].clone();
        assert!(answer(0)["error"].as_str().unwrap().contains("\"check\""));
        assert_eq!(answer(2), json!({"result": null}));
    }

    async fn a_transition_can_be_forced() {
        let session = connect(Script::new(), |live| {
            live.phase(Phase::new("a")).phase(Phase::new("b").with_guard(|_| false))
        })
        .await;
        session.handle.transition("b").await.unwrap();
        assert_eq!(session.handle.phase().as_deref(), Some("b"));
        assert_eq!(session.handle.phase_history()[1].trigger, PhaseTrigger::Forced);
        let error = session.handle.transition("nowhere").await.unwrap_err().to_string();
        assert!(error.contains("\"nowhere\""), "{error}");
        session.handle.disconnect().await;
        assert!(session.handle.transition("a").await.is_err());
    }

    async fn two_phases_that_want_each_other_do_not_hang_the_session() {
        let script = Script::new().send(turn_complete()).send(turn_complete());
        let mut session = connect(script, |live| {
            live.phase(Phase::new("a").with_transition("b", |_| true)).phase(Phase::new("b").with_transition("a", |_| true))
        })
        .await;
        session.turn().await;
        session.turn().await;
    }

    async fn an_instruction_follows_state_at_the_end_of_a_turn() {
        let script = Script::new().wait_for("clientContent").send(turn_complete());
        let mut session = connect(script, |live| live.instruction("Talk to {user:name?}.")).await;
        session.state().set("user:name", "Ada");
        session.handle.send_text("hi").await.unwrap();
        session.turn().await;
        let sent = session.server_got(0, "clientContent", 2).await;
        assert_eq!(sent[1]["turns"][0]["parts"][0]["text"], "[New instruction]\nTalk to Ada.");
    }
}
