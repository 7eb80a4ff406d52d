//! Messages to the server. Audio and video are encoded straight into the text of their frame, which
//! saves a copy.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use sessile_session::Content;

use crate::tool_call::ToolResponse;

/// A frame to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) text: String,
    pub(crate) purpose: Purpose,
}

/// Whether a frame can still be sent after a reconnect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Can be sent on any connection.
    Input,
    /// Answers calls of the conversation with this number: another conversation does not know these
    /// calls.
    Answer { conversation: u64 },
}

impl Outgoing {
    fn input(text: String) -> Self {
        Self { text, purpose: Purpose::Input }
    }
}

/// A piece of the user's voice: 16-bit little-endian samples.
pub(crate) fn audio(samples: &[u8], rate: u32) -> Outgoing {
    media("audio", &format!("audio/pcm;rate={rate}"), samples)
}

/// A picture of what the user's camera sees.
pub(crate) fn video(picture: &[u8], mime_type: &str) -> Outgoing {
    media("video", mime_type, picture)
}

fn media(kind: &str, mime_type: &str, bytes: &[u8]) -> Outgoing {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    let head = if mime_type.bytes().all(plain) {
        format!(r#"{{"realtimeInput":{{"{kind}":{{"mimeType":"{mime_type}","data":""#)
    } else {
        let mime_type = json!(mime_type); // quoted and escaped
        format!(r#"{{"realtimeInput":{{"{kind}":{{"mimeType":{mime_type},"data":""#)
    };
    let tail = r#""}}}"#;
    let mut text = String::with_capacity(head.len() + bytes.len().div_ceil(3) * 4 + tail.len());
    text.push_str(&head);
    BASE64_STANDARD.encode_string(bytes, &mut text);
    text.push_str(tail);
    Outgoing::input(text)
}

/// The client signals that the user begins or stops to speak.
pub(crate) fn activity(starts: bool) -> Outgoing {
    let kind = if starts { "activityStart" } else { "activityEnd" };
    Outgoing::input(json!({"realtimeInput": {kind: {}}}).to_string())
}

/// The microphone was turned off.
pub(crate) fn audio_end() -> Outgoing {
    Outgoing::input(json!({"realtimeInput": {"audioStreamEnd": true}}).to_string())
}

/// Messages of the conversation; the model answers when the turn is complete.
pub(crate) fn content(turns: &[Content], turn_complete: bool) -> Outgoing {
    Outgoing::input(json!({"clientContent": {"turns": turns, "turnComplete": turn_complete}}).to_string())
}

/// The answers to calls of a conversation.
pub(crate) fn tool_responses(
    responses: &[ToolResponse],
    with_scheduling: bool,
    conversation: u64,
) -> Outgoing {
    let response = |response: &ToolResponse| {
        let mut message = json!({"name": response.name, "response": object(&response.response)});
        if !response.id.is_empty() {
            message["id"] = json!(response.id);
        }
        if let (true, Some(scheduling)) = (with_scheduling, response.scheduling) {
            message["scheduling"] = json!(scheduling.name());
        }
        message
    };
    let responses: Vec<_> = responses.iter().map(response).collect();
    let text = json!({"toolResponse": {"functionResponses": responses}}).to_string();
    Outgoing { text, purpose: Purpose::Answer { conversation } }
}

/// The server only accepts objects.
fn object(response: &serde_json::Value) -> serde_json::Value {
    if response.is_object() { response.clone() } else { json!({"result": response}) }
}
