//! Connections: accepted up to a limit, and closed gracefully.

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

use super::head_timer::HeadTimer;
use super::lifecycle::Lifecycle;
use super::limits::Limits;
use super::state::HttpState;
use super::write_timeout::WriteTimeout;

/// The buffer of a connection, in bytes. The headers of a request must fit in; bodies are read in
/// pieces.
const BUFFER: usize = 64 * 1024;

/// Serves connections until `shutdown` resolves; then waits for the requests in flight, at most
/// `grace` long.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    http: &HttpState,
    grace: Duration,
    shutdown: impl Future<Output = ()> + Send,
) {
    let connections = Connections::new(router, &http.limits);
    let mut shutdown = pin!(shutdown);
    loop {
        let permit = connections.permits.clone().acquire_owned();
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
    finish(&http.lifecycle, &connections, grace).await;
}

async fn finish(lifecycle: &Lifecycle, connections: &Connections, grace: Duration) {
    lifecycle.close();
    connections.closing.cancel();
    connections.tasks.close();
    tracing::info!(runs = lifecycle.runs(), "shutting down");
    let idle = async {
        connections.tasks.wait().await;
        while lifecycle.runs() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(grace, idle).await.is_ok() {
        return;
    }
    tracing::warn!(runs = lifecycle.runs(), "the grace time is over; ending what still runs");
    lifecycle.stop();
    let last = async {
        while lifecycle.runs() > 0 {
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
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
    closing: CancellationToken,
    write_time: Duration,
}

impl Connections {
    fn new(router: Router, limits: &Limits) -> Self {
        let mut http = http1::Builder::new();
        http.header_read_timeout(limits.header_time).keep_alive(true).max_buf_size(BUFFER);
        Self {
            router,
            http,
            permits: Arc::new(Semaphore::new(limits.connections)),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            write_time: limits.write_time,
        }
    }

    fn take<P: Send + 'static>(&self, stream: TcpStream, permit: P) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let service = TowerToHyperService::new(self.router.clone());
        let io = TokioIo::new(WriteTimeout::new(stream, self.write_time));
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
                tracing::debug!(%error, "a connection failed");
            }
        });
    }
}
