//! Traces, received by a collector.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use crate::served::Served;
use crate::support::Folder;

/// What the collector got: the first line and headers, and the body.
struct Received {
    head: String,
    body: Vec<u8>,
}

fn collect(stream: TcpStream, to: &Sender<Received>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).expect("the body comes");
        if to.send(Received { head, body }).is_err() {
            return;
        }
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        reader.get_mut().write_all(answer.as_bytes()).expect("the answer is sent");
    }
}

#[test]
fn a_collector_gets_the_spans_of_requests() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let endpoint = format!("http://{}", listener.local_addr().expect("it has an address"));
    let (to, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, to) = (stream.expect("a connection"), to.clone());
            std::thread::spawn(move || collect(stream, &to));
        }
    });
    let folder = Folder::new();
    let served = Served::new(&folder, &["--otlp-endpoint", &endpoint]);
    served.post("/apps/shop/users/ada/sessions", &serde_json::json!({"sessionId": "s1"}));
    served.kill("TERM");
    assert_eq!(served.wait().0, Some(0));
    let first: Received =
        received.recv_timeout(Duration::from_secs(30)).expect("the collector gets something");
    assert!(first.head.starts_with("POST /v1/traces HTTP/1.1"), "{}", first.head);
    let all: Vec<u8> = std::iter::once(first).chain(received.try_iter()).flat_map(|one| one.body).collect();
    let text = String::from_utf8_lossy(&all);
    assert!(text.contains("service.name") && text.contains("sessile"), "{text}");
    assert!(text.contains("/apps/{app_name}/users/{user_id}/sessions"), "{text}");
}

#[test]
fn a_collector_that_is_not_there_keeps_nobody_from_serving() {
    let folder = Folder::new();
    let served = Served::new(&folder, &["--otlp-endpoint", "http://127.0.0.1:1"]);
    assert_eq!(served.get("/health"), serde_json::json!({"status": "ok"}));
    served.kill("TERM");
    assert_eq!(served.wait().0, Some(0));
}
