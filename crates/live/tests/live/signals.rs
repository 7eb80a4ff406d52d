//! Every `session:` key: the server sends the message, the key is read.

use std::time::Duration;

use serde_json::json;
use sessile_live::{LiveEvent, Script, WirePhase};

use crate::common::{connect, connect_to, said, spoke, turn_complete, wrote};

scenarios! {
    async fn is_user_speaking_follows_the_voice() {
        let script = Script::new()
            .send(json!({"voiceActivity": {"voiceActivityType": "ACTIVITY_START", "audioOffset": "1.250s"}}))
            .wait_for("clientContent")
            .send(json!({"voiceActivity": {"voiceActivityType": "VOICE_ACTIVITY_END"}}));
        let session = connect(script, |live| live).await;
        assert!(session.state().contains("session:is_user_speaking"));
        session.holds("session:is_user_speaking", true).await;
        session.handle.send_text("go on").await.unwrap();
        session.holds("session:is_user_speaking", false).await;
    }

    async fn is_model_speaking_and_phase_follow_the_wire() {
        let script = Script::new()
            .send(wrote("Hel"))
            .wait_for("clientContent")
            .send(turn_complete());
        let mut session = connect(script, |live| live).await;
        session.holds("session:phase", "ModelSpeaking").await;
        session.holds("session:is_model_speaking", true).await;
        session.handle.send_text("go on").await.unwrap();
        session.turn().await;
        session.holds("session:phase", "Active").await;
        session.holds("session:is_model_speaking", false).await;
        session.handle.disconnect().await;
        session.holds("session:phase", "Disconnected").await;
    }

    async fn interrupt_count_counts_each_interruption() {
        let interrupted = json!({"serverContent": {"interrupted": true}});
        let script = Script::new().send(interrupted.clone()).send(interrupted).send(turn_complete());
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        assert_eq!(session.state().get::<u64>("session:interrupt_count"), Some(2));
    }

    async fn error_count_and_last_error_follow_each_error() {
        let script = Script::new().send_text("{").send_text("[1]").send(turn_complete());
        let mut session = connect(script, |live| live).await;
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(0));
        session.turn().await;
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(2));
        let last: String = session.state().session().get("last_error").unwrap();
        assert!(last.contains("not a JSON object"), "{last}");
    }

    async fn silence_elapsed_and_budget_run_with_time() {
        let session = connect(Script::new(), |live| live).await;
        let state = session.state().clone();
        let read = move |key: &str| state.session().get::<u64>(key).unwrap();
        crate::common::eventually("time passes", || read("silence_ms") >= 150 && read("elapsed_ms") >= 150).await;
        let (elapsed, budget) = (read("elapsed_ms"), read("remaining_budget_ms"));
        assert!((14 * 60 * 1000..=15 * 60 * 1000 - 150).contains(&budget), "{elapsed} {budget}");
    }

    async fn go_away_received_and_time_left_come_with_the_notice() {
        let script = Script::new().send(json!({"goAway": {"timeLeft": "2.5s"}}));
        let mut session = connect(script, |live| live).await;
        assert_eq!(session.state().get::<bool>("session:go_away_received"), Some(false));
        let event = session.until(|event| matches!(event, LiveEvent::GoAway { .. })).await;
        assert!(matches!(event, LiveEvent::GoAway { time_left: Some(left) } if left == Duration::from_millis(2500)));
        assert_eq!(session.state().get::<bool>("session:go_away_received"), Some(true));
        assert_eq!(session.state().get::<u64>("session:go_away_time_left_ms"), Some(2500));
    }

    async fn resumable_follows_the_updates() {
        let update = |handle: &str, resumable| {
            json!({"sessionResumptionUpdate": {
                "newHandle": handle, "resumable": resumable, "lastConsumedClientMessageIndex": "17"
            }})
        };
        let script = Script::new().send(update("h", true)).wait_for("clientContent").send(update("", false));
        let session = connect(script, |live| live).await;
        session.holds("session:resumable", true).await;
        session.holds("session:last_consumed_client_index", "17").await;
        session.handle.send_text("go on").await.unwrap();
        session.holds("session:resumable", false).await;
    }

    async fn token_counts_follow_usage() {
        let usage = json!({"usageMetadata": {
            "totalTokenCount": 15, "promptTokenCount": 7, "responseTokenCount": "5",
            "cachedContentTokenCount": 2, "thoughtsTokenCount": 1
        }});
        let script = Script::new().send(usage).send(turn_complete());
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        let count = |name: &str| session.state().session().get::<u32>(name);
        assert_eq!(count("total_token_count"), Some(15));
        assert_eq!(count("prompt_token_count"), Some(7));
        assert_eq!(count("response_token_count"), Some(5));
        assert_eq!(count("cached_content_token_count"), Some(2));
        assert_eq!(count("thoughts_token_count"), Some(1));
    }

    async fn last_input_transcription_is_what_was_heard_in_the_turn() {
        let script = Script::new().send(said("my name ")).send(said("is ")).send(said("Ada")).send(turn_complete());
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        let heard: String = session.state().session().get("last_input_transcription").unwrap();
        assert_eq!(heard, "my name is Ada");
    }

    async fn last_output_transcription_is_what_was_said_in_the_turn() {
        let script = Script::new()
            .send(spoke("Hello "))
            .send(turn_complete())
            .send(spoke("Good "))
            .send(spoke("bye"))
            .send(turn_complete());
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        session.turn().await;
        let said: String = session.state().session().get("last_output_transcription").unwrap();
        assert_eq!(said, "Good bye");
    }

    async fn session_type_follows_what_is_sent() {
        let session = connect(Script::new(), |live| live).await;
        session.holds("session:session_type", "audio_only").await;
        session.handle.send_video(vec![1, 2, 3].into(), "image/jpeg").await.unwrap();
        session.holds("session:session_type", "audio_video").await;
        let state = session.state().clone();
        crate::common::eventually("the budget is that of pictures", || {
            state.get::<u64>("session:remaining_budget_ms").is_some_and(|budget| budget <= 2 * 60 * 1000)
        })
        .await;
    }

    async fn disconnected_is_false_while_connected_and_true_after() {
        let session = connect(Script::new(), |live| live).await;
        assert_eq!(session.state().get::<bool>("session:disconnected"), Some(false));
        session.handle.disconnect().await;
        assert_eq!(session.state().get::<bool>("session:disconnected"), Some(true));
        assert_eq!(session.handle.wire_phase(), WirePhase::Disconnected);
    }

    async fn connected_at_ms_is_the_time_of_the_clock() {
        struct Noon;
        impl sessile_session::Clock for Noon {
            fn now(&self) -> f64 {
                43_200.5
            }
        }
        let session = connect(Script::new(), |live| live.clock(Noon)).await;
        assert_eq!(session.state().get::<u64>("session:connected_at_ms"), Some(43_200_500));
    }

    async fn turn_count_counts_complete_turns() {
        let script = Script::new().send(turn_complete()).send(turn_complete());
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        session.turn().await;
        assert_eq!(session.state().get::<u32>("session:turn_count"), Some(2));
    }

    async fn counters_survive_a_reconnect() {
        let interrupted = json!({"serverContent": {"interrupted": true}});
        let first = Script::new().wait_for("realtimeInput").send(interrupted.clone()).send_text("{").cut();
        let second = Script::new().send(interrupted).send(turn_complete());
        let mut session = connect_to([first, second], |live| live).await;
        session.handle.send_video(vec![1].into(), "image/jpeg").await.unwrap();
        session.turn().await;
        assert_eq!(session.state().get::<u64>("session:interrupt_count"), Some(2));
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(2)); // the frame, and the lost connection
        session.holds("session:session_type", "audio_video").await;
        session.holds("session:disconnected", false).await;
    }
}
