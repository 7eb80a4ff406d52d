//! What the scenarios share.

use std::future::Future;
use std::time::Duration;

use serde_json::{Value, json};
use sessile_live::{Live, LiveBuilder, LiveEvent, LiveHandle, Reconnect, Script, ScriptedServer};
use sessile_state::State;
use tokio::sync::mpsc;

/// No scenario takes this long, unless something hangs.
pub(crate) async fn limited(scenario: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(60), scenario).await.expect("the scenario hangs");
}

/// A session under test, its server, and what happened.
pub(crate) struct Session {
    pub(crate) handle: LiveHandle,
    pub(crate) server: ScriptedServer,
    pub(crate) events: mpsc::UnboundedReceiver<LiveEvent>,
}

/// Connects with a session described by `describe` to a server that plays one script.
pub(crate) async fn connect(script: Script, describe: impl FnOnce(LiveBuilder) -> LiveBuilder) -> Session {
    connect_to([script], describe).await
}

/// Connects to a server that plays these scripts, one for each connection.
pub(crate) async fn connect_to(
    scripts: impl IntoIterator<Item = Script>,
    describe: impl FnOnce(LiveBuilder) -> LiveBuilder,
) -> Session {
    let server = ScriptedServer::start(scripts).await.unwrap();
    let (sender, events) = mpsc::unbounded_channel();
    let builder = describe(builder()).on_event(move |event| drop(sender.send(event.clone())));
    let handle = builder.connect(server.transport()).await.unwrap();
    Session { handle, server, events }
}

/// A description whose reconnects are quick.
pub(crate) fn builder() -> LiveBuilder {
    let quick =
        Reconnect { attempts: 3, first: Duration::from_millis(40), longest: Duration::from_millis(200) };
    Live::builder().reconnect(quick)
}

impl Session {
    pub(crate) fn state(&self) -> &State {
        self.handle.state()
    }

    /// Waits for an event.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&LiveEvent) -> bool) -> LiveEvent {
        loop {
            let event = self.events.recv().await.expect("the session ended before the event");
            if wanted(&event) {
                return event;
            }
        }
    }

    /// Waits for the end of a turn and all that follows from it.
    pub(crate) async fn turn(&mut self) {
        self.until(|event| matches!(event, LiveEvent::TurnEnd(_))).await;
    }

    /// Waits for an error, and returns it.
    pub(crate) async fn error(&mut self) -> String {
        match self.until(|event| matches!(event, LiveEvent::Error(_))).await {
            LiveEvent::Error(message) => message.to_string(),
            _ => unreachable!("only errors are waited for"),
        }
    }

    /// Waits until a key holds a value.
    pub(crate) async fn holds(&self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        eventually(&format!("{key} is {value}"), || {
            self.state().get_raw(key).is_some_and(|now| *now == value)
        })
        .await;
    }

    /// The messages of this kind that the server received on a connection.
    pub(crate) fn sent(&self, connection: usize, kind: &str) -> Vec<Value> {
        let received = self.server.received();
        let messages = received.get(connection).into_iter().flatten();
        messages.filter_map(|message| message.get(kind).cloned()).collect()
    }

    /// Waits until the server has received so many messages of a kind on a connection.
    pub(crate) async fn server_got(&self, connection: usize, kind: &str, count: usize) -> Vec<Value> {
        eventually(&format!("{count} {kind}"), || self.sent(connection, kind).len() >= count).await;
        self.sent(connection, kind)
    }
}

/// Waits until something holds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), wait).await.is_ok(), "never came true: {what}");
}

pub(crate) fn said(text: &str) -> Value {
    json!({"serverContent": {"inputTranscription": {"text": text}}})
}

pub(crate) fn spoke(text: &str) -> Value {
    json!({"serverContent": {"outputTranscription": {"text": text}}})
}

pub(crate) fn wrote(text: &str) -> Value {
    json!({"serverContent": {"modelTurn": {"role": "model", "parts": [{"text": text}]}}})
}

pub(crate) fn turn_complete() -> Value {
    json!({"serverContent": {"turnComplete": true}})
}

pub(crate) fn call(id: &str, name: &str, args: Value) -> Value {
    json!({"toolCall": {"functionCalls": [{"id": id, "name": name, "args": args}]}})
}
