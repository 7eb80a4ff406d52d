use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use eventsource_stream::{EventStreamError, Eventsource};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use reqwest::Response;
use sessile_agent::ModelError;
use tokio::time::timeout;

use super::failure::Failure;
use super::retry::Again;

/// Why a body could not be read to its end.
pub(super) enum BodyError {
    Silent(Duration),
    TooLarge(usize),
    NotEvents(String),
    Broken(reqwest::Error),
}

impl BodyError {
    /// A response that broke off is retried: it may be complete the next time.
    pub(super) fn into_failure(self, model: &str) -> Failure {
        let model = model.to_owned();
        match self {
            Self::Silent(after) => Failure::last(ModelError::Timeout { model, after }),
            Self::TooLarge(limit) => {
                let reason = format!("it is larger than {limit} bytes");
                Failure::last(ModelError::Malformed { model, reason })
            }
            Self::NotEvents(reason) => Failure::last(ModelError::Malformed { model, reason }),
            Self::Broken(error) => {
                let message = "the answer broke off".to_owned();
                let source = Some(error.without_url().into());
                Failure {
                    error: ModelError::Unavailable { model, message, source },
                    again: Again::After(None),
                }
            }
        }
    }
}

/// Reads a body up to the limit.
pub(super) async fn read(response: Response, limit: usize, idle: Duration) -> Result<Bytes, BodyError> {
    let mut chunks = limited(response.bytes_stream(), limit).boxed();
    let mut body = BytesMut::new();
    loop {
        match timeout(idle, chunks.next()).await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk?),
            Ok(None) => return Ok(body.freeze()),
            Err(_) => return Err(BodyError::Silent(idle)),
        }
    }
}

/// The data of each event in a body.
pub(super) fn events(response: Response, limit: usize) -> BoxStream<'static, Result<String, BodyError>> {
    let bytes = in_lines(without_mark(limited(response.bytes_stream(), limit)));
    bytes
        .eventsource()
        .map(|event| match event {
            Ok(event) => Ok(event.data),
            Err(EventStreamError::Transport(error)) => Err(error),
            Err(EventStreamError::Utf8(_)) => Err(BodyError::NotEvents("it is not UTF-8".to_owned())),
            Err(EventStreamError::Parser(_)) => {
                Err(BodyError::NotEvents("it is not a stream of events".to_owned()))
            }
        })
        .boxed()
}

fn limited(
    chunks: impl Stream<Item = Result<Bytes, reqwest::Error>>,
    limit: usize,
) -> impl Stream<Item = Result<Bytes, BodyError>> {
    let mut read = 0;
    chunks.map(move |chunk| {
        let chunk = chunk.map_err(BodyError::Broken)?;
        read += chunk.len();
        if read > limit { Err(BodyError::TooLarge(limit)) } else { Ok(chunk) }
    })
}

/// Removes a byte order mark at the beginning, which is allowed but which the parser does not know.
fn without_mark(
    chunks: impl Stream<Item = Result<Bytes, BodyError>>,
) -> impl Stream<Item = Result<Bytes, BodyError>> {
    let mut mark: &[u8] = b"\xEF\xBB\xBF";
    chunks.map(move |chunk| {
        let mut chunk = chunk?;
        while let (Some(expected), Some(first)) = (mark.first(), chunk.first()) {
            if expected == first {
                chunk.advance(1);
                mark = &mark[1..];
            } else {
                mark = &[];
            }
        }
        Ok(chunk)
    })
}

/// Buffers bytes until their line is complete: the parser scans an unfinished line again with every
/// chunk, which takes quadratic time for a picture in one line. A last line without an end belongs
/// to an event that was never finished, and is dropped.
fn in_lines(
    chunks: impl Stream<Item = Result<Bytes, BodyError>>,
) -> impl Stream<Item = Result<Bytes, BodyError>> {
    let mut unfinished = BytesMut::new();
    chunks.flat_map(move |chunk| {
        let lines = match chunk {
            Ok(chunk) => finished_lines(&mut unfinished, &chunk),
            Err(error) => vec![Err(error)],
        };
        stream::iter(lines)
    })
}

fn finished_lines(unfinished: &mut BytesMut, mut chunk: &[u8]) -> Vec<Result<Bytes, BodyError>> {
    let mut lines = Vec::new();
    while let Some(end) = chunk.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        unfinished.extend_from_slice(&chunk[..=end]);
        lines.push(Ok(unfinished.split().freeze()));
        chunk = &chunk[end + 1..];
    }
    unfinished.extend_from_slice(chunk);
    lines
}
