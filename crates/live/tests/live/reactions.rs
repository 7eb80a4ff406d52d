//! Computed variables, watches and patterns.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sessile_live::{KeyWatch, LiveEvent, LiveTool, LiveToolContext, Pattern, Script, WatchOn};
use sessile_state::State;

use crate::common::{Session, call, connect, eventually, turn_complete};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Set {
    key: String,
    value: Value,
}

/// A tool that sets the key of its arguments.
fn set() -> LiveTool {
    LiveTool::function("set", "Sets a key", async |args: Set, ctx: LiveToolContext| {
        ctx.state().try_set(args.key, args.value)?;
        Ok(())
    })
}

fn sets(values: &[(&str, Value)]) -> Script {
    values.iter().fold(Script::new(), |script, (key, value)| {
        script.send(call("c", "set", json!({"key": key, "value": value}))).wait_for("toolResponse")
    })
}

/// The changes that a watch saw, one after the other, while a tool sets the key to these values.
async fn seen(values: &[Value], watch: impl FnOnce(WatchOn) -> WatchOn) -> Vec<(Value, Value)> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    let values: Vec<_> = values.iter().map(|value| ("key", value.clone())).collect();
    let mut session = connect(sets(&values).send(turn_complete()), |live| {
        live.tool(set()).watch(watch(KeyWatch::on("key")).then(move |change| {
            let value = |value: Option<sessile_state::SharedValue>| {
                value.map_or(json!("absent"), |it| it.into_value())
            };
            note.lock().unwrap().push((value(change.old), value(change.new)));
            async {}
        }))
    })
    .await;
    session.turn().await;
    std::mem::take(&mut *seen.lock().unwrap())
}

/// Counts how often a pattern was seen.
async fn fire(state: State) {
    state.modify("fired", 0, |n| n + 1);
}

async fn finish(session: &mut Session) {
    session.turn().await;
}

