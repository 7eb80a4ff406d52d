use std::ops::Deref;
use std::sync::Arc;

use sessile_session::{Clock, Ids};

use super::auth::Auth;
use super::body_budget::BodyBudget;
use super::lifecycle::Lifecycle;
use super::limits::Limits;
use super::origin_check::OriginCheck;
use super::route_policy::RoutePolicies;
use crate::describe::metrics::Metrics;

/// What the HTTP layer shares between requests. Extractors ask for it with
/// `HttpState: FromRef<S>`, so that they do not know the state of the handlers.
#[derive(Clone)]
pub(crate) struct HttpState(Arc<HttpParts>);

/// The parts of an [`HttpState`].
pub(crate) struct HttpParts {
    pub(crate) limits: Limits,
    pub(crate) auth: Auth,
    pub(crate) origins: OriginCheck,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) bodies: Arc<BodyBudget>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) metrics: Metrics,
    pub(crate) policies: RoutePolicies,
}

impl HttpState {
    pub(crate) fn new(parts: HttpParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for HttpState {
    type Target = HttpParts;

    fn deref(&self) -> &HttpParts {
        &self.0
    }
}
