use sessile_artifact::ArtifactError;
use sessile_memory::MemoryError;
use sessile_session::{BoxError, SessionError, SessionKey};
use sessile_state::TemplateError;

use crate::model::ModelError;

/// Why a run ended before its agent was done. What was committed until then stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The session cannot be read or written; most often there is none with this id.
    #[error(transparent)]
    Session(#[from] SessionError),

    /// Another run of this session is in progress, and the runner does not wait
    /// ([`WhenBusy::Reject`](crate::WhenBusy::Reject)).
    #[error("session {key} is busy with another run; try again when it is done")]
    Busy {
        /// The session.
        key: SessionKey,
    },

    /// The run was cancelled, by the caller or by a newer run.
    #[error("the run on session {key} was cancelled")]
    Cancelled {
        /// The session.
        key: SessionKey,
    },

    /// The message cannot be used. Nothing was stored.
    #[error("the message cannot be used: {reason}")]
    InvalidMessage {
        /// Why, and what to do.
        reason: String,
    },

    /// The agents asked their models too often.
    #[error(
        "the agents asked their models more than {limit} times in one run; \
         raise `max_llm_calls` if that is what they should do"
    )]
    LimitExceeded {
        /// The limit.
        limit: u32,
    },

    /// An agent failed. An event of the session records it.
    #[error("{message}")]
    Agent {
        /// The agent.
        agent: String,
        /// For programs; the event's error code.
        code: String,
        /// For people; the event's error message.
        message: String,
        /// What happened.
        source: Box<AgentError>,
    },
}

impl RunError {
    /// A name for programs, such as `SessionNotFoundError`; where google-adk has the same error, it
    /// is its name.
    pub fn error_type(&self) -> &str {
        match self {
            Self::Session(SessionError::NotFound { .. }) => "SessionNotFoundError",
            Self::Session(_) => "SessionError",
            Self::Busy { .. } => "SessionBusyError",
            Self::Cancelled { .. } => "CancelledError",
            Self::InvalidMessage { .. } => "ValueError",
            Self::LimitExceeded { .. } => "LlmCallsLimitExceededError",
            Self::Agent { code, .. } => code,
        }
    }
}

