use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use sessile_artifact::ArtifactService;
use sessile_memory::MemoryService;
use sessile_session::SessionService;

use super::apps::Apps;
use super::run_registry::RunRegistry;
use super::traces::Traces;
use crate::describe::counting_store::Counts;
use crate::describe::metrics::Gauges;
use crate::describe::openapi::OpenApi;
use crate::http::auth::Principal;
use crate::http::error::ApiError;
use crate::http::quota::Quota;
use crate::http::state::HttpState;

/// What all handlers share.
pub(crate) type Shared = Arc<ApiState>;

/// The services that handlers call, and what the server remembers between requests.
pub(crate) struct ApiState {
    pub(crate) http: HttpState,
    pub(crate) sessions: SessionService,
    pub(crate) apps: Apps,
    pub(crate) artifacts: Option<Arc<dyn ArtifactService>>,
    pub(crate) memory: Option<Arc<dyn MemoryService>>,
    /// The application of requests that name none.
    pub(crate) default_app: Option<String>,
    /// How many model calls a run may make; 0 is unlimited.
    pub(crate) max_llm_calls: u32,
    pub(crate) counts: Option<Arc<Counts>>,
    pub(crate) gauges: Option<Gauges>,
    pub(crate) runs: RunRegistry,
    pub(crate) watches: Arc<Quota>,
    pub(crate) traces: Arc<Traces>,
    /// Whether the web UI may report how it is used; off until an admin allows it.
    pub(crate) telemetry: AtomicBool,
    pub(crate) openapi: OpenApi,
}

impl FromRef<Shared> for HttpState {
    fn from_ref(shared: &Shared) -> Self {
        shared.http.clone()
    }
}

/// Not for every state, as the other extractors: `Principal` is public, and `ApiError` is not.
impl FromRequestParts<Shared> for Principal {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, ApiError> {
        Self::of(parts)
    }
}
