use std::collections::BTreeMap;

use sessile_state::{Delta, SharedValue};

use super::auth::AuthScheme;
use super::content::Content;
use super::delta::SetKeys;
use super::opaque::Opaque;
use crate::record::record;

record! {
    codec by hand;

    /// The side effects of an event.
    pub struct EventActions {
        /// What this event changes, keys with their prefixes. An event that is to be appended may
        /// hold operations; a committed one holds their results: keys that are set, and keys that
        /// are removed.
        pub state_delta: Delta = "stateDelta" as SetKeys,
    }

    /// The fields of [`EventActions`] that few events have, used as if they were its own:
    /// `event.actions.escalate`.
    rare ActionExtras {
        /// Artifacts saved by this event, and their new versions.
        pub artifact_delta: BTreeMap<String, i64> = "artifactDelta",
        /// Credentials that calls wait for.
        pub requested_auth_configs: BTreeMap<String, AuthConfig> = "requestedAuthConfigs",
        /// Confirmations that calls wait for.
        pub requested_tool_confirmations: BTreeMap<String, ToolConfirmation> = "requestedToolConfirmations",
        /// Whether a tool's answer is the final one.
        pub skip_summarization: Option<bool> = "skipSummarization",
        /// The agent that takes over.
        pub transfer_to_agent: Option<String> = "transferToAgent",
        /// The reason for the transfer.
        pub transfer_reason: Option<String> = "transferReason",
        /// Whether control returns to the parent agent.
        pub escalate: Option<bool>,
        /// A summary in the place of earlier events.
        pub compaction: Option<Compaction>,
        /// Whether the agent is done with this invocation.
        pub end_of_agent: Option<bool> = "endOfAgent",
        /// The progress of a composite agent.
        pub agent_state: Option<BTreeMap<String, SharedValue>> = "agentState",
        /// Everything from this invocation on is taken back.
        pub rewind_before_invocation_id: Option<String> = "rewindBeforeInvocationId",
        /// The route on which a workflow continues.
        pub route: Option<SharedValue>,
        /// What a user interface shows.
        pub render_ui_widgets: Option<Vec<UiWidget>> = "renderUiWidgets",
        /// An answer set by a tool.
        pub set_model_response: Option<SharedValue> = "setModelResponse",
    }
}

impl EventActions {
    /// Actions that make these changes: a [`Delta`], an array of keys and values, or an object as
    /// `json!` makes it.
    #[track_caller]
    pub fn from_delta(delta: impl Into<Delta>) -> Self {
        Self { state_delta: delta.into(), ..Self::default() }
    }
}

record! {
    /// A credential that a call waits for.
    pub struct AuthConfig {
        /// How to authenticate, as OpenAPI describes it: its names have one spelling, and many are
        /// data.
        pub auth_scheme: Option<AuthScheme> = "authScheme",
        /// The credential before the exchange.
        pub raw_auth_credential: Option<Opaque> = "rawAuthCredential",
        /// The credential after the exchange.
        pub exchanged_auth_credential: Option<Opaque> = "exchangedAuthCredential",
        /// The key under which it is stored.
        pub credential_key: Option<String> = "credentialKey",
    }
}

record! {
    /// A question to the user whether a tool may run.
    pub struct ToolConfirmation {
        /// The question.
        pub hint: Option<String>,
        /// The answer.
        pub confirmed: Option<bool>,
        /// What came with the answer.
        pub payload: Option<SharedValue>,
    }
}

record! {
    /// A summary in the place of the events of a span of time.
    pub struct Compaction {
        /// The first event's time.
        pub start_timestamp: Option<f64> = "startTimestamp",
        /// The last event's time.
        pub end_timestamp: Option<f64> = "endTimestamp",
        /// The summary.
        pub compacted_content: Option<Content> = "compactedContent",
    }
}

record! {
    /// Something for a user interface to show.
    pub struct UiWidget {
        /// Its id.
        pub id: Option<String>,
        /// The provider that renders it.
        pub provider: Option<String>,
        /// What it shows.
        pub payload: Option<SharedValue>,
    }
}
