//! When the server is asked to stop.

use tokio::signal::unix::{SignalKind, signal};

/// Comes with the first SIGINT or SIGTERM; a second one ends the process at once.
pub(super) async fn asked() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::error!("signals cannot be heard; kill the process to stop the server");
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
        tracing::warn!("asked to stop twice; stopping at once");
        std::process::exit(130);
    });
}
