//! The immutable records of a session.

mod actions;
mod around_delta;
mod auth;
mod bytes;
mod content;
mod delta;
mod opaque;

use std::collections::{BTreeMap, BTreeSet};

use sessile_state::{Delta, SharedValue};

pub use actions::{ActionExtras, AuthConfig, Compaction, EventActions, ToolConfirmation, UiWidget};
pub use around_delta::JsonAroundDelta;
pub use auth::AuthScheme;
pub use bytes::Bytes;
pub use content::{
    Blob, Content, FileData, FunctionCall, FunctionResponse, Part, PartExtras, ServerToolCall,
    ServerToolResponse,
};
pub(crate) use delta::json_of;
pub use opaque::Opaque;

use crate::record::{Stored, record};

/// Where an event lists the keys that it removes, in its custom metadata. For readers that do not
/// know removal, `stateDelta` sets these keys to null.
pub const REMOVED: &str = "sessile:removed";

/// Where the JSON of a committed event has the operations that it was appended with, in its custom
/// metadata.
pub const OPERATIONS: &str = "sessile:ops";

/// Where a committed event reports, in its custom metadata, the values that it overwrote although
/// its writer had read other ones.
pub const OVERWROTE: &str = "sessile:overwrote";

record! {
    codec by hand;

    /// One record of a session: its author, its content or calls, and the changes it carries.
    ///
    /// ```
    /// use serde_json::json;
    /// use sessile_session::{Content, Event, EventActions};
    ///
    /// let event = Event::new("user")
    ///     .with_content(Content::text("user", "hello"))
    ///     .with_actions(EventActions::from_delta(json!({"step": "greeting"})));
    ///
    /// let wire = serde_json::to_value(&event).unwrap();
    /// assert_eq!(wire["actions"]["stateDelta"]["step"], "greeting");
    /// ```
    pub struct Event {
        /// Unique in its session; made when the event is appended, if empty.
        pub id: String,
        /// The invocation that it is part of.
        pub invocation_id: String = "invocationId",
        /// `user`, or the name of an agent.
        pub author: String,
        /// Unix seconds; the time of the append if it is left out, so a committed event always has
        /// one. It does not determine the order of events.
        pub timestamp: Option<f64>,
        /// The message.
        pub content: Option<Content>,
        /// Its side effects.
        pub actions: EventActions,
        /// Whether it is a piece of an event that is still coming; such an event is never stored.
        pub partial: Option<bool>,
        /// Whether the model's turn is over.
        pub turn_complete: Option<bool> = "turnComplete",
        /// Whether the user interrupted the model.
        pub interrupted: Option<bool>,
        /// The branch of agents that sees it.
        pub branch: Option<String>,
    }
    unspelled {
        /// The operations that a committed event was appended with, see
        /// [`operations`](Event::operations). Only a commit may set them. In JSON they are in the
        /// custom metadata, under [`OPERATIONS`].
        pub intended: Delta,
    }

    /// The fields of an [`Event`] that few events have, used as if they were the event's own:
    /// `event.error_code`.
    rare EventExtras {
        /// The workflow's node that made it.
        pub node_info: NodeInfo = "nodeInfo",
        /// What a workflow's node put out.
        pub output: Option<SharedValue>,
        /// Calls in this event whose answers take long.
        pub long_running_tool_ids: Option<BTreeSet<String>> = "longRunningToolIds",
        /// The task that sees it.
        pub isolation_scope: Option<String> = "isolationScope",
        /// Why the turn is over.
        pub turn_complete_reason: Option<String> = "turnCompleteReason",
        /// How an interaction stands.
        pub interaction_status: Option<String> = "interactionStatus",
        /// Why the model stopped.
        pub finish_reason: Option<String> = "finishReason",
        /// What went wrong, for programs.
        pub error_code: Option<String> = "errorCode",
        /// What went wrong, for people.
        pub error_message: Option<String> = "errorMessage",
        /// The application's own notes.
        pub custom_metadata: Option<BTreeMap<String, SharedValue>> = "customMetadata",
        /// Tokens that were used.
        pub usage_metadata: Option<Opaque> = "usageMetadata",
        /// Sources of the answer.
        pub grounding_metadata: Option<Opaque> = "groundingMetadata",
        /// Quotations in the answer.
        pub citation_metadata: Option<Opaque> = "citationMetadata",
        /// The log probabilities of the tokens.
        pub logprobs_result: Option<Opaque> = "logprobsResult",
        /// The average log probability.
        pub avg_logprobs: Option<f64> = "avgLogprobs",
        /// The model that answered.
        pub model_version: Option<String> = "modelVersion",
        /// The transcription of the user's speech.
        pub input_transcription: Option<Opaque> = "inputTranscription",
        /// The transcription of the model's speech.
        pub output_transcription: Option<Opaque> = "outputTranscription",
        /// The handle to resume a live session.
        pub live_session_resumption_update: Option<Opaque> = "liveSessionResumptionUpdate",
        /// The live session.
        pub live_session_id: Option<String> = "liveSessionId",
        /// The server's GoAway message: it will disconnect soon.
        pub go_away: Option<Opaque> = "goAway",
        /// Whether the user speaks.
        pub voice_activity: Option<Opaque> = "voiceActivity",
        /// What was cached; its fields have one spelling.
        pub cache_metadata: Option<SharedValue> = "cacheMetadata",
        /// The interaction.
        pub interaction_id: Option<String> = "interactionId",
        /// The environment.
        pub environment_id: Option<String> = "environmentId",
    }
}

