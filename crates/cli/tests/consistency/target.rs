//! Whose state a request is about, and where that state is kept.

use crate::change::Scope;

/// The sessions of this name are deleted and created again; all others are created once.
pub(crate) const CHURN: &str = "churn";

/// Whose state a request is about, in the application of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    App,
    User(&'static str),
    Session(&'static str, &'static str),
}

impl Target {
    /// The scope that requests to this target are about.
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Self::App => Scope::App,
            Self::User(_) => Scope::User,
            Self::Session(..) => Scope::Session,
        }
    }

    /// Whether the session may be absent, because it is deleted now and then.
    pub(crate) fn is_churn(&self) -> bool {
        matches!(self, Self::Session(_, CHURN))
    }

    /// The log of a scope of this target; `born` identifies the incarnation of the session.
    pub(crate) fn log_key(&self, scope: Scope, born: &str) -> LogKey {
        let owner = match (scope, self) {
            (Scope::User, Self::User(user) | Self::Session(user, _)) => (*user).to_owned(),
            (Scope::Session, Self::Session(user, id)) => format!("{user}/{id}#{born}"),
            _ => String::new(),
        };
        LogKey { scope, owner }
    }
}

/// Names a log: that of the application, of a user, or of one incarnation of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LogKey {
    pub(crate) scope: Scope,
    /// Empty, the user, or `user/session#born`.
    pub(crate) owner: String,
}

/// An `If-Match`, and what the caller saw when it got that `ETag`.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) etag: String,
    pub(crate) log_key: LogKey,
    /// The length of the log there, which is the number of writes before.
    pub(crate) length: usize,
}
