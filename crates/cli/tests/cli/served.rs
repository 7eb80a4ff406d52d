//! A running server, and the little HTTP that tests need.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Folder, kill};

/// `sessile serve` on a free port; it is killed when the test ends.
pub(crate) struct Served {
    child: Child,
    /// `127.0.0.1:port`.
    pub(crate) address: String,
    /// What it said before it was ready.
    pub(crate) said: String,
    stderr: Option<BufReader<ChildStderr>>,
}

impl Served {
    pub(crate) fn new(folder: &Folder, args: &[&str]) -> Self {
        let mut command = folder.command(&["serve", "--port", "0"]);
        command.env("SESSILE_LOG", "warn").args(args).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().expect("the command starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        while !said.contains("Ctrl-C stops the server") && !said.contains("\"serving\"") {
            let read = stderr.read_line(&mut said).expect("standard error is read");
            assert!(read > 0, "the server ended: {said}");
        }
        let address = said.split("http://").nth(1).and_then(|rest| rest.split([',', ' ', '/', '"']).next());
        let address = address.expect("it says where it is").to_owned();
        Self { child, address, said, stderr: Some(stderr) }
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.request_with(method, path, body, "").expect("the server answers")
    }

    /// A request with more headers, each with its line end.
    pub(crate) fn request_with(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &str,
    ) -> std::io::Result<Answer> {
        request(&self.address, method, path, body, headers)
    }

    /// Posts, and expects 200.
    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.request("POST", path, Some(body));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Gets, and expects 200.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.request("GET", path, None);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    pub(crate) fn kill(&self, signal: &str) {
        kill(signal, self.child.id());
    }

    /// Waits until it ended: its exit code, and what it still said.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        let mut stderr = self.stderr.take().expect("it is taken once");
        stderr.read_to_string(&mut rest).expect("standard error is read");
        (self.child.wait().expect("it ends").code(), rest)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The lines before the body, in lower case.
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One request on a connection of its own.
pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    body: Option<&Value>,
    headers: &str,
) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let body = body.map_or_else(String::new, Value::to_string);
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n{headers}\r\n{body}"
    )?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let unexpected = || std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "no whole answer");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(unexpected)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(unexpected)?;
    let headers = head.to_ascii_lowercase();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    match length {
        Some(length) if body.len() < length => Err(unexpected()),
        Some(_) => Ok(Answer { status, headers, body: body.to_owned() }),
        None => Ok(Answer { status, headers, body: unchunked(body).ok_or_else(unexpected)? }),
    }
}

/// The text of a chunked body, if it is whole.
fn unchunked(mut body: &str) -> Option<String> {
    let mut text = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n")?;
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            return Some(text);
        }
        text.push_str(rest.get(..size)?);
        body = rest.get(size..)?.strip_prefix("\r\n")?;
    }
}
