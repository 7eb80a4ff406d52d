use std::collections::BTreeMap;

use sessile_session::{Content, EventWindow, Guards};
use sessile_state::{Delta, SharedValue};

use crate::model::Streaming;

/// A request to run an agent on a session.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The user.
    pub user: String,
    /// The session's id.
    pub session: String,
    /// The user's message, or the responses to calls that wait for them. Without one, the agent
    /// continues from the stored events.
    pub message: Option<Content>,
    /// Changes of state, with their prefixes, committed with the message; `temp:` keys last as long
    /// as the run.
    pub state_delta: Delta,
    /// The values that the changes were computed from. If a guard refuses, the run does not begin.
    pub guards: Guards,
    /// The invocation to continue; by default, a new one begins.
    pub invocation_id: Option<String>,
    /// The id of a new invocation; by default, it is generated.
    pub new_invocation_id: Option<String>,
    /// Streaming, limits and what agents look back on.
    pub config: RunConfig,
}

impl RunRequest {
    /// A run of a user's session.
    pub fn new(user: impl Into<String>, session: impl Into<String>) -> Self {
        Self { user: user.into(), session: session.into(), ..Self::default() }
    }

    /// With a message of one text.
    #[must_use]
    pub fn with_text(self, text: impl Into<String>) -> Self {
        self.with_message(Content::text("user", text))
    }

    /// With this message.
    #[must_use]
    pub fn with_message(mut self, message: Content) -> Self {
        self.message = Some(message);
        self
    }

    /// With these changes of state: a [`Delta`], an array of keys and values, or an object as
    /// `json!` makes it.
    #[must_use]
    #[track_caller]
    pub fn with_delta(mut self, delta: impl Into<Delta>) -> Self {
        self.state_delta = delta.into();
        self
    }

    /// With the values that the changes were computed from, compared when they are committed.
    ///
    /// ```
    /// use sessile_agent::RunRequest;
    /// use serde_json::json;
    /// use sessile_session::{Guards, OnOverwrite};
    ///
    /// let read = 4; // from a session that was read before
    /// let request = RunRequest::new("ada", "s1")
    ///     .with_text("hello")
    ///     .with_delta(json!({"message_count": read + 1}))
    ///     .with_guards(Guards::new(OnOverwrite::Refuse).with_read("message_count", json!(read)));
    /// # drop(request);
    /// ```
    #[must_use]
    pub fn with_guards(mut self, guards: Guards) -> Self {
        self.guards = guards;
        self
    }

    /// As part of this invocation.
    #[must_use]
    pub fn with_invocation(mut self, id: impl Into<String>) -> Self {
        self.invocation_id = Some(id.into());
        self
    }

    /// With this configuration.
    #[must_use]
    pub fn with_config(mut self, config: RunConfig) -> Self {
        self.config = config;
        self
    }
}

/// The configuration of a run.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// Whether partial answers are streamed too.
    pub streaming: Streaming,
    /// The limit of model calls in one run; 0 means unlimited.
    pub max_llm_calls: u32,
    /// Metadata for every event of the run; an event's own metadata takes precedence. Names that
    /// begin with `sessile:` or `__adk_internal_` are reserved for the runtime, and are ignored.
    pub custom_metadata: BTreeMap<String, SharedValue>,
    /// The events that agents look back on.
    pub window: EventWindow,
    /// Whether the event of the user's message is in the stream too.
    pub yield_user_message: bool,
    /// Whether agents read the thoughts of other agents.
    pub include_thoughts_from_other_agents: bool,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            streaming: Streaming::default(),
            max_llm_calls: 500,
            custom_metadata: BTreeMap::new(),
            window: EventWindow::ALL,
            yield_user_message: false,
            include_thoughts_from_other_agents: false,
        }
    }
}

/// What happens when a session is run again during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenBusy {
    /// The new run waits for its turn.
    #[default]
    Queue,
    /// The new run is refused with [`RunError::Busy`](crate::RunError::Busy).
    Reject,
    /// The earlier runs of the session are cancelled.
    CancelPrevious,
}
