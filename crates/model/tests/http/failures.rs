//! Retries, timeouts, limits, cancellation and secrets: the same for all models over HTTP.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use sessile_agent::{Model, ModelError, Streaming};
use sessile_model::{Endpoint, Gemini, HttpOptions};
use tokio::net::TcpListener;

use crate::wire::{Answer, End, Server, hello, parts, pieces, text, whole};

/// How long the model waited between tries; nothing is really waited for.
type Waits = Arc<Mutex<Vec<Duration>>>;

fn endpoint(url: &str, waits: &Waits) -> Endpoint {
    let waits = waits.clone();
    Endpoint::gemini("the-key").with_base_url(url).with_sleep(move |wait| {
        waits.lock().expect("no test panics with it").push(wait);
        Box::pin(std::future::ready(()))
    })
}

fn model(server: &Server, waits: &Waits) -> Gemini {
    Gemini::new("gemini-x", endpoint(&server.url, waits)).expect("it is configured")
}

fn with_options(server: &Server, set: impl FnOnce(&mut HttpOptions)) -> Gemini {
    let mut options = HttpOptions::default();
    set(&mut options);
    let endpoint = endpoint(&server.url, &Waits::default()).with_options(options);
    Gemini::new("gemini-x", endpoint).expect("it is configured")
}

fn hi() -> Value {
    json!({ "candidates": [{ "content": { "parts": [{ "text": "hi" }] }, "finishReason": "STOP" }] })
}

fn error(code: u16, message: &str) -> Answer {
    Answer::status(code, &json!({ "error": { "code": code, "message": message } }).to_string())
}

#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_wants() {
    let busy = || error(429, "slow down").with_header("retry-after", "7");
    let in_body =
        json!({ "error": { "message": "quota", "details": [{ "retryDelay": "3.5s" }] } }).to_string();
    let server = Server::start([
        busy(),
        Answer::status(429, &in_body),
        Answer::json(&hi()),
        busy(),
        Answer::events(&[hi()]),
    ])
    .await;
    let waits = Waits::default();
    let model = model(&server, &waits);
    assert_eq!(parts(&whole(&model).await.unwrap()), json!([{ "text": "hi" }]));
    let waited = waits.lock().unwrap().clone();
    assert!(waited[0] == Duration::from_secs(7), "{waited:?}");
    assert!(waited[1] == Duration::from_millis(3500), "{waited:?}");
    assert_eq!(pieces(&model).await.0.len(), 1);
    assert_eq!(server.asked().len(), 5);
}

#[tokio::test]
async fn retries_are_used_up_and_the_last_error_is_told() {
    let server = Server::start((0..5).map(|n| error(500, &format!("failure {n}")))).await;
    let waits = Waits::default();
    let error = whole(&model(&server, &waits)).await.unwrap_err();
    assert_eq!(error.to_string(), "the model \"gemini-x\" is unavailable: failure 4 (500)");
    assert_eq!(server.asked().len(), 5);
    let waited = waits.lock().unwrap().clone();
    let longest = [1, 2, 4, 8].map(Duration::from_secs);
    assert!(
        waited.len() == 4 && waited.iter().zip(longest).all(|(wait, longest)| *wait <= longest),
        "{waited:?}"
    );
}

#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_for_long_is_not_asked_again() {
    let server = Server::start([error(429, "tomorrow").with_header("retry-after", "3600")]).await;
    let failed = whole(&model(&server, &Waits::default())).await.unwrap_err();
    let ModelError::RateLimited { retry_after, message, .. } = failed else { panic!("{failed}") };
    assert_eq!((retry_after, message.as_str()), (Some(Duration::from_secs(3600)), "tomorrow"));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_not_tried_again() {
    let server = Server::start([
        error(400, "bad schema"),
        error(403, "no right"),
        Answer::status(404, ""),
        Answer::status(302, "").with_header("location", "http://127.0.0.1:9/"),
        Answer::status(501, "never"),
    ])
    .await;
    let model = model(&server, &Waits::default());
    let mut errors = Vec::new();
    for _ in 0..5 {
        errors.push(whole(&model).await.unwrap_err().to_string());
    }
    assert_eq!(
        errors,
        [
            "the model \"gemini-x\" refuses the request (400): bad schema",
            "the model \"gemini-x\" refuses the request (403): no right",
            "the model \"gemini-x\" refuses the request (404): Not Found",
            "the model \"gemini-x\" refuses the request (302): Found",
            "the model \"gemini-x\" is unavailable: never (501)",
        ]
    );
    assert_eq!(server.asked().len(), 5);
}

