//! The little HTTP/1.1 that the clients need: blocking, with connections that are kept open.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

/// An answer of the server.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    /// Null if the body is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    /// The text of an error.
    pub(crate) fn detail(&self) -> &str {
        self.body["detail"].as_str().unwrap_or_default()
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// There was no connection, so nothing was sent.
    NotSent,
    /// The caller did not wait any longer.
    GaveUp,
    /// The connection broke, or what came is no HTTP.
    Broken(String),
}

/// What is sent.
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    /// More headers, each with its line end.
    pub(crate) headers: String,
    pub(crate) body: Option<String>,
}

/// A connection to a server.
pub(crate) struct Connection {
    pub(crate) address: String,
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).map_err(|_| Failure::NotSent)?;
        stream.set_nodelay(true).map_err(broken)?;
        Ok(Self { address: address.to_owned(), stream: BufReader::new(stream) })
    }

    /// Sends a request and waits for its answer, not longer than `patience`. After a failure the
    /// connection is of no use any more.
    pub(crate) fn send(&mut self, request: &Request, patience: Duration) -> Result<Answer, Failure> {
        let Request { method, path, headers, body } = request;
        let body = body.as_deref().unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n{headers}\r\n",
            self.address,
            body.len()
        );
        let deadline = Instant::now() + patience;
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes()).map_err(broken)?;
        let (status, headers) = self.head(deadline)?;
        let header = |name: &str| {
            let found = headers
                .iter()
                .find(|line| line.split_once(':').is_some_and(|(other, _)| other.eq_ignore_ascii_case(name)));
            found.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
        };
        let body = match header("content-length") {
            Some(length) => {
                let length = length.parse().map_err(|_| Failure::Broken(format!("length {length}")))?;
                self.exactly(length, deadline)?
            }
            None => self.chunks(deadline)?,
        };
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Ok(Answer { status, etag: header("etag"), body })
    }

    fn head(&mut self, deadline: Instant) -> Result<(u16, Vec<String>), Failure> {
        let first = self.line(deadline)?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| Failure::Broken(format!("the first line is {first:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line(deadline)?;
            if line.is_empty() {
                return Ok((status, headers));
            }
            headers.push(line);
        }
    }

    fn line(&mut self, deadline: Instant) -> Result<String, Failure> {
        self.wait_until(deadline)?;
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(broken)?;
        let line = line.strip_suffix("\r\n").ok_or_else(|| Failure::Broken("the stream ended".to_owned()))?;
        Ok(line.to_owned())
    }

    fn exactly(&mut self, length: usize, deadline: Instant) -> Result<Vec<u8>, Failure> {
        self.wait_until(deadline)?;
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).map_err(broken)?;
        Ok(bytes)
    }

    fn chunks(&mut self, deadline: Instant) -> Result<Vec<u8>, Failure> {
        let mut body = Vec::new();
        loop {
            let size = self.line(deadline)?;
            let size =
                usize::from_str_radix(&size, 16).map_err(|_| Failure::Broken(format!("chunk {size}")))?;
            body.extend(self.exactly(size, deadline)?);
            self.line(deadline)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Lets the next read wait until the deadline.
    fn wait_until(&mut self, deadline: Instant) -> Result<(), Failure> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::GaveUp);
        }
        self.stream.get_ref().set_read_timeout(Some(left)).map_err(broken)
    }
}

fn broken(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::GaveUp,
        _ => Failure::Broken(error.to_string()),
    }
}
