use std::fmt;
use std::sync::Arc;

use sessile_session::{Content, Session, SessionKey};
use sessile_state::Snapshot;

use super::frame::Frame;
use super::run::Invocation;
use crate::run_request::RunConfig;

/// What can be read of a run.
#[derive(Clone)]
pub struct ReadonlyContext {
    pub(crate) invocation: Arc<Invocation>,
    pub(crate) frame: Arc<Frame>,
}

impl ReadonlyContext {
    /// The agent that runs.
    pub fn agent_name(&self) -> &str {
        &self.frame.agent
    }

    /// The run's id; all its events carry it.
    pub fn invocation_id(&self) -> &str {
        &self.invocation.id
    }

    /// The session.
    pub fn session_key(&self) -> &SessionKey {
        &self.invocation.key
    }

    /// The user.
    pub fn user(&self) -> &str {
        self.invocation.key.user()
    }

    /// The application.
    pub fn app(&self) -> &str {
        self.invocation.key.app()
    }

    /// The message that began the run.
    pub fn user_content(&self) -> Option<&Content> {
        self.invocation.user_content.as_ref()
    }

    /// The branch of parallel agents that this is on.
    pub fn branch(&self) -> Option<&str> {
        self.frame.branch.as_deref()
    }

    /// The configuration of the run.
    pub fn config(&self) -> &RunConfig {
        &self.invocation.config
    }

    /// A snapshot of the state.
    pub fn state(&self) -> Snapshot {
        self.frame.state.snapshot()
    }

    /// The session with the events that the run has read and emitted. Copies the list of events,
    /// not the events.
    pub async fn session(&self) -> Session {
        self.with_session(Session::clone).await
    }

    /// Looks at the session without copying its list of events.
    pub async fn with_session<T>(&self, look: impl FnOnce(&Session) -> T) -> T {
        look(&*self.invocation.session.read().await)
    }

    /// Whether the run was cancelled; what is done from here on is not stored.
    pub fn is_cancelled(&self) -> bool {
        self.invocation.turn.is_over()
    }
}

impl fmt::Debug for ReadonlyContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadonlyContext")
            .field("session", self.session_key())
            .field("agent", &self.agent_name())
            .finish_non_exhaustive()
    }
}
