//! Runs that go on without their client, and what they said so far.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::json;
use sessile_session::SessionKey;
use tokio::sync::watch;

use super::frames::numbered;
use super::running::Running;
use super::stream::frames;
use crate::server::Shared;

/// What a detached run said so far, for whoever follows it.
pub(crate) struct Log {
    pub(crate) key: SessionKey,
    pub(crate) invocation: String,
    frames: Mutex<Vec<Bytes>>,
    /// How many frames there are, and whether there will be more.
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    frames: usize,
    is_over: bool,
}

/// Lets a run go on by itself.
pub(super) fn detach(running: Running, split: bool, shared: &Shared) -> Arc<Log> {
    let log = Arc::new(Log {
        key: running.key().clone(),
        invocation: running.invocation(),
        frames: Mutex::default(),
        progress: watch::Sender::default(),
    });
    shared.runs.remember(log.clone());
    let (writer, frames, shared) = (log.clone(), frames(running, split, shared.clone()), shared.clone());
    tokio::spawn(async move {
        // Whatever happens to this task, those who wait are told that it is over.
        let over = Over(writer.clone());
        let mut frames = std::pin::pin!(frames);
        while let Some(frame) = frames.next().await {
            writer.add(frame);
        }
        drop(over);
        shared.runs.forget();
    });
    log
}

impl Log {
    /// Whether the run has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.progress.borrow().is_over
    }

    /// How much it said, in bytes.
    pub(super) fn size(&self) -> usize {
        self.frames().iter().map(Bytes::len).sum()
    }

    /// The frames from a number on, also those that are still to come. Each carries its number,
    /// after which a later reader can go on.
    pub(crate) fn follow(self: Arc<Self>, from: usize) -> impl Stream<Item = Bytes> + Send + 'static {
        let progress = self.progress.subscribe();
        stream::unfold((self, progress, from), |(log, mut progress, at)| async move {
            loop {
                let now = *progress.borrow_and_update();
                if at < now.frames {
                    let frame = log.frames().get(at).cloned()?;
                    return Some((numbered(at, &frame), (log, progress, at + 1)));
                }
                if now.is_over || progress.changed().await.is_err() {
                    return None;
                }
            }
        })
    }

    /// Where it can be followed.
    pub(crate) fn location(&self) -> HeaderValue {
        let step = crate::sessions::list::encoded;
        let (key, invocation) = (&self.key, step(&self.invocation));
        let (app, user, id) = (step(key.app()), step(key.user()), step(key.id()));
        let path = format!("/apps/{app}/users/{user}/sessions/{id}/runs/{invocation}");
        HeaderValue::from_str(&path).unwrap_or(HeaderValue::from_static("/"))
    }

    /// The answer to who does not wait.
    pub(super) fn accepted(&self) -> impl IntoResponse + use<> {
        let body = axum::Json(json!({ "sessionId": self.key.id(), "invocationId": self.invocation }));
        (StatusCode::ACCEPTED, [(header::LOCATION, self.location())], body)
    }

    fn add(&self, frame: Bytes) {
        let mut frames = self.frames();
        frames.push(frame);
        let count = frames.len();
        drop(frames);
        self.progress.send_modify(|progress| progress.frames = count);
    }

    fn frames(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Over(Arc<Log>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| progress.is_over = true);
    }
}
