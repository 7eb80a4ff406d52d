use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use axum::Router;
use sessile_artifact::ArtifactService;
use sessile_memory::MemoryService;
use sessile_session::{Clock, Ids, RandomIds, SessionService, SystemClock};
use tokio::net::TcpListener;

use crate::api::apps::Apps;
use crate::api::run_registry::RunRegistry;
use crate::api::shared::ApiState;
use crate::api::traces::Traces;
use crate::describe::counting_store::Counts;
use crate::describe::metrics::{Gauge, Gauges, Metrics};
use crate::describe::openapi::OpenApi;
use crate::http::auth::{Auth, AuthError};
use crate::http::body_budget::BodyBudget;
use crate::http::lifecycle::Lifecycle;
use crate::http::limits::Limits;
use crate::http::middleware::MiddlewareLayer;
use crate::http::origin_check::OriginCheck;
use crate::http::quota::Quota;
use crate::http::state::{HttpParts, HttpState};
use crate::http::{cors, default_app, serve as connections};
use crate::routes;

/// The configuration of a server. Pass it to [`router`](crate::router) or
/// [`serve`](crate::serve()).
pub struct Server {
    sessions: SessionService,
    apps: Apps,
    artifacts: Option<Arc<dyn ArtifactService>>,
    memory: Option<Arc<dyn MemoryService>>,
    auth: Auth,
    origins: OriginCheck,
    limits: Limits,
    default_app: Option<String>,
    adk_web: Option<PathBuf>,
    max_llm_calls: u32,
    counts: Option<Arc<Counts>>,
    gauges: Option<Gauges>,
    grace: Duration,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
}

impl Server {
    /// Serves these sessions and applications, without artifacts, memory and authentication.
    pub fn new(sessions: SessionService, apps: Apps) -> Self {
        Self {
            sessions,
            apps,
            artifacts: None,
            memory: None,
            auth: Auth::off(),
            origins: OriginCheck::default(),
            limits: Limits::default(),
            default_app: None,
            adk_web: None,
            max_llm_calls: 500,
            counts: None,
            gauges: None,
            grace: Duration::from_secs(10),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
        }
    }

    /// With artifacts.
    #[must_use]
    pub fn with_artifacts(mut self, artifacts: Arc<dyn ArtifactService>) -> Self {
        self.artifacts = Some(artifacts);
        self
    }

    /// With memory.
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<dyn MemoryService>) -> Self {
        self.memory = Some(memory);
        self
    }

    /// With authentication.
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// With these limits. The size of state is checked by the [`SessionService`] that commits it:
    /// the server limits its own, and runners use the one that they were built with, so give that
    /// the same limit: `sessions.with_max_scope_bytes(limits.state)`.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With an application for requests that name none: `/users/…` is `/apps/{app}/users/…`.
    #[must_use]
    pub fn with_default_app(mut self, app: impl Into<String>) -> Self {
        self.default_app = Some(app.into());
        self
    }

    /// With the files of Google's web UI at `/dev-ui/`, from this folder.
    #[must_use]
    pub fn with_adk_web(mut self, folder: impl Into<PathBuf>) -> Self {
        self.adk_web = Some(folder.into());
        self
    }

    /// With at most this many model calls in a run; 0 is unlimited.
    #[must_use]
    pub fn with_max_llm_calls(mut self, calls: u32) -> Self {
        self.max_llm_calls = calls;
        self
    }

    /// The host that it listens on. On a loopback address, requests for other host names are
    /// refused. [`serve`](crate::serve()) sets it by itself.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.origins.listens_on(&host.into());
        self
    }

    /// Accepts requests from pages of these origins: `https://example.com`, `*`, or `regex:` and a
    /// pattern.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if a pattern cannot be read.
    pub fn with_origins(mut self, origins: &[String]) -> Result<Self, AuthError> {
        self.origins.allow(origins).map_err(|error| AuthError::origin(&error))?;
        Ok(self)
    }

    /// With the counters of the store, for `/metrics`.
    #[must_use]
    pub fn with_counts(mut self, counts: Arc<Counts>) -> Self {
        self.counts = Some(counts);
        self
    }

    /// With gauges from outside, such as those of a connection pool, for `/metrics`.
    #[must_use]
    pub fn with_gauges(mut self, gauges: impl Fn() -> Vec<Gauge> + Send + Sync + 'static) -> Self {
        self.gauges = Some(Arc::new(gauges));
        self
    }

    /// With this grace time for requests in flight at a shutdown; 10 seconds if it is not set.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// With this clock, for the times of tokens, traces and errors.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Builds the router from the route table, and the state that it shares with its handlers.
    fn assemble(self) -> (Router, HttpState) {
        let mut table = routes::table();
        if let Some(folder) = &self.adk_web {
            table.add_web_ui(folder);
        }
        table.add_fallbacks();
        let limits = self.limits;
        let http = HttpState::new(HttpParts {
            auth: self.auth,
            origins: self.origins,
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            bodies: BodyBudget::new(limits.bodies),
            lifecycle: Lifecycle::new(&limits),
            metrics: Metrics::new(&table.rows),
            policies: table.policies,
            limits: limits.clone(),
        });
        let shared = Arc::new(ApiState {
            http: http.clone(),
            sessions: self.sessions.with_max_scope_bytes(limits.state),
            apps: self.apps,
            artifacts: self.artifacts,
            memory: self.memory,
            default_app: self.default_app.clone(),
            max_llm_calls: self.max_llm_calls,
            counts: self.counts,
            gauges: self.gauges,
            runs: RunRegistry::default(),
            watches: Quota::new("watches", limits.watches, limits.user_watches),
            traces: Arc::new(Traces::new(self.clock, self.ids)),
            telemetry: AtomicBool::new(false),
            openapi: OpenApi::new(table.rows),
        });
        let router = table.router.layer(MiddlewareLayer(http.clone()));
        let router = match cors::layer(&http) {
            Some(layer) => router.layer(layer),
            None => router,
        };
        let router = router.with_state(shared);
        let router = match &self.default_app {
            Some(app) => default_app::add(router, app),
            None => router,
        };
        (router, http)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The server as a router, for tests and for programs that serve it in their own way. [`serve()`]
/// does more: it bounds connections and shuts down with grace.
pub fn router(server: Server) -> Router {
    server.assemble().0
}

/// Serves connections until `shutdown` resolves; then finishes the requests in flight.
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
    if !server.origins.has_host() {
        server.origins.listens_on(&listener.local_addr()?.ip().to_string());
    }
    let grace = server.grace;
    let (router, http) = server.assemble();
    connections::serve(listener, router, &http, grace, shutdown).await;
    Ok(())
}