#[tokio::test]
async fn a_whole_answer_that_breaks_off_is_asked_for_again() {
    let server = Server::start([Answer::json(&hi()).ending(End::CutOff), Answer::json(&hi())]).await;
    whole(&model(&server, &Waits::default())).await.unwrap();
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_connection_that_fails_is_tried_again_and_then_told_without_secrets() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let waits = Waits::default();
    let model = Gemini::new("gemini-x", endpoint(&url, &waits)).unwrap();
    let error = whole(&model).await.unwrap_err();
    assert!(
        text(&error).starts_with("the model \"gemini-x\" is unavailable: the connection failed: "),
        "{error}"
    );
    assert_eq!(waits.lock().unwrap().len(), 4);
    assert!(!format!("{error:?} {model:?} {}", text(&error)).contains("the-key"));
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_hidden() {
    let server = Server::start([error(400, "API key the-key is not valid")]).await;
    let failed = whole(&model(&server, &Waits::default())).await.unwrap_err();
    assert_eq!(
        failed.to_string(),
        "the model \"gemini-x\" refuses the request (400): API key [secret] is not valid"
    );
    assert!(!server.asked()[0].path.contains("the-key"));
}

#[tokio::test]
async fn malformed_and_huge_answers_are_refused() {
    let server = Server::start([
        Answer::status(200, "{\"candidates\": [nonsense"),
        Answer::status(200, &"[".repeat(100_000)),
        Answer::status(200, &"x".repeat(10_001)),
        Answer::status(200, &"data: x".repeat(10_001)),
        Answer::status(500, &"y".repeat(1 << 20)),
    ])
    .await;
    let model = with_options(&server, |options| (options.max_bytes, options.retries) = (10_000, 0));
    assert_eq!(whole(&model).await.unwrap_err().code(), "MODEL_MALFORMED_ANSWER");
    let too_large =
        "the model \"gemini-x\" answered something that cannot be read: it is larger than 10000 bytes";
    for _ in 0..2 {
        assert_eq!(whole(&model).await.unwrap_err().to_string(), too_large);
    }
    assert_eq!(pieces(&model).await.1.unwrap_err().to_string(), too_large);
    assert_eq!(
        whole(&model).await.unwrap_err().to_string(),
        "the model \"gemini-x\" is unavailable: Internal Server Error (500)"
    );
}

#[tokio::test]
async fn an_answer_nested_too_deep_is_refused() {
    let server = Server::start([Answer::status(200, &"[".repeat(100_000))]).await;
    assert_eq!(whole(&model(&server, &Waits::default())).await.unwrap_err().code(), "MODEL_MALFORMED_ANSWER");
}

#[tokio::test]
async fn an_answer_that_falls_silent_is_given_up() {
    let piece = json!({ "candidates": [{ "content": { "parts": [{ "text": "well" }] } }] });
    let silent = || Answer::events(std::slice::from_ref(&piece)).ending(End::Silent);
    let mut server = Server::start([silent(), silent(), silent()]).await;
    let idle = Duration::from_millis(300);
    let model = with_options(&server, |options| options.idle_timeout = idle);
    let (one, last) = pieces(&model).await;
    assert_eq!(one, [json!([{ "text": "well" }])]);
    assert_eq!(last.unwrap_err().to_string(), "the model \"gemini-x\" did not answer within 300ms");
    server.body_closed().await;
    assert_eq!(whole(&model).await.unwrap_err().code(), "MODEL_TIMEOUT");
    server.body_closed().await;
    let timeout = Duration::from_millis(200);
    let model = with_options(&server, |options| options.timeout = timeout);
    assert_eq!(
        pieces(&model).await.1.unwrap_err().to_string(),
        "the model \"gemini-x\" did not answer within 200ms"
    );
    server.body_closed().await;
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    // The connection is accepted by the operating system, and never read.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut options = HttpOptions::default();
    options.timeout = Duration::from_millis(200);
    let model = Gemini::new("gemini-x", endpoint(&url, &Waits::default()).with_options(options)).unwrap();
    assert_eq!(
        whole(&model).await.unwrap_err().to_string(),
        "the model \"gemini-x\" did not answer within 200ms"
    );
    assert_eq!(pieces(&model).await.1.unwrap_err().code(), "MODEL_TIMEOUT");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let piece = json!({ "candidates": [{ "content": { "parts": [{ "text": "well" }] } }] });
    let mut server = Server::start([Answer::events(&[piece]).ending(End::Silent)]).await;
    let model = model(&server, &Waits::default());
    let mut stream = model.generate(hello(), Streaming::Pieces).await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    server.body_closed().await;
}

#[tokio::test]
async fn dropping_a_call_closes_the_connection() {
    let mut server = Server::start([Answer::status(200, "{").ending(End::Silent)]).await;
    let model = model(&server, &Waits::default());
    let call = model.generate(hello(), Streaming::Whole);
    let seen = async {
        while server.asked().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = call => panic!("the server does not answer"),
        () = seen => {}
    }
    server.body_closed().await;
}

#[test]
fn a_password_in_a_url_is_not_shown() {
    let shown = format!("{:?}", Endpoint::openai("the-key").with_base_url("https://ada:lovelace@host/v1"));
    assert!(shown.contains("https://[secret]@host"), "{shown}");
    assert!(!shown.contains("lovelace") && !shown.contains("the-key"), "{shown}");
}

#[test]
fn endpoints_that_cannot_work_are_refused_at_the_start() {
    let endpoint = |url: &str| Endpoint::gemini("key").with_base_url(url);
    for (endpoint, reason) in [
        (endpoint("nonsense"), "the base URL cannot be read: relative URL without a base"),
        (endpoint("ftp://host"), "the base URL begins with ftp://, not http:// or https://"),
        (
            endpoint("http://ada:secret@host"),
            "the base URL holds a user name or password; give them as credentials",
        ),
        (Endpoint::openai("k").with_base_url("http://host/v1?a=b"), "the base URL has a query or fragment"),
        (Endpoint::gemini(" "), "the key is empty"),
        (Endpoint::gemini("a\nb"), "the key contains characters that are not allowed in a header"),
    ] {
        let error = Gemini::new("gemini-x", endpoint).unwrap_err();
        assert_eq!(error.to_string(), format!("the model \"gemini-x\" cannot be used: {reason}"));
    }
}
