//! Lost connections and servers that go away.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sessile_live::{LiveError, LiveEvent, Reconnect, Script, ScriptedServer};

use crate::common::{builder, connect, connect_to, turn_complete, wrote};

fn handle(name: &str) -> Value {
    json!({"sessionResumptionUpdate": {"newHandle": name, "resumable": true}})
}

scenarios! {
    async fn a_lost_connection_goes_on_with_the_newest_handle() {
        let first = Script::new().send(handle("old")).send(handle("new")).cut();
        let second = Script::new().send(wrote("again")).send(turn_complete());
        let connected = Arc::new(Mutex::new(0));
        let count = connected.clone();
        let mut session = connect_to([first, second], |live| {
            live.on_connected(move |_| {
                *count.lock().unwrap() += 1;
                async {}
            })
        })
        .await;
        session.until(|event| matches!(event, LiveEvent::Reconnecting { attempt: 1, .. })).await;
        session.until(|event| matches!(event, LiveEvent::Connected { resumed: true })).await;
        session.turn().await;
        assert_eq!(session.sent(1, "setup")[0]["sessionResumption"], json!({"handle": "new"}));
        assert_eq!(*connected.lock().unwrap(), 2);
    }

    async fn a_handle_that_is_refused_is_given_up_and_a_new_conversation_begins() {
        let first = Script::new().send(handle("stale")).cut();
        let refusing = Script::silent().wait_for("setup").close(1007, "unknown handle");
        let third = Script::new().send(turn_complete());
        let mut session = connect_to([first, refusing, third], |live| live).await;
        session.until(|event| matches!(event, LiveEvent::Connected { resumed: false })).await;
        assert!(session.error().await.contains("lost"));
        assert!(session.error().await.contains("unknown handle"));
        session.until(|event| matches!(event, LiveEvent::Connected { resumed: false })).await;
        session.turn().await;
        assert_eq!(session.sent(2, "setup")[0]["sessionResumption"], json!({}));
    }

    async fn messages_sent_without_a_connection_arrive_on_the_next() {
        let first = Script::new().send(handle("h")).wait_for("clientContent").cut();
        let second = Script::new().with_pace(Duration::from_millis(100)).wait_for("clientContent").send(turn_complete());
        let mut session = connect_to([first, second], |live| live).await;
        session.until(|event| matches!(event, LiveEvent::Resumable(true))).await;
        session.handle.send_text("one").await.unwrap();
        session.until(|event| matches!(event, LiveEvent::Reconnecting { .. })).await;
        session.handle.send_text("two").await.unwrap();
        session.turn().await;
        let sent = session.sent(1, "clientContent");
        assert_eq!(sent.last().unwrap()["turns"][0]["parts"][0]["text"], "two");
    }

    async fn tries_end_and_the_session_is_over_with_a_reason() {
        let server = ScriptedServer::start([Script::new().cut(), Script::silent().cut()]).await.unwrap();
        let quick = Reconnect { attempts: 2, first: Duration::from_millis(10), longest: Duration::from_millis(20) };
        let session = builder().reconnect(quick).connect(server.transport()).await.unwrap();
        let reason = session.closed().await.unwrap();
        assert!(reason.contains("2 tries"), "{reason}");
        assert_eq!(session.state().get::<bool>("session:disconnected"), Some(true));
        assert!(matches!(session.send_text("hello?").await, Err(LiveError::Closed)));
    }

    async fn a_server_that_goes_away_is_left_at_the_end_of_the_turn() {
        let first = Script::new()
            .send(handle("h"))
            .send(json!({"goAway": {"timeLeft": "30s"}}))
            .send(wrote("let me finish"))
            .pause(Duration::from_millis(100))
            .send(wrote(" this"))
            .send(turn_complete());
        let second = Script::new().send(turn_complete());
        let mut session = connect_to([first, second], |live| live).await;
        session.turn().await;
        assert_eq!(session.handle.turns(1)[0].model(), "let me finish this");
        session.until(|event| matches!(event, LiveEvent::Connected { resumed: true })).await;
        session.turn().await;
        assert_eq!(session.state().get::<u64>("session:error_count"), Some(0));
    }

    async fn after_go_away_the_session_reconnects_in_time_when_neither_side_speaks() {
        let first = Script::new().send(handle("h")).send(json!({"goAway": {"timeLeft": "0.3s"}}));
        let mut session = connect_to([first, Script::new()], |live| live).await;
        session.until(|event| matches!(event, LiveEvent::GoAway { .. })).await;
        session.until(|event| matches!(event, LiveEvent::Connected { resumed: true })).await;
    }

    async fn an_ordinary_close_without_a_handle_ends_the_session() {
        let mut session = connect(Script::new().send(turn_complete()).close(1000, "bye"), |live| live).await;
        session.turn().await;
        let reason = session.handle.closed().await.unwrap();
        assert!(reason.contains("1000") && reason.contains("bye"), "{reason}");
    }

    async fn dropping_the_last_handle_ends_the_session() {
        let crate::common::Session { handle, server, mut events } = connect(Script::new(), |live| live).await;
        drop(handle);
        let mut last = None;
        while let Some(event) = events.recv().await {
            last = Some(event);
        }
        assert!(matches!(last, Some(LiveEvent::Disconnected { reason: None })), "{last:?}");
        drop(server);
    }

    async fn readers_come_to_the_end_with_the_session() {
        let session = connect(Script::new().wait_for("clientContent").send(turn_complete()), |live| live).await;
        let mut events = session.handle.events();
        session.handle.send_text("hi").await.unwrap();
        while !matches!(events.next().await, Some(LiveEvent::TurnEnd(_))) {}
        session.handle.disconnect().await;
        while events.next().await.is_some() {}
        assert!(session.handle.events().next().await.is_none());
    }
}
