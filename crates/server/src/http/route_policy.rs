use std::collections::HashMap;

use crate::describe::route_doc::{Access, Doc, TimeLimit};

/// What the middleware needs to know of a route before its handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoutePolicy {
    /// Whether a request without a valid token is let through.
    pub(crate) is_open: bool,
    pub(crate) time_limit: TimeLimit,
}

impl RoutePolicy {
    /// Files of the web UI, and paths that have no route: a client without a token is answered with
    /// 404 there, as with one.
    pub(crate) const OPEN: Self = Self { is_open: true, time_limit: TimeLimit::Request };

    /// A route that is not in the table of policies. There is none, and if there were, it would be
    /// closed.
    const CLOSED: Self = Self { is_open: false, time_limit: TimeLimit::Request };
}

impl From<&Doc> for RoutePolicy {
    fn from(doc: &Doc) -> Self {
        Self { is_open: doc.access == Access::Open, time_limit: doc.time_limit }
    }
}

/// The policies of all routes, by the path that the router matches. All methods of a path have the
/// same policy.
#[derive(Debug, Default)]
pub(crate) struct RoutePolicies(HashMap<String, RoutePolicy>);

impl RoutePolicies {
    /// Sets the policy of a path. Another method of the same path must have the same.
    pub(crate) fn set(&mut self, path: &str, policy: RoutePolicy) {
        let before = self.0.insert(path.to_owned(), policy);
        assert!(
            before.is_none_or(|before| before == policy),
            "the methods of {path} have different policies"
        );
    }

    /// The policy of the path that the router matched; `None` if it matched none.
    pub(crate) fn of(&self, matched: Option<&str>) -> RoutePolicy {
        match matched {
            Some(path) => self.0.get(path).copied().unwrap_or(RoutePolicy::CLOSED),
            None => RoutePolicy::OPEN,
        }
    }
}
