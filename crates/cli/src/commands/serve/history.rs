//! How long the server keeps the history of shared state.

use std::time::Duration;

use sessile_session::SessionService;
use tokio::task::JoinHandle;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the history is kept; `None` is for ever.
pub(super) fn kept(days: u32) -> Option<Duration> {
    (days > 0).then(|| DAY * days)
}

/// Removes what is too old every hour, also if only other programs write. Many servers may do it at
/// once.
pub(super) fn trim_now_and_then(sessions: SessionService) -> JoinHandle<()> {
    const PAUSE: Duration = Duration::from_secs(60 * 60);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(PAUSE).await;
            match sessions.trim_history().await {
                Ok(0) => {}
                Ok(removed) => tracing::info!(removed, "removed old changes of shared state"),
                Err(error) => {
                    tracing::warn!(%error, "cannot remove old changes of shared state; trying again later")
                }
            }
        }
    })
}
