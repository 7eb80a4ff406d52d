use std::collections::BTreeMap;

use sessile_session::{Content, EventWindow, Guards};
use sessile_state::{Delta, SharedValue};

use crate::model::Streaming;

/// What a runner is asked to do.
#[derive(Debug, Clone, Default)]
pub struct RunRequest {
    /// The user.
    pub user: String,
    /// The session's id.
    pub session: String,
    /// What the user says, or the answers to calls that wait for them. Without one, the agent goes
    /// on from what is there.
    pub message: Option<Content>,
    /// Changes of state, with their prefixes, committed with the message; `temp:` keys last as long
    /// as the run.
    pub state_delta: Delta,
    /// The values that the changes were computed from. If a guard refuses, the run does not begin.
    pub guards: Guards,
    /// The invocation to go on with; a new one if it is left out.
    pub invocation_id: Option<String>,
    /// The id of the invocation if it is a new one; one is made if it is left out.
    pub new_invocation_id: Option<String>,
    /// How.
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

/// How a run is done.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// Whether answers come in pieces too.
    pub streaming: Streaming,
    /// How often the models may be asked in one run; 0 is as often as they like.
    pub max_llm_calls: u32,
    /// Notes for every event of the run; an event's own notes come first. Those whose names begin
    /// with `sessile:` or `__adk_internal_` mean something to the runtime, and reach no event.
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

/// What happens when a session that is being run is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenBusy {
    /// The new run waits for its turn.
    #[default]
    Queue,
    /// The new run is refused.
    Reject,
    /// The runs before end where they are.
    CancelPrevious,
}
