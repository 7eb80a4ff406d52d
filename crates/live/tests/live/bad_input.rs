//! Whatever the server does: an error and a defined state, never a hang.

use std::time::Duration;

use serde_json::json;
use sessile_live::{LiveError, LiveEvent, Platform, Script, ScriptedServer, WebSocket, WirePhase};

use crate::common::{builder, connect, connect_to, turn_complete, wrote};

scenarios! {
    async fn frames_that_cannot_be_read_are_errors_and_the_session_goes_on() {
        let frames = ["", "{", "{\"serverContent\":", "null", "[]", "7", "\"text\"", "{\"toolCall\":5}", "\u{0}"];
        let script = frames.iter().fold(Script::new(), |script, frame| script.send_text(*frame));
        let mut session = connect(script.send(turn_complete()), |live| live).await;
        session.turn().await;
        assert_eq!(session.state().get::<usize>("session:error_count"), Some(frames.len()));
        assert_eq!(session.handle.wire_phase(), WirePhase::Active);
    }

    async fn what_is_well_formed_beside_something_broken_is_kept() {
        let script = Script::new()
            .send(json!({"serverContent": {
                "modelTurn": {"parts": [{"text": 5}, {"text": "good"}, 7, {"inlineData": {"data": "!!"}}]},
                "outputTranscription": "no object",
                "turnComplete": true
            }, "usageMetadata": {"totalTokenCount": 4}}));
        let mut session = connect(script, |live| live).await;
        session.turn().await;
        assert_eq!(session.handle.turns(1)[0].model(), "good");
        assert_eq!(session.state().get::<u32>("session:total_token_count"), Some(4));
        assert_eq!(session.state().get::<u32>("session:error_count"), Some(4));
    }

    async fn a_call_without_a_name_is_an_error_and_its_sisters_are_answered() {
        let script = Script::new()
            .send(json!({"toolCall": {"functionCalls": [{"id": "a"}, {"id": "b", "name": "nobody"}]}}));
        let mut session = connect(script, |live| live).await;
        assert!(session.error().await.contains("functionCall"));
        let answers = session.server_got(0, "toolResponse", 1).await;
        assert_eq!(answers[0]["functionResponses"][0]["id"], "b");
    }

    async fn a_server_that_refuses_the_setup_is_an_error_with_its_words() {
        let server = ScriptedServer::start([Script::silent().wait_for("setup").close(1008, "no such model")]).await.unwrap();
        let error = builder().connect(server.transport()).await.unwrap_err();
        assert!(matches!(&error, LiveError::Refused { code: Some(1008), reason } if reason == "no such model"), "{error}");
    }

    async fn a_server_that_never_agrees_is_given_up() {
        let server = ScriptedServer::start([Script::silent()]).await.unwrap();
        let times = (Duration::from_secs(5), Duration::from_millis(100));
        let error = builder().connect_timeout(times.0, times.1).connect(server.transport()).await.unwrap_err();
        assert!(matches!(error, LiveError::Timeout { .. }), "{error}");
    }

    async fn a_server_that_is_not_there_or_speaks_something_else_is_an_error() {
        let nowhere = WebSocket::new(Platform::GoogleAi, "ws://127.0.0.1:1/?key=secret");
        let error = builder().connect(nowhere).await.unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        let nonsense = WebSocket::new(Platform::GoogleAi, "no address?key=secret");
        let error = builder().connect(nonsense).await.unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    async fn a_close_in_the_middle_of_a_turn_is_an_error_and_the_next_connection_goes_on() {
        let first = Script::new().send(wrote("I was")).close(1011, "internal");
        let second = Script::new().send(wrote(" saying")).send(turn_complete());
        let mut session = connect_to([first, second], |live| live).await;
        assert!(session.error().await.contains("internal"));
        session.turn().await;
        assert_eq!(session.handle.turns(1)[0].model(), "I was saying");
    }

    async fn a_server_that_goes_silent_is_noticed() {
        // It reads nothing either, so it does not answer pings.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            use futures_util::{SinkExt, StreamExt};
            let (socket, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(socket).await.unwrap();
            socket.next().await.unwrap().unwrap();
            let agreed = tokio_tungstenite::tungstenite::Message::text(r#"{"setupComplete":{}}"#);
            socket.send(agreed).await.unwrap();
            std::future::pending::<()>().await;
        });
        let transport = WebSocket::new(Platform::GoogleAi, url);
        let live = builder().keepalive(Duration::from_millis(150)).connect_timeout(Duration::from_millis(200), Duration::from_millis(200));
        let session = live.connect(transport).await.unwrap();
        let reason = session.closed().await.unwrap();
        assert!(reason.contains("tries did not help"), "{reason}");
        let errors: u64 = session.state().get("session:error_count").unwrap();
        assert!(errors >= 2, "{errors}");
    }

    async fn a_quiet_server_that_answers_pings_is_not_given_up() {
        let script = Script::new().pause(Duration::from_millis(700)).send(turn_complete());
        let mut session = connect(script, |live| live.keepalive(Duration::from_millis(100))).await;
        session.turn().await;
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(0));
    }

    async fn something_before_the_agreement_is_an_error_and_left_out() {
        let script = Script::silent().wait_for("setup").send(wrote("too early")).send(json!({"setupComplete": {}})).send(turn_complete());
        let mut session = connect(script, |live| live).await;
        assert!(session.error().await.contains("before it accepted"));
        session.turn().await;
        assert!(session.handle.turns(1).is_empty());
    }

    async fn a_callback_that_panics_ends_the_session_and_it_is_said() {
        let session = connect(Script::new().send(wrote("x")), |live| live.on_text(|_| panic!("oh no"))).await;
        assert!(session.handle.closed().await.unwrap().contains("panicked"));
        let session = connect(Script::new().send(turn_complete()), |live| {
            live.on_turn_complete(|_, _| async { panic!("oh no") })
        })
        .await;
        assert!(session.handle.closed().await.unwrap().contains("panicked"));
    }

    async fn an_action_that_panics_is_an_error_and_the_session_goes_on() {
        let script = Script::new().send(turn_complete()).wait_for("clientContent").send(turn_complete());
        let mut session = connect(script, |live| {
            live.pattern(sessile_live::Pattern::turns(1, |_| true).then(|_| async { panic!("oh no") }))
        })
        .await;
        assert!(session.error().await.contains("an action failed"));
        session.handle.send_text("still there?").await.unwrap();
        session.until(|event| matches!(event, LiveEvent::TurnEnd(turn) if turn.number == 2)).await;
    }
}
