//! Connections: accepted, bounded, and closed with grace.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::head_timer::HeadTimer;
use crate::limits::Limits;
use crate::server::{Server, Shared};
use crate::slow::Patient;

/// What a connection may hold before its request is understood; headers fit in, bodies are read in
/// pieces.
const BUFFER: usize = 64 * 1024;

/// Serves connections until `shutdown` comes; then finishes what was begun.
///
/// New runs are refused from then on, and connections close after their answer. What is still
/// running when the grace time of [`Server::with_grace`] is over is ended cleanly: a run's session
/// stays usable.
///
/// # Errors
///
/// If the listener has no address. A connection that cannot be accepted is logged, and others go
/// on.
pub async fn serve(
    listener: TcpListener,
    mut server: Server,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    if !server.parts.guard.has_host() {
        server.parts.guard.listens_on(&listener.local_addr()?.ip().to_string());
    }
    let shared = server.share();
    let router = crate::assemble(&shared);
    let connections = Connections::new(router, &shared.limits);
    let mut shutdown = pin!(shutdown);
    loop {
        let permit = connections.places.clone().acquire_owned();
        tokio::select! {
            () = &mut shutdown => break,
            (accepted, permit) = async { let permit = permit.await; (listener.accept().await, permit) } => match accepted {
                Ok((stream, _)) => connections.take(stream, permit),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Out of file descriptors, most likely: others must close first.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
    drop(listener);
    finish(&shared, &connections).await;
    Ok(())
}

async fn finish(shared: &Shared, connections: &Connections) {
    shared.runs.close();
    connections.closing.cancel();
    connections.tasks.close();
    let grace = shared.grace;
    tracing::info!(runs = shared.runs.running(), "shutting down");
    let idle = async {
        connections.tasks.wait().await;
        while shared.runs.running() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(grace, idle).await.is_ok() {
        return;
    }
    tracing::warn!(runs = shared.runs.running(), "the grace time is over; ending what still runs");
    shared.runs.stop();
    let last = async {
        while shared.runs.running() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        connections.tasks.wait().await;
    };
    if tokio::time::timeout(Duration::from_secs(2), last).await.is_err() {
        tracing::warn!("some connections did not close");
    }
}

struct Connections {
    router: Router,
    http: http1::Builder,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    closing: CancellationToken,
    patience: Duration,
}

impl Connections {
    fn new(router: Router, limits: &Limits) -> Self {
        let mut http = http1::Builder::new();
        http.header_read_timeout(limits.header_time).keep_alive(true).max_buf_size(BUFFER);
        Self {
            router,
            http,
            places: Arc::new(Semaphore::new(limits.connections)),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            patience: limits.write_time,
        }
    }

    fn take<P: Send + 'static>(&self, stream: TcpStream, permit: P) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let service = TowerToHyperService::new(self.router.clone());
        let io = TokioIo::new(Patient::new(stream, self.patience));
        let mut http = self.http.clone();
        let connection = http.timer(HeadTimer::default()).serve_connection(io, service).with_upgrades();
        let closing = self.closing.clone();
        self.tasks.spawn(async move {
            let _permit = permit;
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = closing.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
}
