//! Messages of the server.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::lenient;
use super::time::duration;

/// A frame of the server. Unknown fields are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServerFrame<'a> {
    pub(crate) setup_complete: Option<SetupComplete>,
    #[serde(borrow)]
    pub(crate) server_content: Option<ServerContent<'a>>,
    pub(crate) tool_call: Option<ToolCallMessage>,
    pub(crate) tool_call_cancellation: Option<Cancellation>,
    pub(crate) go_away: Option<GoAway>,
    pub(crate) session_resumption_update: Option<ResumptionUpdate>,
    pub(crate) voice_activity: Option<VoiceActivity>,
    pub(crate) usage_metadata: Option<TokenUsage>,
}

/// A frame, and the parts of it that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Decoded<'a> {
    pub(crate) frame: ServerFrame<'a>,
    /// One sentence for each part that was left out.
    pub(crate) problems: Vec<String>,
}

/// Reads a frame. If a part is malformed, the others are kept.
pub(crate) fn decode(frame: &[u8]) -> Decoded<'_> {
    // serde would accept an array as the fields of a struct in order.
    let is_object = frame.trim_ascii_start().first() == Some(&b'{');
    match serde_json::from_slice(frame) {
        Ok(frame) if is_object => Decoded { frame, problems: Vec::new() },
        Ok(_) => Decoded { problems: vec![lenient::NO_OBJECT.to_owned()], ..Decoded::default() },
        Err(error) => lenient::decode(frame, &error),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SetupComplete {
    pub(crate) session_resumption: Option<Resumed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Resumed {
    pub(crate) handle: Option<String>,
    pub(crate) resumed: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServerContent<'a> {
    #[serde(borrow)]
    pub(crate) model_turn: Option<ModelTurn<'a>>,
    pub(crate) generation_complete: Option<bool>,
    pub(crate) turn_complete: Option<bool>,
    pub(crate) interrupted: Option<bool>,
    pub(crate) input_transcription: Option<Transcription>,
    pub(crate) output_transcription: Option<Transcription>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ModelTurn<'a> {
    #[serde(borrow)]
    pub(crate) parts: Vec<ServerPart<'a>>,
}

/// One part of the model's output; a part of an unknown kind has none of these fields.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServerPart<'a> {
    pub(crate) text: Option<String>,
    pub(crate) thought: Option<bool>,
    #[serde(borrow)]
    pub(crate) inline_data: Option<InlineData<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InlineData<'a> {
    pub(crate) mime_type: Option<String>,
    /// Base64, borrowed from the frame: decoding it is the only copy.
    #[serde(borrow)]
    pub(crate) data: Cow<'a, str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Transcription {
    pub(crate) text: String,
    pub(crate) finished: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ToolCallMessage {
    pub(crate) function_calls: Vec<WireCall>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WireCall {
    #[serde(default)]
    pub(crate) id: String,
    pub(crate) name: String,
    /// The server leaves them out if the tool has no parameters.
    #[serde(default)]
    pub(crate) args: Option<Map<String, Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Cancellation {
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GoAway {
    #[serde(deserialize_with = "duration")]
    pub(crate) time_left: Option<Duration>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResumptionUpdate {
    pub(crate) new_handle: Option<String>,
    pub(crate) resumable: Option<bool>,
    #[serde(deserialize_with = "number_or_text")]
    pub(crate) last_consumed_client_message_index: Option<String>,
}

/// Whether the user speaks. Servers use two spellings; unknown values are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum VoiceActivity {
    Start,
    End,
    #[default]
    Other,
}

impl<'de> Deserialize<'de> for VoiceActivity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Message {
            voice_activity_type: Option<String>,
        }
        let message = Message::deserialize(deserializer)?;
        Ok(match message.voice_activity_type.as_deref() {
            Some("ACTIVITY_START" | "VOICE_ACTIVITY_START") => Self::Start,
            Some("ACTIVITY_END" | "VOICE_ACTIVITY_END") => Self::End,
            _ => Self::Other,
        })
    }
}

/// The tokens that were used so far, as reported by the server; `None` if it did not send the
/// count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct TokenUsage {
    /// All tokens.
    #[serde(deserialize_with = "count")]
    pub total_token_count: Option<u32>,
    /// The input of the model.
    #[serde(deserialize_with = "count")]
    pub prompt_token_count: Option<u32>,
    /// The output of the model.
    #[serde(deserialize_with = "count")]
    pub response_token_count: Option<u32>,
    /// Input that came from a cache.
    #[serde(deserialize_with = "count")]
    pub cached_content_token_count: Option<u32>,
    /// The reasoning of the model.
    #[serde(deserialize_with = "count")]
    pub thoughts_token_count: Option<u32>,
    /// Input from the results of tools.
    #[serde(deserialize_with = "count")]
    pub tool_use_prompt_token_count: Option<u32>,
}

/// A number that may be written as a string, as protobuf's JSON does with 64-bit numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Number(i64),
    Text(String),
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = match Option::<Number>::deserialize(deserializer)? {
        None => return Ok(None),
        Some(Number::Number(number)) => number,
        Some(Number::Text(text)) => text.parse().map_err(serde::de::Error::custom)?,
    };
    u32::try_from(number).map(Some).map_err(serde::de::Error::custom)
}

fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?.map(|number| match number {
        Number::Number(number) => number.to_string(),
        Number::Text(text) => text,
    }))
}
