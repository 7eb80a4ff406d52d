//! How long the server keeps the history of shared state.

use std::time::Duration;

use sessile_session::SessionService;
use tokio::task::JoinHandle;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the history is kept; `None` is for ever.
pub(super) fn kept(days: u32) -> Option<Duration> {
    (days > 0).then(|| DAY * days)
}

/// Removes old history every hour, also history that other programs wrote. Several servers may do
/// so at the same time.
pub(super) fn trim_every_hour(sessions: SessionService) -> JoinHandle<()> {
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
