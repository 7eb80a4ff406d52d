use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use axum::http::HeaderValue;
use futures_util::stream::{self, Stream};
use sessile_session::SessionKey;
use tokio::sync::watch;

use crate::http::percent::encoded;

/// The frames that a detached run has produced so far, for clients that follow it. Dropping the
/// [`RunLogWriter`] ends it.
pub(crate) struct RunLog {
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

impl RunLog {
    /// A log without frames, and its writer.
    pub(crate) fn new(key: SessionKey, invocation: String) -> (Arc<Self>, RunLogWriter) {
        let log =
            Arc::new(Self { key, invocation, frames: Mutex::default(), progress: watch::Sender::default() });
        (log.clone(), RunLogWriter(log))
    }

    /// Whether the run has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.progress.borrow().is_over
    }

    /// The size of its frames, in bytes.
    pub(super) fn size(&self) -> usize {
        self.frames().iter().map(Bytes::len).sum()
    }

    /// The frames from a number on, those still to come included. Each carries its number as its
    /// id, so that a client can resume after it.
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

    /// The path where a client can follow it.
    pub(crate) fn location(&self) -> HeaderValue {
        let (key, invocation) = (&self.key, encoded(&self.invocation));
        let (app, user, id) = (encoded(key.app()), encoded(key.user()), encoded(key.id()));
        let path = format!("/apps/{app}/users/{user}/sessions/{id}/runs/{invocation}");
        HeaderValue::from_str(&path).unwrap_or(HeaderValue::from_static("/"))
    }

    fn frames(&self) -> MutexGuard<'_, Vec<Bytes>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing end of a [`RunLog`]. Dropping it, also by a panic, tells the followers that the run
/// is over.
pub(crate) struct RunLogWriter(Arc<RunLog>);

impl RunLogWriter {
    pub(crate) fn add(&self, frame: Bytes) {
        let mut frames = self.0.frames();
        frames.push(frame);
        let count = frames.len();
        drop(frames);
        self.0.progress.send_modify(|progress| progress.frames = count);
    }
}

impl Drop for RunLogWriter {
    fn drop(&mut self) {
        self.0.progress.send_modify(|progress| progress.is_over = true);
    }
}

/// A frame with its number, after which a client can resume.
pub(crate) fn numbered(number: usize, frame: &[u8]) -> Bytes {
    [format!("id: {number}\n").as_bytes(), frame].concat().into()
}
