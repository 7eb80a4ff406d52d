//! Graceful shutdown.

use tokio::signal::unix::{SignalKind, signal};

/// Returns at the first SIGINT or SIGTERM; a second one ends the process at once.
pub(super) async fn requested() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::error!("cannot handle signals; kill the process to stop the server");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::warn!("received a second signal; stopping at once");
        std::process::exit(130);
    });
}