scenarios! {
    async fn a_computed_variable_follows_tools_callbacks_and_other_tasks() {
        let script = sets(&[("price", json!(10))]).wait_for("clientContent").send(turn_complete());
        let mut session = connect(script, |live| {
            live.tool(set())
                .computed("total", ["price", "count"], |state| {
                    Some(state.get::<i64>("price")? * state.get::<i64>("count")?)
                })
                .on_connected(|session| async move { session.state().set("count", 2) })
                .on_turn_complete(|_, state| async move { state.set("count", 5) })
        })
        .await;
        session.holds("derived:total", 20).await; // the callback, then the tool
        session.state().set("price", 3); // this task
        session.holds("total", 6).await;
        session.handle.send_text("go on").await.unwrap();
        finish(&mut session).await;
        assert_eq!(session.state().get::<i64>("total"), Some(15)); // the callback at the end of the turn
        session.state().remove("price");
        eventually("it has no value any more", || !session.handle.state().contains("derived:total")).await;
    }

    async fn computed_variables_are_computed_in_order_whatever_they_are_called() {
        let mut session = connect(sets(&[("base", json!(10))]).send(turn_complete()), |live| {
            live.tool(set())
                .computed("derived:last", ["derived:middle"], |state| Some(state.get::<i64>("middle")? * 2))
                .computed("middle", ["base"], |state| state.get::<i64>("base"))
        })
        .await;
        finish(&mut session).await;
        assert_eq!(session.state().get::<i64>("derived:last"), Some(20));
    }

    async fn a_computed_variable_is_computed_only_when_an_input_changes() {
        let runs = Arc::new(Mutex::new(0));
        let count = runs.clone();
        let mut session = connect(sets(&[("other", json!(1)), ("input", json!(1)), ("other", json!(2))]).send(turn_complete()), |live| {
            live.tool(set()).computed("output", ["input"], move |_| {
                *count.lock().unwrap() += 1;
                Some(1)
            })
        })
        .await;
        finish(&mut session).await;
        assert_eq!(*runs.lock().unwrap(), 2); // at the beginning, and when the input came
    }

    async fn a_computed_variable_that_is_not_json_is_an_error_and_the_rest_continues() {
        let mut session = connect(Script::new().wait_for("clientContent").send(turn_complete()), |live| {
            live.computed("bad", ["x"], |_| Some(f64::NAN)).computed("good", ["x"], |_| Some(1))
        })
        .await;
        session.holds("derived:good", 1).await;
        assert!(session.error().await.contains("\"bad\""));
        session.handle.send_text("go on").await.unwrap();
        session.turn().await;
    }

    async fn changed_fires_on_every_change() {
        let changes = seen(&[json!(1), json!(1), json!(2)], |watch| watch).await;
        assert_eq!(changes, [(json!("absent"), json!(1)), (json!(1), json!(2))]);
    }

    async fn changed_to_and_changed_from_look_at_one_side() {
        let values = [json!("a"), json!("b"), json!("a")];
        assert_eq!(seen(&values, |watch| watch.changed_to("b")).await, [(json!("a"), json!("b"))]);
        assert_eq!(seen(&values, |watch| watch.changed_from("b")).await, [(json!("b"), json!("a"))]);
    }

    async fn crossed_above_and_below_look_at_numbers() {
        let values = [json!(1), json!(3), json!(4), json!(2), json!("text"), json!(5)];
        assert_eq!(seen(&values, |watch| watch.crossed_above(3.0)).await, [(json!(1), json!(3))]);
        assert_eq!(seen(&values, |watch| watch.crossed_below(3.0)).await, [(json!(4), json!(2))]);
    }

    async fn became_true_and_became_false_look_at_truth() {
        let values = [json!(true), json!(1), json!(false), json!(true)];
        let became_true = seen(&values, WatchOn::became_true).await;
        assert_eq!(became_true, [(json!("absent"), json!(true)), (json!(false), json!(true))]);
        assert_eq!(seen(&values, WatchOn::became_false).await, [(json!(true), json!(1))]);
    }

    async fn a_condition_of_ones_own_sees_both_values() {
        let longer = |watch: WatchOn| {
            watch.when(|old, new| old.is_some_and(|old| old.as_str() < new.and_then(|new| new.as_str())))
        };
        assert_eq!(seen(&[json!("a"), json!("c"), json!("b")], longer).await, [(json!("a"), json!("c"))]);
    }

    async fn watches_act_in_the_order_in_which_they_were_added() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut session = connect(sets(&[("z", json!(1))]).send(turn_complete()), |live| {
            (0..20).fold(live.tool(set()), |live, number| {
                let order = order.clone();
                live.watch(KeyWatch::on(if number % 2 == 0 { "z" } else { "derived:a" }).then(move |_| {
                    order.lock().unwrap().push(number);
                    async {}
                }))
            })
            .computed("a", ["z"], |state: &State| state.get::<i64>("z"))
        })
        .await;
        finish(&mut session).await;
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    async fn what_another_task_writes_is_seen_without_a_turn() {
        let session = connect(Script::new(), |live| {
            live.watch(KeyWatch::on("outside").then(|change| async move { change.state.set("noticed", true) }))
        })
        .await;
        session.state().set("outside", 1);
        session.holds("noticed", true).await;
    }

    async fn a_concurrent_watch_does_not_hold_the_session_up() {
        let release = Arc::new(tokio::sync::Notify::new());
        let gate = release.clone();
        let mut session = connect(sets(&[("key", json!(1))]).send(turn_complete()), |live| {
            live.tool(set()).watch(KeyWatch::on("key").concurrent().then(move |change| {
                let gate = gate.clone();
                async move {
                    gate.notified().await;
                    change.state.set("late", true);
                }
            }))
        })
        .await;
        finish(&mut session).await;
        release.notify_one();
        session.holds("late", true).await;
    }

    async fn a_watch_that_writes_its_own_key_does_not_run_for_ever() {
        let mut session = connect(sets(&[("n", json!(1))]).send(turn_complete()).send(turn_complete()), |live| {
            live.tool(set()).watch(
                KeyWatch::on("n").when(|_, new| new.is_some_and(|new| new.as_i64() < Some(4))).then(|change| async move {
                    change.state.modify("n", 0, |n| n + 1);
                }),
            )
        })
        .await;
        finish(&mut session).await;
        session.holds("n", 4).await; // one step each time the session settles, until the condition no longer holds
    }

    async fn a_sustained_condition_fires_once_and_again_after_it_broke() {
        let session = connect(Script::new(), |live| {
            let hot = Pattern::sustained(Duration::from_millis(150), |state| state.get("hot") == Some(true));
            live.pattern(hot.then(fire))
        })
        .await;
        session.state().set("hot", true);
        session.holds("fired", 1).await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert_eq!(session.state().get::<u32>("fired"), Some(1));
        session.state().set("hot", false);
        tokio::time::sleep(Duration::from_millis(250)).await;
        session.state().set("hot", true);
        session.holds("fired", 2).await;
    }

    async fn a_rate_counts_events_of_its_kind_and_fires_at_the_edge() {
        let interrupted = json!({"serverContent": {"interrupted": true}});
        let script = (0..5).fold(Script::new(), |script, _| script.send(interrupted.clone())).send(turn_complete());
        let mut session = connect(script, |live| {
            let often = Pattern::rate(3, Duration::from_secs(60), |event| matches!(event, LiveEvent::Interrupted));
            live.pattern(often.then(fire))
        })
        .await;
        finish(&mut session).await;
        session.holds("fired", 1).await;
    }

    async fn a_pattern_over_turns_counts_turns_and_nothing_else() {
        let mut session = connect(Script::new().wait_for("clientContent").send(turn_complete()).again(), |live| {
            let stuck = Pattern::turns(2, |state| state.get("stuck") == Some(true));
            let timed = Pattern::sustained(Duration::from_millis(10), |_| true);
            live.pattern(stuck.then(fire))
                .pattern(timed.then(|_| async {}))
        })
        .await;
        session.state().set("stuck", true);
        tokio::time::sleep(Duration::from_millis(350)).await;
        assert!(!session.state().contains("fired")); // ticks do not count as turns
        for _ in 0..4 {
            session.handle.send_text("next").await.unwrap();
            session.turn().await;
        }
        session.holds("fired", 1).await;
    }

    async fn a_cooldown_keeps_a_pattern_quiet() {
        let session = connect(Script::new(), |live| {
            let on = Pattern::sustained(Duration::from_millis(10), |state| state.get("on") == Some(true));
            live.pattern(on.then(fire).with_cooldown(Duration::from_secs(3600)))
        })
        .await;
        for _ in 0..2 {
            session.state().set("on", true);
            tokio::time::sleep(Duration::from_millis(350)).await;
            session.state().set("on", false);
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        assert_eq!(session.state().get::<u32>("fired"), Some(1));
    }
}
