use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use sessile_artifact::ArtifactService;
use sessile_memory::MemoryService;
use sessile_session::{Clock, Ids, RandomIds, SessionService, SystemClock};

use crate::apps::Apps;
use crate::limits::Limits;

/// What is served, and how. Give it to [`router`](crate::router) or [`serve`](crate::serve).
pub struct Server {
    pub(crate) parts: Parts,
}

/// What all requests share.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) sessions: SessionService,
    pub(crate) apps: Apps,
    pub(crate) artifacts: Option<Arc<dyn ArtifactService>>,
    pub(crate) memory: Option<Arc<dyn MemoryService>>,
    pub(crate) limits: Limits,
    pub(crate) default_app: Option<String>,
    pub(crate) adk_web: Option<PathBuf>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

impl Server {
    /// Serves these sessions and applications, without artifacts, memory and authentication.
    pub fn new(sessions: SessionService, apps: Apps) -> Self {
        Self {
            parts: Parts {
                sessions,
                apps,
                artifacts: None,
                memory: None,
                limits: Limits::default(),
                default_app: None,
                adk_web: None,
                clock: Arc::new(SystemClock),
                ids: Arc::new(RandomIds),
            },
        }
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

    /// With these limits.
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

    pub(crate) fn share(self) -> Shared {
        Shared(Arc::new(self.parts))
    }
}

impl Deref for Shared {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
