//! Live sessions over a real socket.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sessile_agent::{LlmAgent, Runner};
use sessile_live::{LiveTool, Script, ScriptedServer};
use sessile_model::{Scripted, reply};
use sessile_server::{App, Apps, Server, router};
use sessile_session::{CreateSession, EventWindow, SessionKey, SessionService};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::apps::{server, sessions};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Serves on a free port, and gives the address.
async fn listen(server: Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("ws://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router(server)).await });
    address
}

async fn with_session(app: &str) -> (SessionService, SessionKey) {
    let sessions = sessions();
    let new = CreateSession::new(app, "ada").with_id("s");
    let key = sessions.create(new).await.unwrap().key().clone();
    (sessions, key)
}

async fn connect(address: &str, query: &str) -> Socket {
    connect_async(format!("{address}/run_live?{query}")).await.unwrap().0
}

async fn send(socket: &mut Socket, request: Value) {
    socket.send(Message::text(request.to_string())).await.unwrap();
}

/// Events until one fits.
async fn until(socket: &mut Socket, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => events.push(serde_json::from_str::<Value>(&text).unwrap()),
            other => panic!("{other:?} after {events:?}"),
        }
        if events.last().is_some_and(&fits) {
            return events;
        }
    }
}

/// The code and the reason with which the server closes.
async fn closed(socket: &mut Socket) -> (u16, String) {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(Some(frame)))) => return (frame.code.into(), frame.reason.to_string()),
            Some(Ok(_)) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_text_agent_runs_once_for_each_message_and_state_is_stored() {
    let (sessions, key) = with_session("echo").await;
    let address = listen(server(sessions.clone())).await;
    let mut socket = connect(&address, "app_name=echo&user_id=ada&session_id=s&modalities=TEXT").await;
    send(&mut socket, json!({"state_delta": {"alone": 1, "temp:no": 1}})).await;
    let says = |text: &str| json!({"content": {"role": "user", "parts": [{"text": text}]}, "state_delta": {"k": text}});
    for text in ["one", "two"] {
        send(&mut socket, says(text)).await;
        let events = until(&mut socket, |event| event["turnComplete"] == true).await;
        let whole =
            events.iter().find(|event| event["partial"] != true && event.get("content").is_some()).unwrap();
        assert_eq!(whole["content"]["parts"][0]["text"], format!("you said {text}"));
        assert_eq!(whole["author"], "echo");
    }
    send(&mut socket, json!({"close": true})).await;
    assert_eq!(closed(&mut socket).await.0, 1000);
    let stored = sessions.get(&key, EventWindow::ALL).await.unwrap().unwrap();
    assert_eq!(stored.state().get::<i64>("alone"), Some(1));
    assert_eq!(stored.state().get::<String>("k").as_deref(), Some("two"));
    assert_eq!(stored.events().len(), 5);
}

#[tokio::test]
async fn what_is_wrong_is_said_by_the_status_or_by_the_close() {
    let (sessions, _) = with_session("echo").await;
    let address = listen(server(sessions)).await;
    for (query, status) in [
        ("app_name=echo&session_id=s", 403),
        ("user_id=ada&session_id=s", 403),
        ("app_name=nope&user_id=a&session_id=s", 404),
    ] {
        match connect_async(format!("{address}/run_live?{query}")).await {
            Err(Error::Http(response)) => assert_eq!(response.status(), status, "{query}"),
            other => panic!("{query}: {other:?}"),
        }
    }
    let mut socket = connect(&address, "app_name=echo&user_id=ada&session_id=none").await;
    assert_eq!(closed(&mut socket).await, (1002, "Session not found".to_owned()));
    for frame in ["{", "[]", r#"{"content": 5}"#, r#"{"blob": {"mime_type": "audio/pcm", "data": "AAAA"}}"#] {
        let mut socket = connect(&address, "app_name=echo&user_id=ada&session_id=s").await;
        socket.send(Message::text(frame)).await.unwrap();
        let (code, reason) = closed(&mut socket).await;
        assert_eq!(code, 1011, "{frame}: {reason}");
        assert!(!reason.is_empty() && reason.len() <= 123);
    }
}

#[tokio::test]
async fn a_live_agent_speaks_and_its_turns_are_stored() {
    let (sessions, key) = with_session("desk").await;
    let google = ScriptedServer::start([Script::new()
        .wait_for("realtimeInput")
        .send(json!({"serverContent": {"inputTranscription": {"text": "hello", "finished": true}}}))
        .send(json!({"toolCall": {"functionCalls": [{"id": "c", "name": "look", "args": {}}]}}))
        .wait_for("toolResponse")
        .send(json!({"serverContent": {"modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AQID"}}]}}}))
        .send(json!({"serverContent": {"outputTranscription": {"text": "hi"}, "turnComplete": true}}))])
    .await
    .unwrap();
    let url = google.url().to_owned();
    let agent = LlmAgent::builder("desk").model(Scripted::new([reply("unused")])).build().unwrap();
    let runner = Runner::builder("desk", agent, sessions.clone()).build().unwrap();
    let app = App::new(runner).with_live(move |live| {
        let transport = sessile_live::WebSocket::new(sessile_live::Platform::GoogleAi, url.clone());
        let look = LiveTool::function("look", "", async |_: Value, ctx: sessile_live::ToolContext| {
            ctx.state().set("looked", true);
            Ok(json!({"seen": 1}))
        });
        live.tool(look).connect(transport)
    });
    let address = listen(Server::new(sessions.clone(), Apps::new().with(app))).await;
    let mut socket = connect(&address, "app_name=desk&user_id=ada&session_id=s").await;
    send(
        &mut socket,
        json!({"blob": {"mime_type": "audio/pcm", "data": "AAAA"}, "state_delta": {"mood": "good"}}),
    )
    .await;
    let events = until(&mut socket, |event| event["turnComplete"] == true).await;
    let find =
        |pointer: &str| events.iter().find_map(|event| event.pointer(pointer)).cloned().unwrap_or_default();
    assert_eq!(find("/inputTranscription/text"), "hello");
    assert_eq!(find("/content/parts/0/functionCall/name"), "look");
    assert_eq!(find("/content/parts/0/functionResponse/response"), json!({"seen": 1}));
    assert_eq!(find("/content/parts/0/inlineData/data"), "AQID");
    assert_eq!(find("/outputTranscription/text"), "hi");
    send(&mut socket, json!({"close": true})).await;
    assert_eq!(closed(&mut socket).await.0, 1000);
    let stored = sessions.get(&key, EventWindow::ALL).await.unwrap().unwrap();
    assert_eq!(stored.state().get::<bool>("looked"), Some(true));
    assert_eq!(stored.state().get::<String>("mood").as_deref(), Some("good"));
    assert_eq!(stored.state().get::<u32>("live:turn_count"), Some(1));
}
