use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use sessile_session::{Blob, Content};
use sessile_state::{Delta, SharedValue};

/// A request of the client: one or more of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct LiveRequest {
    /// A message of the user.
    pub(super) content: Option<Content>,
    /// A piece of sound, or a picture.
    pub(super) blob: Option<Blob>,
    /// The user begins to speak.
    #[serde(alias = "activityStart")]
    pub(super) activity_start: Option<Value>,
    /// The user stops speaking.
    #[serde(alias = "activityEnd")]
    pub(super) activity_end: Option<Value>,
    /// The microphone was turned off.
    #[serde(alias = "audioStreamEnd")]
    pub(super) audio_stream_end: Option<Value>,
    /// The conversation is over.
    pub(super) close: bool,
    /// More of this message is coming.
    pub(super) partial: bool,
    /// Keys to set, with their prefixes.
    #[serde(alias = "stateDelta")]
    pub(super) state_delta: Option<BTreeMap<String, SharedValue>>,
}

impl LiveRequest {
    /// The state that it sets.
    pub(super) fn delta(&self) -> Delta {
        self.state_delta.iter().flatten().map(|(key, value)| (key, value.clone())).collect()
    }
}

/// Whether a signal was given: null and false do not count.
pub(super) fn given(sign: Option<&Value>) -> bool {
    !matches!(sign, None | Some(Value::Null | Value::Bool(false)))
}
