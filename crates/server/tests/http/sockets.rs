//! Where sockets matter: slow clients, broken connections, shutting down.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use sessile_server::{Limits, Server, serve};
use sessile_session::{EventWindow, SessionKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::apps::{server, sessions};
use crate::runs::says;

pub(crate) struct Listening {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Listening {
    pub(crate) async fn new(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(listener, server, async { stopped.await.unwrap_or(()) }));
        Self { address, stop: Some(stop), task }
    }

    fn shut_down(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request and reads until the server closes.
    async fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request(method, path, body).as_bytes()).await.unwrap();
        read(&mut stream).await
    }
}

fn request(method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn read(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is reset is closed, too.
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn impatient() -> Limits {
    let mut limits = Limits::default();
    (limits.header_time, limits.body_time) = (Duration::from_millis(200), Duration::from_millis(200));
    limits
}

const SESSION: &str = "/apps/echo/users/ada/sessions/s";

#[tokio::test]
async fn clients_that_send_too_slowly_are_let_go() {
    let server = Listening::new(server(sessions()).with_limits(impatient())).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: local").await.unwrap();
    let answer =
        tokio::time::timeout(Duration::from_secs(10), read(&mut stream)).await.expect("it is closed");
    assert!(answer.is_empty() || answer.contains("408"), "{answer}");

    let mut stream = server.connect().await;
    let head =
        "POST /apps/a/users/u/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    stream.write_all(format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).await.unwrap();
    let answer =
        tokio::time::timeout(Duration::from_secs(10), read(&mut stream)).await.expect("it is closed");
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("was not received within"), "{answer}");
    assert!(server.ask("GET", "/health", "").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn half_a_request_changes_nothing() {
    let server = Listening::new(server(sessions())).await;
    let mut stream = server.connect().await;
    let whole = request("POST", SESSION, r#"{"k":1}"#);
    stream.write_all(&whole.as_bytes()[..whole.len() - 3]).await.unwrap();
    stream.shutdown().await.unwrap();
    read(&mut stream).await;
    assert!(server.ask("GET", SESSION, "").await.starts_with("HTTP/1.1 404 "));
    let mut nonsense = server.connect().await;
    nonsense.write_all(b"\x16\x03\x01\x02\x00 nonsense\r\n\r\n").await.unwrap();
    assert!(read(&mut nonsense).await.starts_with("HTTP/1.1 400 "));
    assert!(server.ask("GET", "/health", "").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_broken_connection_ends_the_run_it_asked_for() {
    let server = Listening::new(server(sessions())).await;
    server.ask("POST", SESSION, "").await;
    let mut stream = server.connect().await;
    stream.write_all(request("POST", "/run_sse", &says("forever").to_string()).as_bytes()).await.unwrap();
    let runs = format!("{SESSION}/runs");
    while !server.ask("GET", &runs, "").await.contains("e-") {}
    drop(stream);
    while server.ask("GET", &runs, "").await.contains("e-") {}
    assert!(server.ask("POST", "/run", &says("x").to_string()).await.contains("you said x"));
}

#[tokio::test]
async fn shutting_down_finishes_what_runs_and_refuses_what_is_new() {
    let mut server = Listening::new(server(sessions())).await;
    server.ask("POST", SESSION, "").await;
    let mut kept = server.connect().await;
    kept.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 15];
    kept.read_exact(&mut head).await.unwrap();
    let mut stream = server.connect().await;
    stream.write_all(request("POST", "/run", &says("slow").to_string()).as_bytes()).await.unwrap();
    while !server.ask("GET", &format!("{SESSION}/runs"), "").await.contains("e-") {}
    server.shut_down();
    let answer = read(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains("one two"), "{answer}");
    server.task.await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn shutting_down_ends_what_does_not_end() {
    let sessions = sessions();
    let mut server = Listening::new(server(sessions.clone()).with_grace(Duration::from_millis(100))).await;
    server.ask("POST", SESSION, "").await;
    let mut body = says("forever");
    body["detach"] = json!(true);
    assert!(server.ask("POST", "/run", &body.to_string()).await.starts_with("HTTP/1.1 202 "));
    let mut watch = server.connect().await;
    watch.write_all(request("GET", &format!("{SESSION}/watch"), "").as_bytes()).await.unwrap();
    let mut head = [0; 15];
    watch.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    server.shut_down();
    tokio::time::timeout(Duration::from_secs(20), &mut server.task).await.expect("it ends").unwrap().unwrap();
    assert!(read(&mut watch).await.contains("event: snapshot"));
    // The run answers nothing any more, and its session says why.
    let key = SessionKey::new("echo", "ada", "s").unwrap();
    let session = sessions.get(&key, EventWindow::ALL).await.unwrap().unwrap();
    let last = session.events().last().unwrap();
    assert_eq!((last.author.as_str(), last.error_code.as_deref()), ("echo", Some("INVOCATION_ABORTED")));
    assert_eq!(last.invocation_id, session.events()[0].invocation_id);
    assert!(last.error_message.as_deref().unwrap().starts_with("the server was stopped"), "{last:?}");
    let again = Listening::new(crate::apps::server(sessions)).await;
    assert!(again.ask("POST", "/run", &says("x").to_string()).await.contains("you said x"));
}
