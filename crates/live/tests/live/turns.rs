//! Turns and their transcripts.

use std::sync::{Arc, Mutex};

use serde_json::json;
use sessile_live::{LiveEvent, LiveTool, LiveToolContext, Script, TurnItem};

use crate::common::{call, connect, said, spoke, turn_complete, wrote};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

scenarios! {
    async fn turn_keys_live_until_the_next_turn_begins() {
        let at_end = Arc::new(Mutex::new(None));
        let note = at_end.clone();
        let script = Script::new()
            .send(call("c", "note", json!({})))
            .wait_for("toolResponse")
            .send(turn_complete())
            .wait_for("clientContent")
            .send(wrote("next"))
            .send(turn_complete());
        let mut session = connect(script, |live| {
            live.tool(LiveTool::function("note", "", async |_: Nothing, ctx: LiveToolContext| {
                ctx.state().turn().set("noted", 1);
                Ok(())
            }))
            .on_turn_complete(move |_, state| {
                note.lock().unwrap().get_or_insert(state.turn().get::<u32>("noted"));
                async {}
            })
        })
        .await;
        session.turn().await;
        assert_eq!(*at_end.lock().unwrap(), Some(Some(1)));
        assert_eq!(session.state().turn().get::<u32>("noted"), Some(1)); // between turns too
        session.handle.send_text("go on").await.unwrap();
        assert_eq!(session.state().turn().get::<u32>("noted"), None); // a turn has begun
    }

    async fn what_is_said_is_put_together_from_its_pieces_turn_by_turn() {
        let script = Script::new()
            .send(said("my name "))
            .send(said("is "))
            .send(said("Alice"))
            .send(spoke("Hello "))
            .send(spoke("Alice!"))
            .send(turn_complete())
            .send(spoke("Anything else?"))
            .send(turn_complete());
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        session.turn().await;
        let turns = session.handle.turns(10);
        assert_eq!((turns[0].user().as_str(), turns[0].model().as_str()), ("my name is Alice", "Hello Alice!"));
        assert_eq!((turns[1].user().as_str(), turns[1].model().as_str()), ("", "Anything else?"));
        assert_eq!((turns[0].number, turns[1].number), (1, 2));
    }

    async fn an_interruption_keeps_what_was_said() {
        let script = Script::new()
            .send(spoke("Well, you "))
            .send(json!({"serverContent": {"interrupted": true}}))
            .send(turn_complete());
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        let turn = &session.handle.turns(1)[0];
        assert_eq!(turn.model(), "Well, you ");
        assert!(turn.interrupted);
    }

    async fn a_turn_holds_texts_and_calls_in_order() {
        let script = Script::new()
            .wait_for("clientContent")
            .send(call("c", "f", json!({"a": 1})))
            .wait_for("toolResponse")
            .send(wrote("Done."))
            .send(turn_complete());
        let mut session = connect(script, |live| {
            live.tool(LiveTool::function("f", "", async |_: serde_json::Value, _| Ok(json!({"ok": true}))))
        })
        .await;
        session.handle.send_text("do it").await.unwrap();
        session.turn().await;
        let turn = session.handle.turns(1).remove(0);
        assert!(matches!(
            &turn.items[..],
            [TurnItem::User(text), TurnItem::Call(call), TurnItem::Answer(answer), TurnItem::Model(said)]
                if text == "do it" && call.args["a"] == 1 && answer.response == json!({"ok": true}) && said == "Done."
        ), "{turn:?}");
    }

    async fn a_turn_without_anything_in_it_counts_and_is_not_kept() {
        let mut session = connect(Script::new().send(turn_complete()), |live| live).await;
        session.turn().await;
        assert!(session.handle.turns(10).is_empty());
        assert_eq!(session.state().get::<u32>("session:turn_count"), Some(1));
    }

    async fn text_is_reported_in_pieces_and_as_a_whole() {
        let whole = Arc::new(Mutex::new(Vec::new()));
        let note = whole.clone();
        let script = Script::new().send(wrote("Hel")).send(wrote("lo")).send(turn_complete()).send(wrote("Bye")).send(turn_complete());
        let mut session = connect(script, |live| live.on_text_complete(move |text| note.lock().unwrap().push(text.to_owned()))).await;
        session.turn().await;
        session.turn().await;
        assert_eq!(*whole.lock().unwrap(), ["Hello", "Bye"]);
    }

    async fn callbacks_hear_of_connection_interruption_go_away_and_the_end() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let note = |what: &'static str| {
            let heard = heard.clone();
            move || heard.lock().unwrap().push(what)
        };
        let (connected, interrupted, go_away, disconnected, error) =
            (note("connected"), note("interrupted"), note("go away"), note("disconnected"), note("error"));
        let script = Script::new()
            .send(json!({"serverContent": {"interrupted": true}}))
            .send_text("?")
            .send(json!({"goAway": {"timeLeft": "60s"}}));
        let mut session = connect(script, move |live| {
            live.on_connected(move |_| { connected(); async {} })
                .on_interrupted(move |_| { interrupted(); async {} })
                .on_go_away(move |_| { go_away(); async {} })
                .on_error(move |_| { error(); async {} })
                .on_disconnected(move |_| { disconnected(); async {} })
        })
        .await;
        assert_eq!(*heard.lock().unwrap(), ["connected"]);
        session.until(|event| matches!(event, LiveEvent::GoAway { .. })).await;
        session.handle.disconnect().await;
        assert_eq!(*heard.lock().unwrap(), ["connected", "interrupted", "error", "go away", "disconnected"]);
    }

    async fn a_callback_may_end_the_session_and_cannot_wait_for_itself() {
        let asked = Arc::new(Mutex::new(None));
        let note = asked.clone();
        let session = connect(Script::new(), |live| {
            live.phase(sessile_live::Phase::new("a")).on_connected(move |session| {
                let note = note.clone();
                async move {
                    *note.lock().unwrap() = Some(session.transition("a").await.is_err());
                    session.disconnect().await;
                }
            })
        })
        .await;
        assert_eq!(session.handle.closed().await, None);
        assert_eq!(*asked.lock().unwrap(), Some(true));
    }

    async fn voices_and_tokens_are_reported_at_once() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (start, end, usage, input, output) =
            (heard.clone(), heard.clone(), heard.clone(), heard.clone(), heard.clone());
        let script = Script::new()
            .send(json!({"voiceActivity": {"voiceActivityType": "ACTIVITY_START"}}))
            .send(json!({"voiceActivity": {"voiceActivityType": "ACTIVITY_END"}}))
            .send(json!({"usageMetadata": {"totalTokenCount": 9}}))
            .send(said("a"))
            .send(spoke("b"))
            .send(turn_complete());
        let mut session = connect(script, move |live| {
            live.on_voice_start(move || start.lock().unwrap().push("start".to_owned()))
                .on_voice_end(move || end.lock().unwrap().push("end".to_owned()))
                .on_usage(move |tokens| usage.lock().unwrap().push(format!("{:?}", tokens.total_token_count)))
                .on_input_transcript(move |text, _| input.lock().unwrap().push(text.to_owned()))
                .on_output_transcript(move |text, _| output.lock().unwrap().push(text.to_owned()))
        })
        .await;
        session.turn().await;
        assert_eq!(*heard.lock().unwrap(), ["start", "end", "Some(9)", "a", "b"]);
    }
}