/// Why an agent cannot go on.
///
/// Its text is stored in an event, and read by models and users. So it leaves out the texts of
/// errors of stores and services, which may contain addresses or statements; those are in the
/// sources.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The run was cancelled: return it, and do nothing more.
    #[error("the run was cancelled")]
    Cancelled,

    /// The agents asked their models too often.
    #[error("the limit of {limit} model calls in one run is reached")]
    LimitExceeded {
        /// The limit.
        limit: u32,
    },

    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),

    /// An instruction cannot be filled in.
    #[error("the instruction of agent `{agent}` cannot be filled in: {source}")]
    Template {
        /// The agent.
        agent: String,
        /// What is missing, and where.
        source: TemplateError,
    },

    /// A callback failed or panicked.
    #[error("{hook} of agent `{agent}` failed: {source}")]
    Callback {
        /// The agent.
        agent: String,
        /// Which callback.
        hook: &'static str,
        /// Its error.
        source: BoxError,
    },

    /// A transfer to an agent that does not exist or is not allowed.
    #[error("agent `{agent}` cannot hand over to `{target}`: {reason}")]
    Transfer {
        /// The agent that transfers.
        agent: String,
        /// The agent that it transfers to.
        target: String,
        /// Why it cannot, and which agents are possible.
        reason: String,
    },

    /// The answer does not fit the agent's output schema.
    #[error("the answer of agent `{agent}` does not fit its output schema: {reason}")]
    Output {
        /// The agent.
        agent: String,
        /// What is wrong with it.
        reason: String,
    },

    /// An event could not be committed, or the session could not be read.
    #[error("{}", of_session(.0))]
    Session(#[from] SessionError),

    /// An artifact could not be saved or read.
    #[error("{}", of_artifact(.0))]
    Artifact(#[from] ArtifactError),

    /// A memory could not be added or searched.
    #[error("{}", of_memory(.0))]
    Memory(#[from] MemoryError),

    /// The runner lacks a service that the agent needs.
    #[error("there is no {what} in this runner; give it one with `{how}`")]
    Missing {
        /// What is needed.
        what: &'static str,
        /// How to give it.
        how: &'static str,
    },

    /// An agent below failed, and an event records it already.
    #[error("{message}")]
    Failed {
        /// The agent.
        agent: String,
        /// For programs; the event's error code.
        code: String,
        /// For people; the event's error message.
        message: String,
        /// What happened.
        source: Box<AgentError>,
    },

    /// Anything else, from an agent's own code.
    #[error("{source}")]
    Other {
        /// A name for programs, stored as the event's error code.
        code: String,
        /// What happened.
        source: BoxError,
    },
}

impl AgentError {
    /// An error of an agent's own code.
    pub fn other(error: impl Into<BoxError>) -> Self {
        Self::Other { code: "AGENT_FAILED".to_owned(), source: error.into() }
    }

    /// A name for programs, stored as the event's error code.
    pub fn code(&self) -> &str {
        match self {
            Self::Cancelled => "INVOCATION_ABORTED",
            Self::LimitExceeded { .. } => "LlmCallsLimitExceededError",
            Self::Model(error) => error.code(),
            Self::Template { .. } => "TEMPLATE",
            Self::Callback { .. } => "CALLBACK_FAILED",
            Self::Transfer { .. } => "TRANSFER_TARGET_NOT_FOUND",
            Self::Output { .. } => "OUTPUT_SCHEMA",
            Self::Session(_) => "SESSION",
            Self::Artifact(_) => "ARTIFACT",
            Self::Memory(_) => "MEMORY",
            Self::Missing { .. } => "SERVICE_MISSING",
            Self::Failed { code, .. } | Self::Other { code, .. } => code,
        }
    }
}

fn of_session(error: &SessionError) -> String {
    match error {
        SessionError::Backend { action, .. } => format!("cannot {action}"),
        SessionError::InDoubt { action, advice, .. } => {
            format!("tried to {action}, which is done or not done; {advice}")
        }
        SessionError::Corrupt { table, column, row, .. } => {
            format!("stored data is corrupt: column {column} of table {table}, row {row}")
        }
        error => error.to_string(),
    }
}

fn of_artifact(error: &ArtifactError) -> String {
    match error {
        ArtifactError::Backend { action, .. } => format!("cannot {action}"),
        ArtifactError::Corrupt { name, .. } => format!("the artifact {name:?} is corrupt"),
        error => error.to_string(),
    }
}

fn of_memory(error: &MemoryError) -> String {
    match error {
        MemoryError::Backend { action, .. } => format!("cannot {action}"),
        MemoryError::Corrupt { table, column, row, .. } => {
            format!("stored memory is corrupt: column {column} of table {table}, row {row}")
        }
        error => error.to_string(),
    }
}

/// The causes of an error that its text leaves out, for the log.
pub(crate) fn untold(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let text = error.to_string();
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let untold: Vec<String> =
        causes.map(ToString::to_string).filter(|cause| !text.contains(cause.as_str())).collect();
    (!untold.is_empty()).then(|| untold.join(": "))
}

/// Why a tool has no result. The model reads it as `{"error": …}` and may try again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments do not fit.
    #[error("the arguments of `{tool}` do not fit: {reason}")]
    Arguments {
        /// The tool.
        tool: String,
        /// What is wrong with them.
        reason: String,
    },

    /// The result has no JSON form.
    #[error("the tool's result has no JSON form: {reason}")]
    Result {
        /// What is wrong with it.
        reason: String,
    },

    /// The tool panicked.
    #[error("`{tool}` panicked: {message}")]
    Panicked {
        /// The tool.
        tool: String,
        /// The message of the panic.
        message: String,
    },

    /// The tool says that it failed.
    #[error("{0}")]
    Failed(#[source] BoxError),
}

impl ToolError {
    /// An error of a tool's own code.
    pub fn failed(error: impl Into<BoxError>) -> Self {
        Self::Failed(error.into())
    }
}

/// Why an agent or a runner cannot be built: everything that is wrong, not only the first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot build {what}: {}", problems.join("; "))]
pub struct BuildError {
    what: String,
    problems: Vec<String>,
}

impl BuildError {
    /// Everything that is wrong.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// An error if there are problems.
    pub(crate) fn check(what: impl FnOnce() -> String, problems: Vec<String>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self { what: what(), problems }) }
    }
}
