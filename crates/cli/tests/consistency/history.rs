//! What is recorded of a round.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::change::Change;
use crate::http::{Answer, Failure};
use crate::target::{Condition, Target};

/// Everything that was asked in a round, and what was done to the servers meanwhile.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) records: Vec<Record>,
    pub(crate) kills: Vec<Kill>,
}

/// A server that was killed, and the time until its successor was ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kill {
    pub(crate) server: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// One request and its outcome. Times are microseconds of one monotonic clock.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) client: usize,
    pub(crate) server: usize,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) call: Arc<Call>,
    /// This write was not sent before, so that its answer shows the state as of its own commit. The
    /// answer to a repeat has the values of the first commit among others that are current.
    pub(crate) fresh: bool,
    pub(crate) outcome: Result<Answer, Failure>,
}

/// What is asked for; repeats of a request share it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    /// Reads the state; of a session with so many of its last events, or all.
    Read {
        window: Option<usize>,
    },
    Write(Write),
    Delete {
        condition: Option<Condition>,
    },
}

#[derive(Debug)]
pub(crate) struct Write {
    /// Unique; also the value of `born` in a session that this write creates.
    pub(crate) token: String,
    pub(crate) via: Via,
    pub(crate) change: Change,
    pub(crate) condition: Option<Condition>,
    /// The Idempotency-Key of a PATCH, the id of an event.
    pub(crate) key: Option<String>,
    /// How many of the last events the answer is to have; all, if there is no number.
    pub(crate) window: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Via {
    Patch,
    Event,
    Create,
}

impl Call {
    pub(crate) fn write(&self) -> Option<&Write> {
        if let Kind::Write(write) = &self.kind { Some(write) } else { None }
    }
}

/// What the outcome of a request says about whether it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Done,
    /// A 4xx: it was not done.
    Refused,
    /// A 503 that says that nothing was done, or no connection at all.
    Denied,
    Unknown,
}

impl Record {
    pub(crate) fn verdict(&self) -> Verdict {
        match &self.outcome {
            Ok(answer) if answer.status == 200 => Verdict::Done,
            Ok(answer) if answer.status < 500 => Verdict::Refused,
            Ok(answer) if answer.status == 503 && !answer.detail().contains("done or not done") => {
                Verdict::Denied
            }
            Err(Failure::NotSent) => Verdict::Denied,
            _ => Verdict::Unknown,
        }
    }

    /// The answer, if the request was done.
    pub(crate) fn done(&self) -> Option<&Answer> {
        self.outcome.as_ref().ok().filter(|answer| answer.status == 200)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, server, start, end, call, .. } = self;
        match &call.kind {
            Kind::Read { .. } => write!(f, "read")?,
            Kind::Write(write) => write!(f, "{:?} {}", write.via, write.token)?,
            Kind::Delete { .. } => write!(f, "delete")?,
        }
        let repeat = if self.fresh { "" } else { ", maybe a repeat" };
        write!(
            f,
            " of {:?} by client {client} at server {server}, {start} to {end} µs{repeat}",
            call.target
        )?;
        match &self.outcome {
            Ok(answer) if answer.status == 200 => write!(f, ", 200 {}", answer.etag.as_deref().unwrap_or("")),
            Ok(answer) => write!(f, ", {} {}", answer.status, answer.body),
            Err(failure) => write!(f, ", {failure:?}"),
        }
    }
}

/// The text of a value, cut to a length that can be read.
pub(crate) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
