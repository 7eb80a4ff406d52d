use std::sync::Arc;

use tokio::sync::watch;

/// How a session ends: first it is asked to stop, and later it is over, for a reason.
pub(crate) struct Ending {
    stop: watch::Sender<bool>,
    /// `None` while the session runs.
    over: watch::Sender<Option<EndReason>>,
}

/// Why a session ended; `None` if the application asked for it.
pub(crate) type EndReason = Option<Arc<str>>;

impl Ending {
    pub(crate) fn new() -> Self {
        Self { stop: watch::Sender::new(false), over: watch::Sender::new(None) }
    }

    /// Asks the session to stop.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Holds `true` as soon as the session is asked to stop.
    pub(crate) fn stop_requested(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// The session is over.
    pub(crate) fn end(&self, reason: EndReason) {
        self.over.send_replace(Some(reason));
    }

    /// Waits until the session is over, and returns why.
    pub(crate) async fn wait(&self) -> EndReason {
        let mut over = self.over.subscribe();
        match over.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().flatten(),
            Err(_) => None,
        }
    }
}
