//! A server that plays scripted conversations, for tests and examples without a network.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::lock::lock;
use crate::transport::{Platform, WebSocket};

/// What the server does on one connection, step by step.
///
/// ```
/// use serde_json::json;
/// use sessile_live::Script;
///
/// let script = Script::new()
///     .wait_for("clientContent")
///     .send(json!({"serverContent": {"modelTurn": {"parts": [{"text": "Hello!"}]}}}))
///     .send(json!({"serverContent": {"turnComplete": true}}));
/// ```
#[derive(Debug, Clone)]
pub struct Script {
    steps: Vec<Step>,
    pace: Duration,
}

#[derive(Debug, Clone)]
enum Step {
    Send(Message),
    WaitFor(String),
    Pause(Duration),
    Close(u16, String),
    Cut,
    /// Continues at the step with this index.
    Again(usize),
}

impl Script {
    /// Waits for the setup, and accepts it.
    pub fn new() -> Self {
        Self::silent().wait_for("setup").send(json!({"setupComplete": {}}))
    }

    /// Accepts the connection, but does not answer the setup.
    pub fn silent() -> Self {
        Self { steps: Vec::new(), pace: Duration::from_millis(10) }
    }

    /// Sends a message.
    #[must_use]
    pub fn send(self, message: Value) -> Self {
        self.send_text(message.to_string())
    }

    /// Sends a text that need not be JSON.
    #[must_use]
    pub fn send_text(self, text: impl Into<String>) -> Self {
        self.step(Step::Send(Message::text(text.into())))
    }

    /// Sends a message as bytes, as Vertex AI does.
    #[must_use]
    pub fn send_bytes(self, message: &Value) -> Self {
        self.step(Step::Send(Message::binary(message.to_string().into_bytes())))
    }

    /// Waits until the client has sent the next message of this kind, such as `clientContent`.
    #[must_use]
    pub fn wait_for(self, kind: impl Into<String>) -> Self {
        self.step(Step::WaitFor(kind.into()))
    }

    /// Pauses for this time.
    #[must_use]
    pub fn pause(self, time: Duration) -> Self {
        self.step(Step::Pause(time))
    }

    /// Closes the connection.
    #[must_use]
    pub fn close(self, code: u16, reason: impl Into<String>) -> Self {
        self.step(Step::Close(code, reason.into()))
    }

    /// Drops the connection without a close frame.
    #[must_use]
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Repeats everything after the setup, for ever.
    #[must_use]
    pub fn again(self) -> Self {
        self.step(Step::Again(2))
    }

    /// Sets the pause before each message; the default is 10 milliseconds.
    #[must_use]
    pub fn with_pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

/// A WebSocket server on this computer that plays scripts.
#[derive(Debug)]
pub struct ScriptedServer {
    url: String,
    received: Arc<Mutex<Vec<Vec<Value>>>>,
    accepting: JoinHandle<()>,
}

impl ScriptedServer {
    /// Starts the server. Each connection plays the next script; further ones repeat the last.
    ///
    /// # Errors
    ///
    /// An I/O error if no port can be opened.
    pub async fn start(scripts: impl IntoIterator<Item = Script>) -> Result<Self, std::io::Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("ws://{}", listener.local_addr()?);
        let received = Arc::new(Mutex::new(Vec::new()));
        let scripts: Vec<Script> = scripts.into_iter().collect();
        let accepting = tokio::spawn(accept(listener, scripts, received.clone()));
        Ok(Self { url, received, accepting })
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The transport that connects to it.
    pub fn transport(&self) -> WebSocket {
        WebSocket::new(Platform::GoogleAi, self.url.clone())
    }

    /// The messages that clients sent so far, by connection.
    pub fn received(&self) -> Vec<Vec<Value>> {
        lock(&self.received).clone()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Record = Arc<Mutex<Vec<Vec<Value>>>>;

async fn accept(listener: TcpListener, scripts: Vec<Script>, received: Record) {
    let mut connections = tokio::task::JoinSet::new(); // dropped, and so aborted, with the server
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { return };
                let number = {
                    let mut received = lock(&received);
                    received.push(Vec::new());
                    received.len() - 1
                };
                if let Some(script) = scripts.get(number).or(scripts.last()) {
                    connections.spawn(play(socket, script.clone(), number, received.clone()));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Plays a script. A client may disconnect at any time, so errors only end the script.
async fn play(socket: TcpStream, script: Script, number: usize, received: Record) {
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let Ok(socket) = tokio_tungstenite::accept_async(socket).await else { return };
    let (mut sink, mut stream) = socket.split();
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let read = async move {
        while let Some(Ok(message)) = stream.next().await {
            if let Message::Text(text) = message {
                let message = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text.as_str()));
                lock(&received)[number].push(message.clone());
                if arrived.send(message).is_err() {
                    return;
                }
            }
        }
    };
    let write = async {
        let mut index = 0;
        while let Some(step) = script.steps.get(index) {
            index += 1;
            match step {
                Step::Send(message) => {
                    tokio::time::sleep(script.pace).await;
                    if sink.send(message.clone()).await.is_err() {
                        return true;
                    }
                }
                Step::WaitFor(kind) => {
                    while let Some(message) = arrivals.recv().await {
                        if message.get(kind).is_some() {
                            break;
                        }
                    }
                    if arrivals.is_closed() && arrivals.is_empty() {
                        return true;
                    }
                }
                Step::Pause(time) => tokio::time::sleep(*time).await,
                Step::Close(code, reason) => {
                    let frame = CloseFrame { code: CloseCode::from(*code), reason: reason.clone().into() };
                    return sink.send(Message::Close(Some(frame))).await.is_err();
                }
                Step::Cut => return true,
                Step::Again(first) => index = *first,
            }
        }
        false
    };
    tokio::pin!(read);
    let over = tokio::select! {
        () = &mut read => true,
        over = write => over,
    };
    if !over {
        read.await; // the script is over; keep reading until the client disconnects
    }
}
