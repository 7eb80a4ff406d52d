//! Live sessions over a real socket.

use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use sessile_agent::{LlmAgent, Runner};
use sessile_artifact::{ArtifactKey, ArtifactService, MemoryArtifacts};
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
async fn errors_are_reported_by_the_status_or_by_the_close_frame() {
    let (sessions, _) = with_session("echo").await;
    let address = listen(server(sessions)).await;
    for (query, status) in [
        ("app_name=echo&session_id=s", 403),
        ("user_id=ada&session_id=s", 403),
        ("app_name=nope&user_id=a&session_id=s", 404),
        ("app_name=echo&user_id=a&session_id=s&modalities=VIDEO", 403),
        ("app_name=echo&user_id=a&session_id=s&modalities=SMELL", 403),
        ("app_name=echo&user_id=a&session_id=s&save_live_blob=perhaps", 422),
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
        let look = LiveTool::function("look", "", async |_: Value, ctx: sessile_live::LiveToolContext| {
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

/// A live application that talks to a scripted server.
fn voice_app(sessions: &SessionService, google: &ScriptedServer) -> App {
    let agent = LlmAgent::builder("desk").model(Scripted::new([reply("unused")])).build().unwrap();
    let runner = Runner::builder("desk", agent, sessions.clone()).build().unwrap();
    let url = google.url().to_owned();
    App::new(runner).with_live(move |live| {
        live.connect(sessile_live::WebSocket::new(sessile_live::Platform::GoogleAi, url.clone()))
    })
}

fn voice(data: &str) -> Value {
    let blob = json!({"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": data}});
    json!({"serverContent": {"modelTurn": {"parts": [blob]}}})
}

#[tokio::test]
async fn audio_is_saved_as_artifacts_if_the_client_asks_for_it() {
    let (sessions, key) = with_session("desk").await;
    let google = ScriptedServer::start([Script::new()
        .wait_for("realtimeInput")
        .wait_for("realtimeInput")
        .send(voice("AQID"))
        .send(json!({"serverContent": {"interrupted": true}}))
        .send(voice("BAUG"))
        .send(voice("Bwg="))
        .send(json!({"serverContent": {"turnComplete": true}}))
        .wait_for("clientContent")
        .send(voice("CQ=="))])
    .await
    .unwrap();
    let artifacts = Arc::new(MemoryArtifacts::new());
    let apps = Apps::new().with(voice_app(&sessions, &google));
    let address = listen(Server::new(sessions.clone(), apps).with_artifacts(artifacts.clone())).await;
    let mut socket = connect(&address, "app_name=desk&user_id=ada&session_id=s&save_live_blob=true").await;
    for data in ["AAAA", "/////w=="] {
        send(&mut socket, json!({"blob": {"mime_type": "audio/pcm;rate=16000", "data": data}})).await;
    }
    let events = until(&mut socket, |event| event["turnComplete"] == true).await;
    let uris: Vec<String> = events
        .iter()
        .filter_map(|event| Some(event.pointer("/content/parts/0/fileData/fileUri")?.as_str()?.to_owned()))
        .collect();
    assert_eq!(
        uris.len(),
        3,
        "an interruption saves what the model said, the end of a turn the rest: {uris:?}"
    );
    send(&mut socket, json!({"content": {"role": "user", "parts": [{"text": "more"}]}})).await;
    until(&mut socket, |event| event.pointer("/content/parts/0/inlineData").is_some()).await;
    send(&mut socket, json!({"close": true})).await;
    assert_eq!(closed(&mut socket).await.0, 1000);

    let stored = sessions.get(&key, EventWindow::ALL).await.unwrap().unwrap();
    let mut heard = Vec::new();
    for event in stored.events() {
        for part in event.content.iter().flat_map(|content| content.parts()) {
            assert!(part.inline_data.is_none(), "sound is not stored in the session");
            let Some(file) = &part.file_data else { continue };
            let uri = file.file_uri.as_deref().unwrap();
            let name =
                uri.strip_prefix("artifact://desk/ada/s/_adk_live/").and_then(|rest| rest.strip_suffix("#0"));
            let name = name.unwrap_or_else(|| panic!("{uri}"));
            let kind = if event.author == "user" { "input_audio" } else { "output_audio" };
            assert!(
                name.starts_with(&format!("adk_live_audio_storage_{kind}_")) && name.ends_with(".pcm"),
                "{name}"
            );
            let saved = artifacts.load(&ArtifactKey::new(&key, name), None).await.unwrap().unwrap();
            let blob = saved.inline_data.as_deref().unwrap();
            heard.push((
                event.author.to_string(),
                blob.mime_type.clone().unwrap(),
                blob.data.clone().unwrap().0,
            ));
        }
    }
    let of = |author: &str, rate: u32, data: &[u8]| {
        (author.to_owned(), format!("audio/pcm;rate={rate}"), data.to_vec())
    };
    let expected = [
        of("desk", 24000, &[1, 2, 3]),
        of("user", 16000, &[0, 0, 0, 255, 255, 255, 255]),
        of("desk", 24000, &[4, 5, 6, 7, 8]),
        of("desk", 24000, &[9]),
    ];
    assert_eq!(heard, expected, "also what the end of the conversation cuts off");
}

#[tokio::test]
async fn what_cannot_be_done_live_is_refused_with_a_reason() {
    let (sessions, _) = with_session("desk").await;
    let google = ScriptedServer::start([Script::new()]).await.unwrap();
    let address =
        listen(Server::new(sessions.clone(), Apps::new().with(voice_app(&sessions, &google)))).await;
    for (wish, reason) in [
        ("save_live_blob", "has no artifact service"),
        ("enable_session_resumption", "only Vertex AI"),
        ("explicit_vad_signal", "only Vertex AI"),
    ] {
        let mut socket =
            connect(&address, &format!("app_name=desk&user_id=ada&session_id=s&{wish}=true")).await;
        let (code, said) = closed(&mut socket).await;
        assert_eq!(code, 1011, "{wish}");
        assert!(said.contains(reason), "{wish}: {said}");
    }
    assert!(google.received().is_empty(), "nothing was connected");
}
