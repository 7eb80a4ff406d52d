//! Reads the well-formed parts of a frame that cannot be read as a whole.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::server::{
    Decoded, InlineData, ModelTurn, ServerContent, ServerFrame, ServerPart, ToolCallMessage,
};

/// The problem of a frame that is not a message.
pub(super) const NO_OBJECT: &str = "the server sent a frame that is not a JSON object";

/// Reads a frame field by field; `whole` is the error of reading it at once.
pub(super) fn decode(frame: &[u8], whole: &serde_json::Error) -> Decoded<'static> {
    let mut problems = Vec::new();
    let frame = match serde_json::from_slice(frame) {
        Ok(Value::Object(mut message)) => {
            let mut reader = Reader { problems: &mut problems };
            ServerFrame {
                setup_complete: reader.take(&mut message, "setupComplete"),
                server_content: reader.server_content(&mut message),
                tool_call: reader.tool_call(&mut message),
                tool_call_cancellation: reader.take(&mut message, "toolCallCancellation"),
                go_away: reader.take(&mut message, "goAway"),
                session_resumption_update: reader.take(&mut message, "sessionResumptionUpdate"),
                voice_activity: reader.take(&mut message, "voiceActivity"),
                usage_metadata: reader.take(&mut message, "usageMetadata"),
            }
        }
        Ok(_) => {
            problems.push(NO_OBJECT.to_owned());
            ServerFrame::default()
        }
        Err(_) => {
            problems.push(format!("the server sent a frame that is not JSON: {whole}"));
            ServerFrame::default()
        }
    };
    Decoded { frame, problems }
}

struct Reader<'a> {
    problems: &'a mut Vec<String>,
}

impl Reader<'_> {
    /// A field of a message. If it cannot be read, that is a problem.
    fn take<T: DeserializeOwned>(&mut self, message: &mut Map<String, Value>, field: &str) -> Option<T> {
        self.read(message.remove(field)?, field)
    }

    fn read<T: DeserializeOwned>(&mut self, value: Value, what: &str) -> Option<T> {
        serde_json::from_value(value)
            .map_err(|error| self.problems.push(format!("the server sent an unreadable {what}: {error}")))
            .ok()
    }

    fn server_content(&mut self, message: &mut Map<String, Value>) -> Option<ServerContent<'static>> {
        let mut content = self.take::<Map<_, _>>(message, "serverContent")?;
        Some(ServerContent {
            model_turn: self.model_turn(&mut content),
            generation_complete: self.take(&mut content, "generationComplete"),
            turn_complete: self.take(&mut content, "turnComplete"),
            interrupted: self.take(&mut content, "interrupted"),
            input_transcription: self.take(&mut content, "inputTranscription"),
            output_transcription: self.take(&mut content, "outputTranscription"),
        })
    }

    fn model_turn(&mut self, content: &mut Map<String, Value>) -> Option<ModelTurn<'static>> {
        let mut turn = self.take::<Map<_, _>>(content, "modelTurn")?;
        let parts = self.take::<Vec<Value>>(&mut turn, "parts").into_iter().flatten();
        Some(ModelTurn { parts: parts.filter_map(|part| self.part(part)).collect() })
    }

    fn part(&mut self, part: Value) -> Option<ServerPart<'static>> {
        let mut part = self.read::<Map<_, _>>(part, "part")?;
        let inline_data = self.take::<Map<_, _>>(&mut part, "inlineData").and_then(|mut data| {
            let mime_type = self.take(&mut data, "mimeType");
            Some(InlineData { mime_type, data: self.take::<String>(&mut data, "data")?.into() })
        });
        Some(ServerPart {
            text: self.take(&mut part, "text"),
            thought: self.take(&mut part, "thought"),
            inline_data,
        })
    }

    fn tool_call(&mut self, message: &mut Map<String, Value>) -> Option<ToolCallMessage> {
        let mut call = self.take::<Map<_, _>>(message, "toolCall")?;
        let calls = self.take::<Vec<Value>>(&mut call, "functionCalls")?;
        let function_calls = calls.into_iter().filter_map(|call| self.read(call, "functionCall")).collect();
        Some(ToolCallMessage { function_calls })
    }
}