record! {
    /// The workflow's node that made an event.
    pub struct NodeInfo {
        /// Its place in the workflow; empty outside of one.
        pub path: String,
        /// The nodes whose output it is.
        pub output_for: Option<Vec<String>> = "outputFor",
        /// Whether the message is the output.
        pub message_as_output: Option<bool> = "messageAsOutput",
    }
}

impl Event {
    /// An event by this author that says and does nothing yet.
    pub fn new(author: impl Into<String>) -> Self {
        Self { author: author.into(), ..Self::default() }
    }

    /// With this content.
    #[must_use]
    pub fn with_content(mut self, content: Content) -> Self {
        self.content = Some(content);
        self
    }

    /// As part of this invocation.
    #[must_use]
    pub fn with_invocation(mut self, id: impl Into<String>) -> Self {
        self.invocation_id = id.into();
        self
    }

    /// With these actions.
    #[must_use]
    pub fn with_actions(mut self, actions: EventActions) -> Self {
        self.actions = actions;
        self
    }

    /// At this time, in Unix seconds.
    #[must_use]
    pub fn with_timestamp(mut self, seconds: f64) -> Self {
        self.timestamp = Some(seconds);
        self
    }

    /// When it was committed or said to have happened, in Unix seconds; 0 if it has no time yet.
    pub fn time(&self) -> f64 {
        self.timestamp.unwrap_or(0.0)
    }

    /// Its texts joined, without the model's reasoning; empty if there is none.
    pub fn text(&self) -> String {
        let said = self.parts().iter().filter(|part| part.thought != Some(true));
        said.filter_map(|part| part.text.as_deref()).collect()
    }

    /// The tools that it calls.
    pub fn function_calls(&self) -> impl Iterator<Item = &FunctionCall> {
        self.parts().iter().filter_map(|part| part.function_call.as_deref())
    }

    /// The answers of tools in it.
    pub fn function_responses(&self) -> impl Iterator<Item = &FunctionResponse> {
        self.parts().iter().filter_map(|part| part.function_response.as_deref())
    }

    /// Whether it is a piece of an event that is still coming.
    pub fn is_partial(&self) -> bool {
        self.partial == Some(true)
    }

    /// Whether an agent's answer is complete with this event.
    pub fn is_final_response(&self) -> bool {
        let long_running = self.long_running_tool_ids.as_ref().is_some_and(|ids| !ids.is_empty());
        if self.actions.skip_summarization == Some(true) || long_running {
            return true;
        }
        let calls = self.function_calls().next().is_some();
        if self.error_code.is_some() && !self.is_partial() && !calls {
            return true;
        }
        let ends_with_result = self.parts().last().is_some_and(|part| part.code_execution_result.is_some());
        !calls && self.function_responses().next().is_none() && !self.is_partial() && !ends_with_result
    }

    /// Reads its JSON, in either spelling. Lists of parts are shrunk to fit: most have one part,
    /// and a long history has many lists.
    ///
    /// # Errors
    ///
    /// serde_json's, if it is not the JSON of an event.
    pub fn from_stored_json(json: &str) -> Result<Self, serde_json::Error> {
        let mut event: Self = serde_json::from_str(json)?;
        if let Some(parts) = event.content.as_mut().and_then(|content| content.parts.as_mut()) {
            parts.shrink_to_fit();
        }
        Ok(event)
    }

    /// Its JSON in the spelling of storage.
    ///
    /// # Errors
    ///
    /// serde_json's, if a number has no JSON form.
    pub fn to_stored_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Stored(self))
    }

    /// Whether all its numbers have a JSON form.
    pub(crate) fn is_finite(&self) -> bool {
        let is_finite = |number: Option<f64>| number.is_none_or(f64::is_finite);
        let compaction = self.actions.compaction.as_ref();
        is_finite(self.timestamp)
            && is_finite(self.avg_logprobs)
            && compaction.is_none_or(|span| is_finite(span.start_timestamp) && is_finite(span.end_timestamp))
    }

    fn parts(&self) -> &[Part] {
        self.content.as_ref().map_or(&[], Content::parts)
    }
}
