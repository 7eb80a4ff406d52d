use std::collections::{BTreeSet, HashSet};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sessile_artifact::ArtifactService;
use sessile_memory::MemoryService;
use sessile_session::{Clock, Ids, RandomIds, SessionService, SystemClock};

use crate::apps::Apps;
use crate::auth::{Auth, AuthError};
use crate::counted::Counts;
use crate::dev::settings::Telemetry;
use crate::doc::Access;
use crate::guard::Guard;
use crate::limits::Limits;
use crate::metrics::{Gauge, Gauges, Metrics};
use crate::quota::Quota;
use crate::room::Room;
use crate::routes;
use crate::run::Runs;
use crate::trace::Traces;

/// What is served, and how. Give it to [`router`](crate::router) or [`serve`](crate::serve()).
pub struct Server {
    pub(crate) parts: Parts,
}

/// What was given.
pub(crate) struct Parts {
    pub(crate) sessions: SessionService,
    pub(crate) apps: Apps,
    pub(crate) artifacts: Option<Arc<dyn ArtifactService>>,
    pub(crate) memory: Option<Arc<dyn MemoryService>>,
    pub(crate) auth: Auth,
    pub(crate) guard: Guard,
    pub(crate) limits: Limits,
    pub(crate) default_app: Option<String>,
    pub(crate) adk_web: Option<PathBuf>,
    pub(crate) max_llm_calls: u32,
    pub(crate) counts: Option<Arc<Counts>>,
    pub(crate) gauges: Option<Gauges>,
    pub(crate) grace: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl Server {
    /// Serves these sessions and applications, without artifacts, memory and authentication.
    pub fn new(sessions: SessionService, apps: Apps) -> Self {
        let parts = Parts {
            sessions,
            apps,
            artifacts: None,
            memory: None,
            auth: Auth::off(),
            guard: Guard::default(),
            limits: Limits::default(),
            default_app: None,
            adk_web: None,
            max_llm_calls: 500,
            counts: None,
            gauges: None,
            grace: Duration::from_secs(10),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
        };
        Self { parts }
    }

    /// With artifacts.
    #[must_use]
    pub fn with_artifacts(mut self, artifacts: Arc<dyn ArtifactService>) -> Self {
        self.parts.artifacts = Some(artifacts);
        self
    }

    /// With memory.
    #[must_use]
    pub fn with_memory(mut self, memory: Arc<dyn MemoryService>) -> Self {
        self.parts.memory = Some(memory);
        self
    }

    /// With callers who are known by their tokens.
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.parts.auth = auth;
        self
    }

    /// With these limits. The size of state is checked by the [`SessionService`] that commits it:
    /// the server limits its own, and runners use the one that they were built with, so give that
    /// the same limit: `sessions.with_max_scope_bytes(limits.state)`.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.parts.limits = limits;
        self
    }

    /// With an application for requests that name none: `/users/…` is `/apps/{app}/users/…`.
    #[must_use]
    pub fn with_default_app(mut self, app: impl Into<String>) -> Self {
        self.parts.default_app = Some(app.into());
        self
    }

    /// With the files of Google's web UI at `/dev-ui/`, from this folder.
    #[must_use]
    pub fn with_adk_web(mut self, folder: impl Into<PathBuf>) -> Self {
        self.parts.adk_web = Some(folder.into());
        self
    }

    /// With at most this many model calls in a run; 0 is as many as agents like.
    #[must_use]
    pub fn with_max_llm_calls(mut self, calls: u32) -> Self {
        self.parts.max_llm_calls = calls;
        self
    }

    /// The host that it listens on. On a loopback address, requests under other names are refused.
    /// [`serve`](crate::serve()) finds it out by itself.
    #[must_use]
    pub fn with_host(mut self, host: impl Into<String>) -> Self {
        self.parts.guard.listens_on(&host.into());
        self
    }

    /// Accepts requests from pages of these origins: `https://example.com`, `*`, or `regex:` and a
    /// pattern.
    ///
    /// # Errors
    ///
    /// [`AuthError`] if a pattern cannot be read.
    pub fn with_origins(mut self, origins: &[String]) -> Result<Self, AuthError> {
        self.parts.guard.allow(origins).map_err(|error| AuthError::origin(&error))?;
        Ok(self)
    }

    /// With the counters of the store, for `/metrics`.
    #[must_use]
    pub fn with_counts(mut self, counts: Arc<Counts>) -> Self {
        self.parts.counts = Some(counts);
        self
    }

    /// With numbers from outside, such as a pool's, for `/metrics`.
    #[must_use]
    pub fn with_gauges(mut self, gauges: impl Fn() -> Vec<Gauge> + Send + Sync + 'static) -> Self {
        self.parts.gauges = Some(Arc::new(gauges));
        self
    }

    /// With this much time to finish when it is shut down; 10 seconds if it is not set.
    #[must_use]
    pub fn with_grace(mut self, grace: Duration) -> Self {
        self.parts.grace = grace;
        self
    }

    /// With this clock, for the times of tokens, traces and errors.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.parts.clock = Arc::new(clock);
        self
    }

    pub(crate) fn share(self) -> Shared {
        let mut parts = self.parts;
        parts.sessions = parts.sessions.with_max_scope_bytes(parts.limits.state);
        let table = routes::table();
        let open = table.docs.iter().filter(|route| route.doc.access == Access::Open);
        Shared(Arc::new(Inner {
            runs: Runs::new(&parts.limits),
            watches: Quota::new("watches", parts.limits.watches, parts.limits.user_watches),
            room: Room::new(parts.limits.bodies),
            traces: Arc::new(Traces::new(parts.clock.clone(), parts.ids.clone())),
            metrics: Metrics::new(&table.docs),
            telemetry: Telemetry::default(),
            open: open.map(|route| route.served.clone()).collect(),
            paths: table.docs.iter().map(|route| route.path.clone()).collect(),
            parts,
        }))
    }
}

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

pub(crate) struct Inner {
    parts: Parts,
    pub(crate) runs: Runs,
    pub(crate) watches: Arc<Quota>,
    /// For the bodies of requests.
    pub(crate) room: Arc<Room>,
    pub(crate) traces: Arc<Traces>,
    pub(crate) metrics: Metrics,
    pub(crate) telemetry: Telemetry,
    /// Routes that need no token. A path is open for all its methods or for none.
    open: HashSet<String>,
    paths: BTreeSet<String>,
}

impl Shared {
    /// Whether a route needs no token. What is not in the table is files, or nothing.
    pub(crate) fn is_open(&self, route: &str) -> bool {
        self.0.open.contains(route) || route == "unknown" || route == "/" || route.starts_with("/dev-ui")
    }

    /// Whether there is a route for a path.
    pub(crate) fn has_route(&self, path: &str) -> bool {
        let fits = |route: &str| {
            let (mut steps, mut names) = (path.split('/'), route.split('/'));
            loop {
                match (steps.next(), names.next()) {
                    (None, None) => return true,
                    (Some(step), Some(name))
                        if step == name || (name.starts_with('{') && !step.is_empty()) => {}
                    _ => return false,
                }
            }
        };
        self.0.paths.iter().any(|route| fits(route))
    }
}

impl Deref for Shared {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Deref for Inner {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}
